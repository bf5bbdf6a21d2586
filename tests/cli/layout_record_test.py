"""Proves the verdicts on layouts, their tables, and that a run is put together and filed as it was. Argument: the folder tools/."""
import json
import pathlib
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(sys.argv[1])
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
from layout_record import from_record, layout_table  # noqa: E402

ABOUT = {"machine": "Processor X, 32 processors, 2 x NVIDIA H100", "commit": "0123456789ab", "date": "2026-11-26T10:00:00Z"}
MIB = 1 << 20


def sent(block, us, link_us, into="contiguous", shape="vector", size=MIB, limit_us=None, source="strided"):
    return {"shape": shape, "block": block, "bytes": size, "source": source, "into": into, "median_us": us, "p10_us": us, "p90_us": us + 1,
            "gbps": size / us / 1e3, "path": "device", "iterations": 20, "by_hand_us": 2 * us, "blocks_us": None if block < 64 else 900.0,
            "contiguous_us": link_us, "limit_us": limit_us or link_us, "limit_ratio": us / (limit_us or link_us)}


def report(rows, **more):
    return {**ABOUT, "benchmark": "layout", "from": "cuda:0", "to": "cuda:1", "ranks": 2, "quick": True, "limit_is": "a bare copy", "rows": rows, **more}


def packed(what, us, by_hand):
    return {"what": what, "bytes": 256 * MIB, "pack_us": us, "unpack_us": us + 5, "by_hand_us": by_hand}


def a_run(rows, pack=None, **more):
    found = {**ABOUT, "messages": [report(rows, **more)]}
    return found if pack is None else {**found, "pack": {"device": "NVIDIA H100", "copy_us": 250.0, "rows": pack}}


def judged(record):
    return {one["measure"]: one for one in from_record(record)}


def packing_stands_beside_a_kernel_by_hand():
    for us, wanted in ((100.0, True), (105.2, True), (105.3, False)):
        found = judged(a_run([], [packed("vector 16 B every 32", us, 100.0)]))
        one = found["pack on the device, vector 16 B every 32, 256 MiB"]
        assert one["row"] == "12" and one["pass"] is wanted and one["target"] == ">= 0.95 x a kernel by hand", one
        assert one["ours"] == round(256 * MIB / us / 1e3, 4) and one["peer"] == round(256 * MIB / 1e5, 4), one


def messages_stand_beside_the_link_by_their_worst_block():
    for us, wanted in ((11.11, True), (11.12, False)):
        # Blocks below 16 bytes have no target.
        found = judged(a_run([sent(4, 99.0, 10.0), sent(16, us, 10.0), sent(4096, 10.5, 10.0)]))
        assert list(found) == ["device to device, vector, strided to contiguous, 1 MiB, worst of blocks of 16 B to 4 KiB"], found
        one = list(found.values())[0]
        assert one["pass"] is wanted and one["note"] == "worst at blocks of 16 B" and one["limit"] == round(MIB / 1e4, 4), one
        assert one["target"] == ">= 0.9 x the contiguous link rate", one
    # Each shape and size by itself, where a struct has some bytes less; and into its like without a verdict.
    rows = [sent(16, 10.0, 10.0), sent(16, 30.0, 10.0, shape="struct", size=MIB - 16), sent(16, 20.0, 10.0, "strided", limit_us=18.0),
            sent(64, 10.0, 10.0, size=4096), sent(64, 10.0, 10.0, "strided", size=4096, source="contiguous")]
    found = judged(a_run(rows))
    assert {measure.removeprefix("device to device, "): one["pass"] for measure, one in found.items()} == {
        "vector, strided to contiguous, 1 MiB, worst of blocks of 16 B": True, "struct, strided to contiguous, 1 MiB, worst of blocks of 16 B": False,
        "vector, strided to strided, 1 MiB, worst of blocks of 16 B": None, "vector, strided to contiguous, 4 KiB, worst of blocks of 64 B": True,
        "vector, contiguous to strided, 4 KiB, worst of blocks of 64 B": None}, found
    bound = found["device to device, vector, strided to strided, 1 MiB, worst of blocks of 16 B"]
    assert bound["limit"] == round(MIB / 18e3, 4) and "no factor is set" in bound["note"], bound


def a_limit_that_was_no_bare_copy_is_told_and_one_that_is_missing_gives_no_verdict():
    found = list(judged(a_run([sent(16, 11.0, 10.0)], limit_is="our own message")).values())[0]
    assert found["note"] == "worst at blocks of 16 B; the limit is our own message in one piece, and not a bare copy", found
    unmeasured = {**sent(16, 11.0, 10.0), "limit_us": None, "limit_ratio": None}
    assert not judged(a_run([unmeasured])), "no limit, no verdict"
    with tempfile.TemporaryDirectory() as temporary:
        file = pathlib.Path(temporary) / "x-layouts.json"
        beside = {**ABOUT, "kind": "host", "rounds": 3, "quick": True, "left_out": ["system: pml ucx, vector: status 139, after 2 rows"],
                  "rows": [{"shape": "vector", "block": 16, "bytes": MIB, "what": "pack", "ours_us": 10.0, "peer_us": 25.0, "peer_name": "Open MPI 4"},
                           {"shape": "vector", "block": 16, "bytes": MIB, "what": "strided to strided", "ours_us": 9.0, "peer_us": None, "peer_name": None}]}
        file.write_text(json.dumps({**a_run([unmeasured]), "mpi": [beside]}))
        text = "\n".join(layout_table([file]))
    for line in ("| 95.33 | 10.00 | - | - | 22.00 |  | device |", "| vector | 16 | 1048576 | pack | 10.00 | 25.00 | 2.50 | Open MPI 4 |",
                 "| strided to strided | 9.00 | - | - | none gave one |", "- left out: system: pml ucx, vector: status 139, after 2 rows"):
        assert line in text, (line, text)


def what_is_on_one_device_or_the_host_is_no_figure():
    rows = [sent(16, 10.0, 10.0)]
    assert not judged(a_run(rows, to="cuda:0"))
    assert not judged(a_run(rows, **{"from": "host", "to": "host"}))
    assert not judged(a_run(rows, **{"from": "opencl", "to": "opencl"}))


def record(source, measured):
    return subprocess.run([sys.executable, TOOLS / "record_measurements.py", source, "--measured", measured], capture_output=True, text=True)


def a_run_is_filed_with_its_tables(folder):
    raw, out, measured = folder / "raw", folder / "out", folder / "measured"
    for each in (raw, out):
        each.mkdir()
    put_together = [sys.executable, "-B", TOOLS / "layout_record.py", raw, out / "layouts.json"]
    # Ended in the middle, or never begun.
    done = subprocess.run(put_together, capture_output=True, text=True)
    assert done.returncode == 1 and "holds no layout*.json that is complete" in done.stderr and not (out / "layouts.json").exists(), done
    one, other = report([sent(16, 11.0, 10.0)]), report([sent(64, 20.0, 10.0, "strided", "indexed", limit_us=12.5)])
    (raw / "layout_vector.json").write_text(json.dumps(one)[:-9])
    assert subprocess.run(put_together, capture_output=True).returncode == 1
    (raw / "layout_vector.json").write_text(json.dumps(one))
    (raw / "layout_indexed.json").write_text(json.dumps({**other, "commit": "fedcba987654"}))
    assert "of several machines or commits" in subprocess.run(put_together, capture_output=True, text=True).stderr
    (raw / "layout_indexed.json").write_text(json.dumps(other))
    (raw / "pack_kernels.json").write_text('{"rows": [')
    done = subprocess.run(put_together, capture_output=True, text=True)
    found = json.loads((out / "layouts.json").read_text())
    assert done.returncode == 0 and "left out pack_kernels.json: not complete" in done.stdout and "pack" not in found, done
    pack = {"device": "NVIDIA H100", "copy_us": 250.0, "rows": [packed("vector 16 B every 32", 400.0, 100.0)]}
    (raw / "pack_kernels.json").write_text(json.dumps(pack))
    done = subprocess.run(put_together, capture_output=True, text=True)
    found = json.loads((out / "layouts.json").read_text())
    assert done.returncode == 0 and found == {**ABOUT, "messages": [other, one], "pack": pack}, (done, found)
    assert "MISSED: pack on the device" in done.stdout and "reached: device to device, vector, strided to contiguous" in done.stdout, done.stdout
    assert "no verdict: device to device, indexed, strided to strided" in done.stdout, done.stdout

    done = record(out, measured)
    stem = "2026-11-26-2x-nvidia-h100"
    assert done.returncode == 0 and json.loads((measured / f"{stem}-layouts.json").read_text()) == found, done
    targets = json.loads((measured / "targets.json").read_text())
    assert [(each["row"], each["pass"]) for each in targets] == [("12", None), ("12", True), ("12", False)], targets
    text = (measured / "tables.md").read_text()
    for line in ("| vector 16 B every 32 | 268435456 | 400.0 | 405.0 | 100.0 | 0.250 |",
                 "| cuda:0 | cuda:1 | vector | 16 | 1048576 | strided | contiguous | 11.00 (11.00 to 12.00) | 95.33 | 10.00 | 10.00 | 0.909 | 22.00 |  | device |",
                 "| cuda:0 | cuda:1 | indexed | 64 | 1048576 | strided | strided | 20.00 (20.00 to 21.00) | 52.43 | 10.00 | 12.50 | 0.625 | 40.00 | 900.0 | device |"):
        assert line in text, (line, text)
    assert "Quick runs. Half of there and back, every byte compared; limit: a bare copy." in text, text

    # One of another commit and a later hour is what counts then; the other stays.
    (out / "layouts.json").write_text(json.dumps({**a_run([sent(16, 12.0, 10.0)]), "commit": "fedcba987654", "date": "2026-11-26T11:00:00Z"}))
    done = record(out, measured)
    targets = json.loads((measured / "targets.json").read_text())
    assert done.returncode == 0 and (measured / f"{stem}-fedcba9-layouts.json").exists(), done
    assert [(each["commit"], each["pass"]) for each in targets] == [("fedcba987654", False)], targets
    assert "Quick" not in "\n".join(layout_table([])), "no file has no table"


packing_stands_beside_a_kernel_by_hand()
messages_stand_beside_the_link_by_their_worst_block()
a_limit_that_was_no_bare_copy_is_told_and_one_that_is_missing_gives_no_verdict()
what_is_on_one_device_or_the_host_is_no_figure()
with tempfile.TemporaryDirectory() as temporary:
    a_run_is_filed_with_its_tables(pathlib.Path(temporary))
print("layouts: verdicts, tables and records are right")
