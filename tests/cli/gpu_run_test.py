"""Proves that the parts of tools/gpu_run.sh check are the whole, each test once, that the record says what was not run, that a sanitizer has
looked at something, and that sweeps are left out when their time is over.

Argument: the folder tools/.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(sys.argv[1])
RECORD = [sys.executable, "-B", TOOLS / "gpu_run" / "check_record.py"]
NAMES = ["Fast.one", "ranks_traffic.on_3_ranks", "python.wheel", "two_opencl_devices.kind_contract", "Fast.with space", "python.on_a_gpu",
         "Fast.three", "Fast.four", "ranks_lending.on_2_ranks"]


def run(*command, **more):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, **more)


def share(folder, which):
    """The numbers that ctest is given, and the names that are promised."""
    listing = folder / "ctest"
    listing.write_text("#!/bin/sh\necho 'a line of ctest itself'\ncat <<'END'\n" +
                       json.dumps({"tests": [{"name": name} for name in NAMES]}) + "\nEND\n")
    listing.chmod(0o755)
    done = run(sys.executable, "-B", TOOLS / "gpu_run" / "shares.py", folder, which, folder / "names",
               env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
    assert done.returncode == 0, done
    return [int(word) for word in done.stdout.split(",")], (folder / "names").read_text().splitlines()


def every_test_once(folder):
    costs = folder / "Testing" / "Temporary" / "CTestCostData.txt"
    for shares in (1, 2, 3):
        dealt = []
        for which in range(1, shares + 1):
            numbers, names = share(folder, f"{which}/{shares}")
            assert numbers[:3] == [0, 0, 0] and [NAMES[number - 1] for number in numbers[3:]] == names, (numbers, names)
            dealt += names
            # What ctest wrote down in the meantime changes its order, and never the shares.
            costs.write_text(costs.read_text().replace("Fast.one 0 0.3", "Fast.one 2 99"))
        assert sorted(dealt) == sorted(name for name in NAMES if name not in ("python.wheel", "python.on_a_gpu")), dealt
    text = costs.read_text()
    assert "Fast.one 2 99.0\n" in text and "two_opencl_devices.kind_contract 0 164.0\n" in text and text.endswith("---\n"), text
    first, second = share(folder, "1/2")[1], share(folder, "2/2")[1]
    assert ("ranks_traffic.on_3_ranks" in first) != ("two_opencl_devices.kind_contract" in first), (first, second)
    for wrong in ("0/2", "3/2", "2", "1/0"):
        assert run(sys.executable, "-B", TOOLS / "gpu_run" / "shares.py", folder, wrong, folder / "names").returncode not in (0, 2), wrong


def part(folder, name, cases, names, steps, commit="0123456789ab", machine="Processor X, 2 x NVIDIA H200"):
    raw, out, kept = folder / "raw", folder / "out", folder / "kept"
    for each in (raw, out, kept):
        each.mkdir(exist_ok=True)
    (out / "info.json").write_text(json.dumps({"machine": machine, "commit": commit}))
    (raw / "names.txt").write_text("".join(one + "\n" for one in names))
    (raw / "tests.xml").write_text("<testsuite>" + "".join(f'<testcase name="{one}" status="{status}" time="{time}"/>' for one, status, time
                                                           in cases) + "</testsuite>")
    if cases is LOST:
        (raw / "tests.xml").unlink()
    (raw / "steps.txt").write_text(steps)
    done = run(*RECORD, "part", name, raw, out, kept)
    assert done.returncode == 0, done
    return kept


LOST = []


def parts_make_the_whole(folder):
    whole = folder / "check.json"
    kept = part(folder, "tests 1/2", [("A", "run", "0.1"), ("B", "fail", "40.04"), ("C", "notrun", "0")], ["A", "B", "C"],
                "ok     build (39 s)\nFAILED tests 1/2: status 8 (77 s)\n")
    done = run(*RECORD, "merge", whole, *kept.glob("*.json"))
    found = json.loads(whole.read_text())
    assert done.returncode == 0 and "NOT RUN yet: tests 2/2, rest" in done.stdout, done
    assert found["parts_not_run"] == ["tests 2/2", "rest"] and found["benches"] == [] and found["demo"] is None, found
    assert found["tests"] == {"passed": 1, "failed": ["B"], "skipped": ["C"], "not_run": []}, found
    assert found["parts"][0]["slowest"] == [{"test": "B", "seconds": 40.0}], found
    first = json.loads(whole.read_text())

    # The time was over before E, and of what was lost altogether nothing is claimed.
    part(folder, "tests 2/2", [("D", "run", "1")], ["D", "E with space"], "FAILED tests 2/2: status 8 (500 s)\n")
    (folder / "out" / "bench.json").write_text('[{"benchmark": "latency"}]')
    (folder / "raw" / "demo").mkdir()
    (folder / "raw" / "demo" / "stencil2d.json").write_text('{"kind": "cuda", "rows": []}')
    part(folder, "rest", LOST, ["python.on_a_gpu"], "ok     demo (2 s)\n")
    done = run(*RECORD, "merge", whole, *kept.glob("*.json"))
    found = json.loads(whole.read_text())
    assert done.returncode == 0 and "NOT RUN" not in done.stdout and "2 passed, 1 failed, 1 skipped, 2 not run" in done.stdout, done
    assert sorted(found["tests"]["not_run"]) == ["E with space", "python.on_a_gpu"] and found["parts_not_run"] == [], found
    assert found["demo"]["kind"] == "cuda" and found["benches"] == [{"benchmark": "latency"}], found
    assert {step["step"]: step["passed"] for step in found["steps"]} == {
        "build": True, "tests 1/2: status 8": False, "tests 2/2: status 8": False, "demo": True}, found

    # Wholes go together like parts, and of a part that is there twice the later one counts.
    (folder / "first.json").write_text(json.dumps({**first, "date": "2020-01-01T00:00:00Z"}))
    done = run(*RECORD, "merge", folder / "again.json", whole, folder / "first.json")
    assert done.returncode == 0 and json.loads((folder / "again.json").read_text())["tests"]["failed"] == ["B"], done

    # What was built of something else, or dealt out otherwise, is left out, by name.
    for name, more in (("tests 1/2", {"commit": "ffffffffffff"}), ("tests 1/2", {"machine": "Other"}), ("tests 1/3", {})):
        for file in kept.glob("*.json"):
            file.unlink()
        part(folder, name, [("F", "run", "1")], ["F"], "", **more)
        done = run(*RECORD, "merge", folder / "other.json", folder / "first.json", *kept.glob("*.json"))
        assert done.returncode == 1 and "left out: tests 1/2 of 0123456789ab" in done.stdout, done
        assert json.loads((folder / "other.json").read_text())["tests"]["passed"] == 1


# What tools/gpu_run.sh gives to the functions of tools/gpu_run/sanitize.sh, and a sanitizer that runs the program and finds nothing.
HARNESS = """
cd {tools}/..; raw={folder}; summary={folder}/summary; log={folder}/log; sanitizer={folder}/sanitizer; isthmus={folder}/isthmus; failures=0
note() {{ echo "$*" >>"$summary"; }}
step() {{ shift 2; "$@" >>{folder}/log 2>&1; }}
source {tools}/gpu_run/sanitize.sh
{calls}
echo "$failures failures"
"""


def a_sanitizer_that_saw_no_test_proves_nothing(folder):
    def executable(name, text):
        (folder / name).write_text("#!/bin/bash\n" + text)
        (folder / name).chmod(0o755)
    executable("sanitizer", 'while [[ $1 == --* ]]; do shift 2; done\n"$@" && echo "========= ERROR SUMMARY: 0 errors"\n')
    executable("isthmus", 'shift 4; for ISTHMUS_RANK in 0 1; do export ISTHMUS_RANK; (exec "$@") | sed "s/^/[$ISTHMUS_RANK] /"; done\n')
    executable("passes", 'echo "[  PASSED  ] 3 tests."; echo "[  SKIPPED ] 1 test."; echo "rank ${ISTHMUS_RANK:-none} sees ${CUDA_VISIBLE_DEVICES-all}"\n')
    executable("skips", 'echo "[  PASSED  ] 0 tests."; echo "[  SKIPPED ] 4 tests."\n')
    executable("soaks", "true\n")
    executable("races", "printf '========= %s\\n' 'COMPUTE-SANITIZER' 'Error: Race reported between Write access at f(Side)+0x10 in bulk.cuh:61' "
               "'    and Read access at f(Side)+0x20 in bulk.cuh:73 [511 hazards]' '' "
               "'Error: Race reported between Write access at f(Side)+0x10 in bulk.cuh:61' "
               "'    and Read access at f(Side)+0x20 in bulk.cuh:73 [4 hazards]' '' 'Warning: Race reported between Read access at g()' "
               "'    and Write access at h()' '' 'RACECHECK SUMMARY: 3 hazards displayed (2 errors, 1 warning)'; exit 86\n")
    calls = "\n".join((f"sanitize memcheck 9 1 one {folder}/passes", f"remark=little sanitize racecheck 9 2 two {folder}/passes",
                       f"sanitize synccheck 9 blind beside {folder}/passes", f"sanitize memcheck 9 1 nothing {folder}/skips",
                       f"sanitize memcheck 9 1 other {folder}/soaks", f"sanitize racecheck 9 1 races {folder}/races"))
    done = run("bash", "-c", HARNESS.format(folder=folder, tools=TOOLS, calls=calls),
               env={name: value for name, value in os.environ.items() if name not in ("ISTHMUS_RANK", "CUDA_VISIBLE_DEVICES")})
    rows = [line.split("\t") for line in (folder / "sanitized.txt").read_text().splitlines()]
    assert done.stdout == "1 failures\n", (done, (folder / "log").read_text())
    # Every kind of hazard once, with how often, for people and in the record.
    race = "Error: Race reported between Write access at f(Side)+0x10 in bulk.cuh:61 and Read access at f(Side)+0x20 in bulk.cuh:73"
    last = rows.pop()
    assert last[1] == "races" and last[3] == "86", last
    assert json.loads(last[8]) == [{"times": 2, "said": race},
                                   {"times": 1, "said": "Warning: Race reported between Read access at g() and Write access at h()"}], last
    (folder / "info").write_text('{"machine": "m", "commit": "c"}')
    assert run(sys.executable, "-B", TOOLS / "gpu_run" / "sanitize_record.py", folder / "info", folder / "sanitized.txt", folder / "record").returncode == 0
    recorded = json.loads((folder / "record").read_text())["rows"]
    assert recorded[-1]["findings"][0] == {"times": 2, "said": race} and "findings" not in recorded[0], recorded
    assert f"2 times: {race}\n" in (folder / "summary").read_text() and "3 hazards displayed" in (folder / "summary").read_text()
    assert [row[:4] + row[5:8] for row in rows] == [
        ["memcheck", "one", "1", "0", "3", "1", ""], ["racecheck", "two", "2", "0", "6", "2", "little"],
        ["synccheck", "beside", "2", "0", "6", "2", ""], ["memcheck", "nothing", "1", "1", "0", "4", ""], ["memcheck", "other", "1", "0", "", "", ""]], rows
    log, said = (folder / "log").read_text(), (folder / "summary").read_text()
    assert "rank 1 sees all\n[1] ========= ERROR" in log and "[  SKIPPED ] 4 tests.\n========= ERROR SUMMARY: 0 errors\n" in log, log
    assert log.count("[0] rank 0 sees \n") == 1 and "[0] rank 0 sees \n[0] ====" not in log, "the one without a device has no sanitizer"
    assert "nothing: no test ran" in said and "6 test(s) passed, 2 skipped; little" in said, said


# The same for tools/gpu_run/sweeps.sh, and a command that writes a sweep's reports to the file that --json names.
SWEEPS = """
cd {tools}/..; set -o pipefail
raw={folder}/raw; out={folder}; summary={folder}/summary; log={folder}/log; isthmus={folder}/isthmus; failures=0; limit=60
note() {{ echo "$*" >>"$summary"; }}
step() {{ note "$2"; shift 2; "$@" >>"$log" 2>&1 || failures=$((failures + 1)); }}
build_all() {{ :; }}; describe_machine() {{ mkdir -p "$raw"; }}; second_gpu() {{ echo cuda:1; }}; finish() {{ echo "$failures failures"; exit 0; }}
source tools/gpu_run/sweeps.sh
run_sweeps
"""
SWEEP = """#!/usr/bin/env python3
import json, sys
words = sys.argv[1:]
at = lambda name: words[words.index(name) + 1]
report = lambda value, measure, us, rate: {"sweep": words[2], "setting": "S", "value": value, "from": at("--from"), "to": at("--to"),
                                           "benchmark": measure, "rows": [{"bytes": 8, "median_us": us, "gbps": rate}]}
if words[2] != "cells":
    json.dump([report(*one) for one in (("1", "latency", 3, 0), ("2", "latency", 2, 0), ("1", "bandwidth", 0, 9), ("2", "bandwidth", 0, 8))],
              open(at("--json"), "w"))
"""


def sweeps_are_one_list_and_end_in_time(folder):
    (folder / "isthmus").write_text(SWEEP)
    (folder / "isthmus").chmod(0o755)
    done = run("bash", "-c", SWEEPS.format(folder=folder, tools=TOOLS.resolve()))
    # The pictures need a report of a real machine, and matplotlib: whether they are drawn is no matter here.
    assert done.stdout.endswith("failures\n"), done
    found, said = json.loads((folder / "sweeps.json").read_text()), (folder / "summary").read_text()
    of = {(one["sweep"], one["from"], one["to"]) for one in found}
    assert {sweep for sweep, _, _ in of} == {"slot", "flight", "eager", "naming", "slots"} and len(of) == 9 and len(found) == 36, of
    assert said.count("latency: 8 B 2 (2.00 us)") == 9 and said.count("bandwidth: 8 B 1 (9.00 GB/s)") == 9, said
    (folder / "summary").unlink()
    for file in (folder / "raw").glob("*.json"):
        file.unlink()
    done = run("bash", "-c", SWEEPS.format(folder=folder, tools=TOOLS.resolve()), env={**os.environ, "ISTHMUS_CALL_LIMIT": "-1"})
    said = (folder / "summary").read_text()
    assert said.count("left out: the sweep of") == 10 and "holds no *-sweep.json" in done.stderr and not done.stdout.startswith("0 "), (done, said)


def one_sided_calls_are_one_list_beside_nvshmem(folder):
    command = [sys.executable, "-B", TOOLS / "one_sided_record.py", folder / "info.json", folder, folder / "out.json"]
    (folder / "info.json").write_text(json.dumps({"machine": "M", "commit": "0123"}))
    done = run(*command)
    assert done.returncode == 1 and "no report of isthmus bench one-sided" in done.stderr, done

    def ours(operation, path, size, blocks, threads, us):
        return {"operation": operation, "path": path, "bytes": size, "blocks": blocks, "threads": threads, "median_us": us, "p10_us": us,
                "p90_us": us, "gbps": 2.0, "limit_us": us / 2, "limit_ratio": 2.0, "limit_is": "L"}

    def theirs(call, by, size, threads, us):
        return {"call": call, "by": by, "bytes": size, "threads": threads, "us": us}
    rows = [ours("ping-pong", "put_signal, a thread", 8, 1, 1, 2.0), ours("ping-pong", "packets, 32 threads", 8, 1, 32, 1.0),
            ours("put bandwidth", "8 x 512 threads", 65536, 8, 512, 4.0), ours("rate of puts", "p, 4 x 256 threads", 8, 4, 256, 0.5),
            ours("rate of puts", "put, 32 threads", 64, 1, 32, 0.4), ours("fetch_add", "one word, a thread", 8, 1, 1, 0.8), ours("fetch_add", "one word, 32 threads", 8, 1, 32, 0.1),
            ours("barrier", "a block, 256 threads", 0, 1, 256, 2.5), ours("ping-pong of words", "a word each, a thread", 8, 1, 1, 0.7)]
    peer = [theirs("put_signal", "a warp", 8, 32, 3.0), theirs("put_signal", "a thread", 8, 1, 4.0), theirs("put_nbi", "1 block", 65536, 512, 9),
            theirs("put_nbi", "8 blocks", 65536, 512, 6.0), theirs("p", "a thread", 8, 1, 7.0), theirs("p", "4 blocks", 8, 256, 1.5),
            theirs("put_nbi", "a thread", 64, 1, 0.1), theirs("put_nbi", "a warp", 64, 32, 1.0),
            theirs("atomic_fetch_add", "a thread", 8, 1, 1.2), theirs("barrier", "a block", 0, 32, 5.0), theirs("barrier", "a block", 0, 256, 5.5)]
    (folder / "one-sided-kernel-cuda.json").write_text(json.dumps({"side": "kernel", "from": "cuda", "machine": "M", "commit": "0123", "date": "2026-11-26T00:00:00Z", "rows": rows}))
    (folder / "one-sided-host-host.json").write_text("[half of it")
    outside = [ours("put and quiet", "put, quiet, one after the other", 8, 0, 0, 4.0), ours("barrier", "barrier of the heap", 0, 0, 0, 2.0)]
    (folder / "one-sided-host-cuda.json").write_text(json.dumps({"side": "host", "from": "cuda", "machine": "M", "commit": "0123", "date": "2026-11-26T00:00:00Z", "rows": outside}))
    streams = [ours("ping-pong", "put_signal_on and wait_until_on, 100 in a stream", 8, 0, 0, 4.0), ours("put bandwidth", "put_on, 64 in a stream", 8192, 0, 0, 5.0),
               ours("barrier", "barrier_on, 100 in a stream", 0, 0, 0, 1.0), ours("barrier", "barrier_on of the heap, 100 in a stream", 0, 0, 0, 2.0)]
    (folder / "one-sided-stream-cuda.json").write_text(json.dumps({"side": "stream", "from": "cuda", "machine": "M", "commit": "0123", "date": "2026-11-26T00:00:00Z", "rows": streams}))

    def outside_of(benchmark, way, size, us):
        return {"benchmark": benchmark, "way": way, "bytes": size, "median_us": us}
    (folder / "nvshmem_outside.json").write_text(json.dumps({"peer_name": "NVSHMEM 3", "rows": [
        outside_of("put", "put and quiet of the host", 8, 8.0), outside_of("put", "put and quiet of the host", 64, 9.0), outside_of("barrier", "of the host", 0, 6.0),
        outside_of("barrier", "in a stream", 0, 8.0), outside_of("enqueued", "put with a signal in a stream", 8, 20.0), outside_of("put in a stream", "puts in a stream", 8192, 30.0)]}))
    (folder / "nvshmem.json").write_text(json.dumps({"peer_name": "NVSHMEM 3", "rows": peer}))
    done = run(*command)
    assert done.returncode == 0 and "left out one-sided-host-host.json: not complete" in done.stdout, done
    ratios = [line.split()[-1] for line in done.stdout.splitlines() if line and line[-1].isdigit()]
    assert ratios == ["2.00", "3.00", "1.50", "3.00", "1.50", "3.00", "2.50", "1.50", "2.20", "5.00", "6.00", "4.00"], done.stdout
    found = json.loads((folder / "out.json").read_text())
    assert [one.get("side", one.get("by")) for one in found] == ["host", "kernel", "stream", "NVSHMEM 3", "NVSHMEM 3"] and found[4]["commit"] == "0123", found
    (folder / "filed").mkdir()
    (folder / "out.json").rename(folder / "filed" / "one_sided.json")
    done = run(sys.executable, "-B", TOOLS / "record_measurements.py", folder / "filed", "--measured", folder / "measured")
    assert done.returncode == 0 and (folder / "measured" / "2026-11-26-m-one-sided.json").exists(), done
    lines = [line for line in (folder / "measured" / "tables.md").read_text().splitlines() if "one-sided.json" in line]
    assert len(lines) == len(rows + outside + streams) and sum(line.endswith("| 1.50 |") for line in lines) == 3 and "| 2.00 | L |" in lines[0], lines


def bad_words_are_told():
    for words in (["test"], ["tests"], ["tests", "3/2"], ["tests", "0/1"], ["rest", "1/2"]):
        with tempfile.TemporaryDirectory() as name:
            done = run(TOOLS / "gpu_run.sh", "check", *words, env={**os.environ, "OUT": name})
        assert done.returncode == 2 and "tests K/N" in done.stdout, done


for proof in (every_test_once, parts_make_the_whole, a_sanitizer_that_saw_no_test_proves_nothing,
              sweeps_are_one_list_and_end_in_time, one_sided_calls_are_one_list_beside_nvshmem):
    with tempfile.TemporaryDirectory() as name:
        proof(pathlib.Path(name))
bad_words_are_told()
print("the parts are the whole")
