"""Proves the verdicts on calls in kernels, their table, and that a run is put together and filed as it was. Argument: the folder tools/."""
import json
import pathlib
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(sys.argv[1])
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
from in_kernel_record import from_record, in_kernel_table  # noqa: E402

ABOUT = {"machine": "Processor X, 32 processors, 2 x NVIDIA H200", "commit": "0123456789ab", "date": "2026-11-25T10:00:00Z"}
CHECKS = [{"check": "packets both ways", "epochs": 100, "wrong": 0, "first": 0, "status": 0}, {"check": "sum", "wanted": 51200, "found": 51200},
          {"check": "deadline", "wrong": 0, "late_ms": 20.3, "dead_ms": 20.5}]


def ours(call, size, us, bare_us=None, by="a block", threads=64, blocks=1):
    bare = {"bare": "a loop", "bare_threads": 32, "bare_us": bare_us, "ratio": us / bare_us} if bare_us else {}
    return {"call": call, "by": by, "bytes": size, "blocks": blocks, "threads": threads, "us": us, "us_low": us, "us_high": us, **bare}


def theirs(call, size, us, by="a block", threads=256):
    return {"call": call, "by": by, "bytes": size, "threads": threads, "us": us, "us_low": us, "us_high": us + 0.5}


def a_run(rows, peer=None, **more):
    found = {**ABOUT, "gpus": 2, "between": "two GPUs", "gpu": "NVIDIA H200", "checks": CHECKS, "rows": rows, **more}
    return found if peer is None else {**found, "peer": {"peer_name": "NVSHMEM 3.4.5", "gpus": 2, "rows": peer}}


def judged(rows, peer=None, **more):
    return {(one["row"], one["measure"]): one for one in from_record(a_run(rows, peer, **more))}


def packets_stand_beside_a_bare_loop_and_the_best_put_signal():
    for call, what in (("packets", "in packets"), ("packets, answered", "in packets that answer each other")):
        for size, text, bare, peer, wanted in ((8, "8 B", 0.8334, 2.2, (True, True)), (8, "8 B", 0.833, 2.199, (False, False)),
                                               (512, "512 B", 1.0, 2.2, (True, True)), (512, "512 B", 1.0, 2.19, (True, False)),
                                               (4096, "4 KiB", 1.0, 1.7, (True, True)), (4096, "4 KiB", 0.8, 1.69, (False, False))):
            found = judged([ours(call, size, 1.0, bare)], [theirs("put_signal", size, 9.0, threads=32), theirs("put_signal", size, peer),
                                                          theirs("put_signal", 64, 0.1), theirs("signal", size, 0.1)])
            where = f"in a kernel, {text} {what}, one way"
            assert list(found) == [("1a", where), ("1a", where + ", beside NVSHMEM")], found
            alone, beside = found.values()
            assert (alone["pass"], beside["pass"]) == wanted, found
            assert alone["limit"] == round(bare, 4) and alone["peer"] is None and beside["limit"] is None, found
            assert beside["peer"] == peer and beside["peer_name"] == "NVSHMEM 3.4.5, put_signal by a block, threads: 256", beside
            factor = "1.7" if size == 4096 else "2.2"
            assert beside["target"] == f">= {factor} x faster than NVSHMEM's put_signal" and alone["target"].startswith("<= 1.2 x a bare"), found
    # Row 1a ends at 4 KiB.
    assert not judged([ours("packets", 16384, 1.0, 1.0)], [theirs("put_signal", 16384, 9.0)])
    # NVSHMEM has no such call of a grid.
    for call in ("packets", "put_signal"):
        assert not judged([ours(call, 512, 2.0, 1.0, by="a grid", blocks=2)], [theirs("put_signal", 512, 9.0)])


def puts_are_never_slower_than_theirs():
    for us, wanted in ((1.1, (True, True)), (1.101, (False, False)), (1.05, (True, True))):
        found = judged([ours("put_signal", 65536, us, 1.0)], [theirs("put_signal", 65536, 1.1)])
        assert [key for key, _ in found] == ["1b", "1b"] and tuple(one["pass"] for one in found.values()) == wanted, found
    assert [one["target"] for one in found.values()] == ["<= 1.1 x a bare store, fence, flag", "never slower than NVSHMEM"], found


def barriers_of_a_block_stand_beside_theirs_at_their_best():
    rows = [ours("barrier", 0, 1.05, 1.0, threads=32), ours("barrier", 0, 1.06, 1.0, threads=256), ours("barrier", 0, 1.0, 1.0, by="a warp", threads=32),
            ours("barrier", 0, 1.0, 1.0, by="a grid", threads=256, blocks=16), ours("sync", 0, 0.5, 1.0)]
    found = judged(rows, [theirs("barrier", 0, 2.3, threads=32), theirs("barrier", 0, 2.21), theirs("sync", 0, 1.0)])
    where = "in a kernel, barrier of two GPUs by a block of "
    assert {key: one["pass"] for key, one in found.items()} == {
        ("2", where + "32 threads"): True, ("2", where + "32 threads, beside NVSHMEM"): True,
        ("2", where + "256 threads"): False, ("2", where + "256 threads, beside NVSHMEM"): False}, found
    assert found["2", where + "256 threads, beside NVSHMEM"]["peer"] == 2.21, found


def barriers_of_all_stand_beside_theirs_of_all():
    team = {"gpus": 4, "between": "4 GPUs", "checks": [{**CHECKS[0], "check": "barrier of a block", "wrong": 2}],
            "rows": [ours("barrier", 0, 1.5, 1.5, threads=32), ours("barrier", 0, 1.5, 1.4, by="a grid", threads=256, blocks=16)],
            "peer": {"peer_name": "NVSHMEM 3.4.5", "gpus": 4, "rows": [theirs("barrier", 0, 3.2)]}}
    found = judged([ours("barrier", 0, 1.05, 1.0, threads=32)], [theirs("barrier", 0, 2.0)], team=team)
    assert {key: one["pass"] for key, one in found.items()} == {
        ("2", "in a kernel, barrier of two GPUs by a block of 32 threads"): True,
        ("2", "in a kernel, barrier of two GPUs by a block of 32 threads, beside NVSHMEM"): False,
        ("2", "in a kernel, barrier of 4 GPUs by a block of 32 threads"): True,
        ("2", "in a kernel, barrier of 4 GPUs by a block of 32 threads, beside NVSHMEM"): True}, found
    with tempfile.TemporaryDirectory() as name:
        file = pathlib.Path(name) / "x-in-kernel.json"
        file.write_text(json.dumps(a_run([], team=team)))
        text = "\n".join(in_kernel_table([file]))
    assert "Barriers among 4 GPUs of that machine, checked before (barrier of a block, 100 times); NVSHMEM 3.4.5:" in text, text
    assert "went wrong: barrier of a block of 3" in text and "| barrier | a grid | 16 x 256 | 0 | 1.500 (1.500 to 1.500) | a loop | 1.400 | 1.07 |" in text, text


def what_lacks_leaves_the_verdict_open():
    for peer in (None, [], [theirs("put_signal", 512, 9.0)]):
        alone, beside = judged([ours("packets", 8, 1.0, 0.9)], peer).values()
        assert alone["pass"] is True and beside["pass"] is None and beside["peer"] is None and beside["note"] == "not measured: NVSHMEM", beside
    assert [key for key, _ in judged([ours("put_signal", 8, 1.0)])] == ["1b"]
    # Two kernels on one GPU have no link between them.
    rows = [ours("packets", 8, 1.0, 0.9), ours("barrier", 0, 1.0, 1.0), ours("put_signal", 8, 1.0, 1.0)]
    assert not judged(rows, [theirs("put_signal", 8, 9.0)], between="two kernels on one GPU")


def a_slow_peer_is_explained_by_a_slow_barrier_alone():
    peer = [theirs("put_signal", 8, 2.15 * 1.3)]
    for bare, passed in ((1.44, None), (1.6, None), (1.44 * 1.25, True)):
        one = list(judged([ours("packets", 8, 1.0, 0.9), ours("barrier", 0, bare, bare, by="a warp")], peer).values())[1]
        assert one["pass"] is passed and "30 % slower than the 2.15 us on record" in one["note"], one
        assert ("not explained" in one["note"]) == (passed is None), one
    # A miss stays one.
    one = list(judged([ours("packets", 8, 2.0, 0.9)], peer).values())[1]
    assert one["pass"] is False and "not explained" in one["note"], one


def record(source, measured):
    return subprocess.run([sys.executable, TOOLS / "record_measurements.py", source, "--measured", measured], capture_output=True, text=True)


def a_run_is_filed_with_its_table(folder):
    rows = [ours("packets", 8, 1.0, 0.9), ours("barrier", 0, 3.0, 2.0, by="a grid", threads=256, blocks=16), ours("allreduce", 8, 1.7),
            ours("atomic_fetch_add", 8, 0.8, by="a thread", threads=1)]
    peer = [theirs("signal", 8, 0.8, "a thread", 1), theirs("put_signal", 8, 2.2), theirs("barrier", 0, 3.2), theirs("atomic_fetch_add", 8, 0.9)]
    raw, out, measured = folder / "raw", folder / "out", folder / "measured"
    for each in (raw, out):
        each.mkdir()
    (folder / "info.json").write_text(json.dumps({**ABOUT, "kinds": []}))
    put_together = [sys.executable, "-B", TOOLS / "in_kernel_record.py", folder / "info.json", raw, out / "in_kernel.json"]
    # Ended in the middle, or never begun.
    done = subprocess.run(put_together, capture_output=True, text=True)
    assert done.returncode == 1 and "no in_kernel.json that is complete" in done.stderr and not (out / "in_kernel.json").exists(), done
    printed = {name: value for name, value in a_run(rows).items() if name not in ABOUT}
    (raw / "in_kernel.json").write_text(json.dumps(printed)[:-9])
    assert subprocess.run(put_together, capture_output=True).returncode == 1
    (raw / "in_kernel.json").write_text(json.dumps(printed))
    (raw / "nvshmem.json").write_text('{"peer_name": "NVSHMEM 3.4.5", "rows": [')
    done = subprocess.run(put_together, capture_output=True, text=True)
    found = json.loads((out / "in_kernel.json").read_text())
    assert done.returncode == 0 and "left out nvshmem.json: not complete" in done.stdout and "peer" not in found, done
    (raw / "nvshmem.json").write_text(json.dumps(a_run([], peer)["peer"]))
    done = subprocess.run(put_together, capture_output=True, text=True)
    found = json.loads((out / "in_kernel.json").read_text())
    assert done.returncode == 0 and "checks: 3, wrong: none" in done.stdout, done
    assert {**found, "date": ABOUT["date"]} == a_run(rows, peer), found
    team = {"gpus": 4, "between": "4 GPUs", "checks": CHECKS[:1], "rows": []}
    (raw / "in_kernel_team.json").write_text(json.dumps(team))
    (raw / "nvshmem_team.json").write_text(json.dumps(a_run([], peer)["peer"]))
    done = subprocess.run(put_together, capture_output=True, text=True)
    found = json.loads((out / "in_kernel.json").read_text())
    assert found["team"] == {**team, "peer": a_run([], peer)["peer"]} and "checks: 4, wrong: none" in done.stdout, (found, done)

    (out / "in_kernel.json").write_text(json.dumps(a_run(rows, peer)))
    done = record(out, measured)
    stem = "2026-11-25-2x-nvidia-h200"
    assert done.returncode == 0 and json.loads((measured / f"{stem}-in-kernel.json").read_text()) == a_run(rows, peer), done
    assert [one["row"] for one in json.loads((measured / "targets.json").read_text())] == ["1a", "1a"], done
    text = (measured / "tables.md").read_text()
    for line in ("| packets | a block | 64 | 8 | 1.000 (1.000 to 1.000) | a loop | 0.900 | 1.11 | 2.200 (2.200 to 2.700) | a block | 256 | 2.20 |",
                 "| barrier | a grid | 16 x 256 | 0 | 3.000 (3.000 to 3.000) | a loop | 2.000 | 1.50 |  |  |  |  |",
                 "| allreduce | a block | 64 | 8 | 1.700 (1.700 to 1.700) |  |  |  |  |  |  |  |",
                 "| signal, NVSHMEM alone |  |  | 8 |  |  |  |  | 0.800 (0.800 to 1.300) | a thread | 1 |  |"):
        assert line in text, (line, text)
    assert "two GPUs; NVSHMEM 3.4.5. " in text and "went wrong: none of 3." in text and "| 1a | in a kernel, 8 B in packets, one way |" in text, text

    # One without a peer, of another commit and a later hour, is what counts then; the other stays.
    (out / "in_kernel.json").write_text(json.dumps({**a_run(rows), "commit": "fedcba987654", "date": "2026-11-25T11:00:00Z"}))
    done = record(out, measured)
    targets = json.loads((measured / "targets.json").read_text())
    assert done.returncode == 0 and (measured / f"{stem}-fedcba9-in-kernel.json").exists(), done
    assert [one["pass"] for one in targets] == [True, None] and targets[0]["commit"] == "fedcba987654", targets
    assert "NVSHMEM was no part of it" in (measured / "tables.md").read_text()
    (out / "in_kernel.json").write_text(json.dumps({**a_run(rows), "commit": "unknown"}))
    assert "a record needs one commit" in record(out, measured).stderr

    wrong = [{**CHECKS[0], "wrong": 3}, {**CHECKS[1], "found": 51199}, {**CHECKS[2], "status": 2}]
    (folder / "wrong.json").write_text(json.dumps(a_run([], checks=wrong)))
    assert "went wrong: packets both ways, sum, deadline of 3." in "\n".join(in_kernel_table([folder / "wrong.json"]))


for proof in (packets_stand_beside_a_bare_loop_and_the_best_put_signal, puts_are_never_slower_than_theirs,
              barriers_of_a_block_stand_beside_theirs_at_their_best, barriers_of_all_stand_beside_theirs_of_all, what_lacks_leaves_the_verdict_open,
              a_slow_peer_is_explained_by_a_slow_barrier_alone):
    proof()
with tempfile.TemporaryDirectory() as name:
    a_run_is_filed_with_its_table(pathlib.Path(name))
print("calls in kernels are judged and filed as they were measured")
