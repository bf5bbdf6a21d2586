"""Proves the verdicts on messages with device memory: which runs are judged, and beside which peers. Argument: the folder tools/."""
import contextlib
import io
import pathlib
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "peers"))
from compare_device import Ours, report  # noqa: E402
from device_targets import from_collectives, from_device_peers, from_streams, from_workers, not_measured  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
BATCHED, ONE_BY_ONE = "batched store kernel of 132 blocks, 64 copies by a launch", "store kernel of 132 blocks, a launch a copy"
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


def two_ranks_on_one_gpu_are_no_figure_of_two():
    entries = [beside(measure, "cuda:0", "cuda:0", size, 1, 9, 99, staged=99) for measure in ("latency", "bandwidth", "bidirectional")
               for size in (8, 8 * KIB, 64 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB)]
    assert not list(from_device_peers(entries))
    # Those between its memory and the host's stay, and nothing is missing there.
    assert only("9", list(from_device_peers(entries + [beside("latency", "pinned", "cuda:0", 8, 6, 6, 7)])))["pass"] is True
    assert not list(not_measured([], {ABOUT["machine"]: entries}))
    shared = {**ABOUT, "from": "cuda:0", "to": "cuda:0", "ranks": 2, "rows": [{"bytes": 8, "median_us": 1, "graph_us": 1, "limit_us": 9}]}
    assert not list(from_streams([shared]))
    assert not list(from_workers([{**shared, "worker": True, "ready": False}]))
    assert not list(from_collectives([{**shared, "by": by, "benchmark": name} for by, name in (("isthmus", "allreduce_on"), ("NCCL", "allreduce"))]))


def one_mib_is_reached_beside_both_limits_alone():
    one = judged("6", "bandwidth", "cuda:0", "cuda:1", MIB, 5.1, 5.0, 6)
    assert one["pass"] is None and "not measured: the batched store kernel" in one["note"], one
    assert judged("6", "bandwidth", "cuda:0", "cuda:1", MIB, 6.9, 5.0, 6)["pass"] is False
    one = judged("6", "bandwidth", "cuda:0", "cuda:1", MIB, 5.1, 5.0, 6, limits={"copies in 1 stream": 5.2, BATCHED: 5.0})
    assert one["pass"] is True and one["note"] is None, one
    # The best of both counts, and a kernel that is launched for each copy is not the batched one.
    assert judged("6", "bandwidth", "cuda:0", "cuda:1", MIB, 5.4, 5.0, 6, limits={"copies in 1 stream": 5.2, BATCHED: 5.0})["pass"] is False
    one = judged("6", "bandwidth", "cuda:0", "cuda:1", MIB, 5.1, 5.0, 6, limits={"copies in 1 stream": 5.2, ONE_BY_ONE: 5.0})
    assert one["pass"] is None and "not measured: the batched store kernel" in one["note"], one


def what_is_longer_is_judged_beside_the_copy_engine_alone():
    for measure, ours in (("bandwidth", 42), ("bidirectional", 42.5)):
        limits = {"copies in 1 stream": 41.9, "copies in 4 streams": 43, BATCHED: 30}
        one = judged("6", measure, "cuda:0", "cuda:1", 16 * MIB, ours, 30, 50, limits=limits)
        ways = 2 if measure == "bidirectional" else 1
        assert one["pass"] is True and abs(one["limit"] - ways * 16 * MIB / 41.9e3) < 1e-3, one
        assert judged("6", measure, "cuda:0", "cuda:1", 16 * MIB, ours + 2, 30, 50, limits=limits)["pass"] is False


def limits_that_are_no_messages_are_kept_by_what_they_are():
    ours = Ours("isthmus", pathlib.Path("."))
    rows = [("limit-kernels", "packets", 8, [2.0, 1.0, 3.0]), ("limit-kernels", "packets", 512, [4.0]), ("limit-calls", "cuEventQuery", 0, [0.1])]
    ours.bench = lambda _arguments, env: [{**ABOUT, "benchmark": name, "ranks": 1, "rows": [{"bytes": size, "path": path, "median_us": us} for us in times]}
                                     for name, path, size, times in rows]
    ours.measure("pinned", "cuda:0", 8, None)
    found = {(one["measure"], one["call"], one["bytes"]): one["ours"] for one in ours.calls()}
    assert found == {("kernels", "packets", 8): 2.0, ("kernels", "packets", 512): 4.0, ("call", "cuEventQuery", 0): 0.1}, found
    assert not list(from_device_peers(ours.calls()))


def row(us, **more):
    return {"bytes": 8, "median_us": us, "p10_us": us, "p90_us": us, "path": "stream", **more}


def streams_beside_nccl_in_one_run_have_verdicts():
    one = {**ABOUT, "measure": "stream-latency", "from": "cuda:0", "to": "cuda:1", "bytes": 8, "unit": "us", "ours": 3.0, "graph": 2.0,
           "limit": 2.7, "limit_graph": 1.6, "peers": [{"name": "NCCL 2.28.3", "us": 6.5}], "graph_peers": [{"name": "NCCL 2.28.3", "us": 3.9}]}
    found = {one["measure"]: one for one in from_device_peers([one])}
    where = "cuda:0 to cuda:1, 8 B, one way in a "
    assert found[where + "stream"]["pass"] and not found[where + "graph"]["pass"], found
    assert found[where + "stream, beside NCCL"]["pass"], found
    graph = found[where + "graph, beside NCCL"]
    assert graph["pass"] is False and graph["peer"] == 3.9 and graph["peer_name"] == "NCCL 2.28.3, captured", graph
    alone = {one["measure"]: one for one in from_device_peers([{**one, "peers": [], "graph_peers": []}])}
    assert alone[where + "graph, beside NCCL"]["pass"] is None and alone[where + "stream"]["pass"]
    shared = {**one, "to": "cuda:0"}
    assert not list(from_device_peers([shared]))


def few_bytes_to_a_device_and_back_stand_beside_both_bare_copies():
    entries = [beside("latency", "pinned", "cuda:1", 8, 7.6, 6, 20), beside("latency", "cuda:0", "pinned", 8, 7.8, 8, 20)]
    found = [one for one in from_device_peers(entries) if one["row"] == "9"]
    assert [(one["limit"], one["pass"]) for one in found] == [(7, True), (7, False)], found


def buffers_that_promise_to_be_ready_have_entries_of_their_own():
    entries = [{**beside("latency", "cuda:0", "cuda:1", 8, 12, 7, 18), "ready": 8}, {**beside("latency", "cuda:0", "cuda:1", 64 * KIB, 12, 8, 18)}]
    found = {(one["row"], one["measure"]): one for one in from_device_peers(entries)}
    small = "cuda:0 to cuda:1, 8 B, one way"
    assert found["3", small]["pass"] is False and found["3", small]["ours"] == 12, found
    assert found["3", small + ", ready"]["pass"] is not False and found["3", small + ", ready"]["ours"] == 8, found
    assert [measure for row, measure in found if row == "4"] == ["cuda:0 to cuda:1, 64 KiB, one way"], found


def workers_in_the_run_beside_the_peers_have_verdicts():
    entries = [{**beside("latency", "cuda:0", "cuda:1", 8, 12, 7, 18), "worker": 8, "worker-ready": 4},
               {**beside("latency", "cuda:0", "host", 8, 12, 7, 9), "worker": 3, "worker-ready": 2.6}]
    found = {one["measure"]: one for one in from_device_peers(entries) if "worker" in one["measure"]}
    where = "cuda:0 to cuda:1, 8 B, one way, with the worker"
    assert found[where]["pass"] is False and found[where]["ours"] == 8 and found[where + ", ready"]["ours"] == 4, found
    assert found["cuda:0 to host, 8 B, one way, with the worker"]["pass"] is False, found
    assert found["cuda:0 to host, 8 B, one way, with the worker, ready"]["row"] == "9" and len(found) == 4, found


def streams_stand_beside_nccl():
    streams = [{**ABOUT, "from": "cuda:0", "to": "cuda:1", "rows": [row(3.0, graph_us=2.0, limit_us=3.0, limit_graph_us=1.0)]}]
    enqueued = {**ABOUT, "commit": "fedcba987654", "measure": "enqueued", "from": "cuda:0", "to": "cuda:1", "bytes": 8,
                "peers": [{"name": "NCCL 2", "configuration": "send and receive", "us": 6.6}]}
    found = {one["measure"]: one for one in from_streams(streams, [enqueued])}
    where = "cuda:0 to cuda:1, 8 B, one way in a "
    assert [found[where + how]["pass"] for how in ("stream", "graph")] == [True, False], found
    plain, graph = found[where + "stream, beside NCCL"], found[where + "graph, beside NCCL"]
    assert plain["pass"] is None and plain["peer"] == 6.6 and plain["note"] == "of another run, fedcba9, so no ratio counts: there 2.20 x ours", plain
    assert graph["pass"] is None and graph["peer"] is None and graph["note"].startswith("not measured"), graph
    assert "not measured: NCCL" in {one["measure"]: one for one in from_streams(streams)}[where + "stream, beside NCCL"]["note"]

    def allreduce(ours, theirs):
        return only("5", list(from_collectives([{**ABOUT, "from": "cuda:0", "to": "cuda:1", "ranks": 2, "by": by, "benchmark": name, "rows": [row(us)]}
                                                for by, name, us in (("isthmus", "allreduce_on", ours), ("NCCL, version 2", "allreduce", theirs))])))
    assert allreduce(8.0, 13.6)["pass"] is True and allreduce(8.2, 13.6)["pass"] is False
    assert allreduce(8.0, 16.0)["pass"] is None, "NCCL is slower there than on record"


def workers_have_rows_of_their_own_and_what_lacks_is_said():
    reports = [{**ABOUT, "worker": worker, "ready": False, "from": "cuda:0", "to": "cuda:1", "rows": [row(us)]} for worker, us in ((True, 3), (False, 9))]
    peers = [beside("latency", "cuda:0", "cuda:1", 8, 9, 6, 14.6)]
    one = only("3", list(from_workers(reports, peers)))
    assert one["ours"] == 3 and one["peer"] == 14.6 and one["pass"] is None and "there 4.87 x ours" in one["note"], one
    lacking = {(one["row"], one["measure"]) for one in not_measured([one], {ABOUT["machine"]: peers})}
    assert lacking == {("5", "cuda to cuda, 8 B, one way in a stream and in a graph"), ("5", "cuda to cuda, allreduce of 8 B in a stream, waited for"),
                       ("9", "host to cuda, 8 B, one way, with the worker"), ("9", "cuda to host, 8 B, one way, with the worker")}, lacking


def the_comparison_prints_target_and_verdict():
    class Compared:
        rows = {("latency", "cuda:0", "cuda:1", 8): None, ("latency", "cuda:0", "cuda:1", 64 * KIB): None}
        about = ABOUT

        def entry(self, measure, source, target, size, _peers):
            return beside(measure, source, target, size, 6.0, 6.6, 14.6)

        def streams(self, peers):
            return []

        def calls(self):
            return []
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(io.StringIO()) as said:
        report(Compared(), [], [("cuda:0", "cuda:1", 64 * MIB)], pathlib.Path(name) / "device.json", True)
    lines = said.getvalue().splitlines()
    assert any(line.startswith("3 ") and " yes " in line and ">= 2.2 x faster" in line for line in lines), lines
    assert any(line.startswith("4 ") and "<= 1.05 x" in line for line in lines), lines


for proof in (a_slow_peer_is_explained_or_counts_for_nothing, what_the_run_proves_is_an_explanation,
              what_is_judged_beside_the_limit_keeps_its_verdict, two_ranks_on_one_gpu_are_no_figure_of_two,
              one_mib_is_reached_beside_both_limits_alone, buffers_that_promise_to_be_ready_have_entries_of_their_own,
              workers_in_the_run_beside_the_peers_have_verdicts,
              few_bytes_to_a_device_and_back_stand_beside_both_bare_copies,
              what_is_longer_is_judged_beside_the_copy_engine_alone,
              limits_that_are_no_messages_are_kept_by_what_they_are, streams_stand_beside_nccl,
              streams_beside_nccl_in_one_run_have_verdicts, workers_have_rows_of_their_own_and_what_lacks_is_said,
              the_comparison_prints_target_and_verdict):
    proof()
print(f"judged as {pathlib.Path(__file__).name} has it")
