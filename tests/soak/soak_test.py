"""Runs the soak and looks at what it says of itself. Arguments: isthmus, the soak, and short, long or faults."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ISTHMUS, SOAK, WHICH = sys.argv[1:]
CLASSES = {"host", "registered", "pinned", "cuda", "vmm", "shared_vmm", "pool", "shared_pool", "managed"}  # and OpenCL where it is there
MANNERS = {"by sendrecv", "by waitall", "by waitany", "by testsome", "by ssend", "by persistent", "by mprobe", "by unexpected"}
CALLS = {f"collective {call}" for call in ("barrier", "bcast", "allreduce", "allgather", "alltoall", "reduce_scatter", "scatter")}
# What the address sanitizer keeps of freed memory would count as grown.
if "ASAN_OPTIONS" in os.environ:
    os.environ["ASAN_OPTIONS"] += ":quarantine_size_mb=4"


def soak(*options, ranks=2):
    """Its status, what it printed, and its record."""
    with tempfile.TemporaryDirectory() as name:
        file = pathlib.Path(name) / "soak.json"
        command = [ISTHMUS, "run", "-n", str(ranks), SOAK, "--json", str(file), "--stall", "100", *options]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr, json.loads(file.read_text()) if file.exists() else None


def whole(record, rounds):
    assert record["rounds"] >= rounds and CLASSES <= set(record["classes"]), record["classes"]
    for rank in record["ranks"]:
        assert rank["mismatches"] == 0 and rank["descriptors"]["flat"] is not False, rank
        received = rank["received"]
        lacking = (MANNERS | CALLS) - set(received)
        assert not lacking, f"rank {rank['rank']} did without {lacking}"
        assert any(what.startswith("in streams, ") for what in received), received
        for heap in ("host", "cuda"):
            assert sum(what.startswith(f"heap, {heap}, ") for what in received) == 3, received
        for way in ("slot", "cell", "ring", "single copy", "device"):
            assert rank["carriers"][way]["messages"] > 0, (way, rank["carriers"])
        assert len(rank["quiet"]) == record["rounds"] and all(len(row) == len(rank["columns"]) for row in rank["quiet"])


if WHICH == "short":
    status, text, record = soak("--rounds", "4", "--seconds", "60")
    assert status == 0 and "soak: passed: 4 rounds" in text, text
    whole(record, 4)
elif WHICH == "long":
    status, text, record = soak("--seconds", "20", "--seed", "3")
    assert status == 0, text
    whole(record, 2)
    # Every class of memory met every other one.
    pairs = {what for rank in record["ranks"] for what in rank["received"] if " to " in what and "streams" not in what}
    assert len(pairs) >= 0.9 * len(record["classes"]) ** 2, sorted(pairs)
    # Other ranks, and a round by itself: what follows from its number is there again.
    status, text, three = soak("--rounds", "3", "--lanes", "2", ranks=3)
    assert status == 0, text
    again = [soak("--first-round", "2", "--rounds", "1", "--lanes", "2", "--steps", "6")[2]["ranks"][0]["received"] for _ in range(2)]
    assert again[0] == again[1], again
else:
    status, text, record = soak("--rounds", "2", "--spoil", "20", "--lanes", "1")
    assert status == 1 and text.count("MISMATCH") == 2 and "1 wrong, the first is byte" in text, text
    assert "that round again: --seed 1 --first-round 0 --rounds 1 --lanes 1" in text and record["passed"] is False, text
    status, text, record = soak("--rounds", "24", "--seconds", "100", "--leak", "--lanes", "1", "--steps", "4", "--warm-up", "0")
    assert status == 1 and "LEAK on rank 0: descriptors grew by " in text and "LEAK on rank 1: host_bytes grew by" in text, text
    assert [rank["descriptors"]["flat"] for rank in record["ranks"]] == [False, False], record
    for wrong in (["--lanes", "0"], ["--what"]):
        status, text, _ = soak(*wrong)
        assert status != 0 and wrong[0] in text, text
print(f"soak: {WHICH}: as it should be")
