"""Proves the verdicts on messages with device memory: which runs are judged, and beside which peers. Argument: the folder tools/."""
import pathlib
import sys

sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
from device_targets import from_device_peers  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
ABOUT = {"machine": "Processor X, 32 processors, 2 x NVIDIA H200", "commit": "0123456789ab", "date": "2026-11-21T10:00:00Z"}


def beside(measure, source, target, size, ours, limit, peer, **more):
    """One entry of tools/peers/compare_device.py."""
    peers = [{"name": "Open MPI v4", "configuration": "UCX", "us": peer, "all": [peer], "tried": {"UCX": peer}}]
    return {**ABOUT, "measure": measure, "from": source, "to": target, "bytes": size, "unit": "us", "ours": ours, "ours_all": [ours],
            "p10": ours, "p90": ours, "path": "shm/device", "limit": limit, "limit_name": "copies in 1 stream",
            "limits": {"copies in 1 stream": limit}, "peers": peers, **more}


def only(row, entries):
    found = [one for one in entries if one["row"] == row and one["ours"] is not None]
    assert len(found) == 1, (row, found)
    return found[0]


def judged(row, *entry, **more):
    return only(row, list(from_device_peers([beside(*entry, **more)])))


def a_slow_peer_is_explained_or_counts_for_nothing():
    # As fast as on record, or up to 10 % slower: nothing is to be said.
    for peer in (1880, 1880 * 1.09):
        one = judged("7", "latency", "pinned", "cuda:1", 4 * MIB, 88, 83, peer)
        assert one["pass"] is True and one["note"] is None, one
    # Slower, and the bare copy was not: no verdict, although the figure on record would do.
    one = judged("7", "latency", "pinned", "cuda:1", 4 * MIB, 88, 83, 1880 * 1.2)
    assert one["pass"] is None and "20 % slower than the 1880 us on record: peer slower than recorded, not explained" in one["note"], one
    assert one["note"].endswith("ours is 21.4 x faster"), one
    # Whoever misses beside a slow peer misses beside a fast one.
    one = judged("7", "latency", "pinned", "cuda:1", 4 * MIB, 288, 83, 1880 * 1.2)
    assert one["pass"] is False and "not explained" in one["note"], one
    # The other way the figure on record is the same.
    assert judged("7", "latency", "cuda:0", "pinned", 4 * MIB, 88, 83, 1880 * 1.2)["pass"] is None


def what_the_run_proves_is_an_explanation():
    # 8 B: the bare copy took 7.6 where 6.1 are on record, so a quarter is the machine's.
    one = judged("3", "latency", "cuda:0", "cuda:1", 8, 7, 7.6, 14.6 * 1.3)
    assert one["pass"] is True and "took 7.60 us in that run, where at most 6.1 are on record, which leaves 4 %" in one["note"], one
    one = judged("3", "latency", "cuda:0", "cuda:1", 8, 7, 6.2, 14.6 * 1.3)
    assert one["pass"] is None and "not explained" in one["note"], one
    # The peer is no slower than the driver itself.
    one = judged("8", "bandwidth", "host", "cuda:1", 4 * MIB, 100, 300, 310)
    assert one["pass"] is True and "at most 10 % behind" in one["note"], one
    one = judged("8", "bandwidth", "host", "cuda:1", 4 * MIB, 100, 270, 310)
    assert one["pass"] is None and "not explained" in one["note"], one


def what_is_judged_beside_the_limit_keeps_its_verdict():
    one = judged("4", "latency", "cuda:0", "cuda:1", 64 * KIB, 7, 6.7, 9.9)
    assert one["pass"] is True and "not explained" in one["note"], one
    one = judged("11", "bandwidth", "cuda:0", "cuda:1", 4 * MIB, 13, 13, 14, staged=652)
    assert one["pass"] is None and one["note"].startswith("staged by hand was 60 % slower than the 407.2 us on record"), one


for proof in (a_slow_peer_is_explained_or_counts_for_nothing, what_the_run_proves_is_an_explanation,
              what_is_judged_beside_the_limit_keeps_its_verdict):
    proof()
print(f"judged as {pathlib.Path(__file__).name} has it")
