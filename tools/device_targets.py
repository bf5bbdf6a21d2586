"""Rows 3 to 9 and 11 of the targets: messages with device memory beside the machine's own limits and the peers, in one run.

Called by tools/record_measurements.py with what `tools/gpu_run.sh peers` left (`*-device-peers.json`), for row 5 with what
`isthmus bench stream-latency --json stream.json` (`*-streams.json`) and `tools/gpu_run.sh collectives` did (`*-device-collectives.json`),
and for few bytes by workers with what `tools/gpu_run.sh workers` did. What has no figure on record has an entry that says so.
"""
import json

from host_targets import entry, size_text
from peers_on_record import MPI, NCCL, STAGED, beside_record, word

KIB, MIB = 1 << 10, 1 << 20
# What a copy may take longer than the bare one, for the two ranks to agree on it.
HANDSHAKE_US = 0.3


def on_one_gpu(one):
    """Two ranks that share a GPU take turns on it: no figure of any row, which all are of two processes with a GPU each."""
    return one["from"] == one["to"] and word(one["from"]) == "cuda"


class Compared:
    """The entries of one run by what they measure."""

    def __init__(self, entries):
        self.entries = [one for one in entries if "path" in one]

    def find(self, measure, source, target, size):
        return next((one for one in self.entries if (one["measure"], word(one["from"]), word(one["to"]), one["bytes"]) ==
                     (measure, source, target, size) and not on_one_gpu(one)), None)


def mpi_of(one):
    """The time and name of Open MPI with UCX."""
    return next(((peer["us"], f"{peer['name']}, {peer['configuration']}") for peer in one["peers"] if peer["name"].startswith("Open MPI")),
                (None, None))


def rate(one, us):
    return one["bytes"] / us / 1e3 * (2 if one["measure"] == "bidirectional" else 1)


def title(one, what):
    return f"{one['from']} to {one['to']}, {size_text(one['bytes'])}, {what}" + (", ready" if one.get("promised") else "")


def copy_engine(one):
    """What the driver's own copies took there, in us: what kernels store is another limit."""
    return min((us for way, us in one.get("limits", {}).items() if "kernel" not in way), default=one.get("limit"))


def faster(row, one, factor):
    """One way, so many times faster than the MPI."""
    us, name = mpi_of(one)
    found = entry(row, title(one, "one way"), one, one["ours"], "us", f">= {factor:g} x faster than Open MPI + UCX", peer=us, peer_name=name,
                  limit=copy_engine(one), passed=None if us is None else us >= factor * one["ours"])
    return beside_record(found, MPI, one, us, ratio=True, bare=copy_engine(one))


def bare_copy(row, one, limit, factor, spare, target):
    """One way, beside the driver's copy; the peer is shown."""
    us, name = mpi_of(one)
    found = entry(row, title(one, "one way"), one, one["ours"], "us", target, peer=us, peer_name=name, limit=limit,
                  passed=one["ours"] <= factor * (limit + spare))
    return beside_record(found, MPI, one, us, ratio=False, bare=limit)


def beside_limit(row, one, factor, target, *, and_peer=False, stores=False):
    """Bandwidth of at least that share of what the driver reaches, or whatever is best (`stores`); where it is said, of no less than the MPI's, too."""
    limit = one.get("limit") if stores else copy_engine(one)
    us, name = mpi_of(one)
    passed = None if limit is None else rate(one, one["ours"]) >= factor * rate(one, limit)
    if passed and and_peer:
        passed = None if us is None else us >= one["ours"]
    found = entry(row, title(one, "bandwidth" if one["measure"] == "bandwidth" else "both ways at once"), one, rate(one, one["ours"]), "GB/s",
                  target, peer=None if us is None else rate(one, us), peer_name=name, limit=None if limit is None else rate(one, limit),
                  passed=passed)
    return beside_record(found, MPI, one, us, ratio=and_peer, bare=copy_engine(one))


def beside_stores(row, one, factor, target):
    """The same of the best of several streams and of one kernel that makes all copies of a window. A run that knows copy engines alone may
    have too low a limit: a miss beside it is a miss, but nothing is reached."""
    judged = beside_limit(row, one, factor, target, stores=True)
    if not any("batched store kernel" in way for way in one.get("limits", {})):
        judged["pass"] = False if judged["pass"] is False else None
        said = "the limit is the copy engine's alone; not measured: the batched store kernel"
        judged["note"] = f"{judged['note']}; {said}" if judged["note"] else said
    return judged


def between_devices(found):
    small = found.find("latency", "cuda", "cuda", 8)
    if small:
        yield faster("3", small, 2.2)
    for size in (8 * KIB, 64 * KIB, MIB, 4 * MIB):
        one = found.find("latency", "cuda", "cuda", size)
        if one and one.get("limit"):
            yield bare_copy("4", one, copy_engine(one), 1.05, HANDSHAKE_US, "<= 1.05 x (copy to peer + sync + 0.3 us)")
    for measure, sizes, factor in (("bandwidth", (MIB,), 0.95), ("bandwidth", (16 * MIB, 64 * MIB), 0.99),
                                   ("bidirectional", (16 * MIB, 64 * MIB), 0.97)):
        for size in sizes:
            one = found.find(measure, "cuda", "cuda", size)
            if one and size > MIB:
                yield beside_limit("6", one, factor, f">= {factor:g} x copy engine")
            elif one:
                yield beside_stores("6", one, factor, f">= {factor:g} x the best of several-stream copy engine and batched store kernel")
    for size in (MIB, 4 * MIB):
        one = found.find("bandwidth", "cuda", "cuda", size)
        if one and one.get("staged"):
            judged = entry("11", title(one, "bandwidth"), one, rate(one, one["ours"]), "GB/s", ">= 7 x staging by hand",
                           peer=rate(one, one["staged"]), peer_name=STAGED, passed=one["staged"] >= 7 * one["ours"])
            yield beside_record(judged, STAGED, one, one["staged"], ratio=True)


def bare_both_ways(found, source, target):
    """The driver's copies of 8 bytes between a device and page-locked memory: of half a round trip, as ours is, the mean of one out and one in."""
    source, target = source.replace("host", "pinned"), target.replace("host", "pinned")
    both = [copy_engine(one) for one in (found.find("latency", *pair, 8) for pair in ((source, target), (target, source))) if one]
    known = [us for us in both if us]
    return sum(known) / len(known) if known else None


def with_host(found):
    for source, target in (("pinned", "cuda"), ("cuda", "pinned")):
        for size in (4 * MIB, 16 * MIB, 64 * MIB):
            one = found.find("bandwidth", source, target, size)
            if not one:
                continue
            yield beside_limit("7", one, 0.95, ">= 0.95 x PCIe, never below Open MPI + UCX", and_peer=True)
        one = found.find("latency", source, target, 4 * MIB)
        if one:
            yield faster("7", one, 15)
    for source, target in (("host", "cuda"), ("cuda", "host")):
        one = found.find("bandwidth", source, target, 4 * MIB)
        if one:
            us, name = mpi_of(one)
            judged = entry("8", title(one, "bandwidth"), one, rate(one, one["ours"]), "GB/s", ">= 2 x Open MPI + UCX",
                           peer=None if us is None else rate(one, us), peer_name=name, passed=None if us is None else us >= 2 * one["ours"])
            yield beside_record(judged, MPI, one, us, ratio=True, bare=copy_engine(one))
        one = found.find("latency", source, target, 4 * MIB)
        if one:
            yield faster("8", one, 10)
    for source, target in (("pinned", "cuda"), ("cuda", "pinned"), ("host", "cuda"), ("cuda", "host")):
        one, bare = found.find("latency", source, target, 8), bare_both_ways(found, source, target)
        if one and bare:
            yield bare_copy("9", one, bare, 1.1, 0, "<= 1.1 x the bare copy")


WITH_WORKER = {("cuda", "cuda"): ("3", ">= 4.4 x faster than Open MPI + UCX, with the worker"),
               ("host", "cuda"): ("9", "<= 2.7 us and >= 2.7 x faster than Open MPI + UCX, with the worker"),
               ("cuda", "host"): ("9", "<= 2.7 us and >= 2.7 x faster than Open MPI + UCX, with the worker")}


def with_worker(found):
    """Rows 3 and 9 with the worker, where the run beside the peers has it."""
    for pair, (row, target) in WITH_WORKER.items():
        one = found.find("latency", *pair, 8)
        for name, promise in (("worker", ""), ("worker-ready", ", ready")):
            if not one or not one.get(name):
                continue
            us, mpi = mpi_of(one)
            enough = us is not None and us >= (4.4 if row == "3" else 2.7) * one[name] and (row == "3" or one[name] <= 2.7)
            judged = entry(row, title(one, f"one way, with the worker{promise}"), one, one[name], "us", target, peer=us, peer_name=mpi,
                           limit=copy_engine(one), passed=None if us is None else enough)
            yield beside_record(judged, MPI, one, us, ratio=True, bare=copy_engine(one))


# Of a bare pair of kernels that loads its sequence number from device memory, in the same run.
STREAM_SHARE = 1.15


def in_streams(entries):
    """Row 5, where the run beside the peers has messages in streams, too: beside bare kernels and NCCL."""
    for one in entries:
        if one["measure"] != "stream-latency" or one["bytes"] != 8 or on_one_gpu(one):
            continue
        where = f"{one['from']} to {one['to']}, 8 B, one way"
        for figure, limit, peers, how, theirs in (("ours", "limit", "peers", "in a stream", "enqueued"),
                                                  ("graph", "limit_graph", "graph_peers", "in a graph", "captured")):
            us, bare = one[figure], one[limit]
            if bare:
                yield entry("5", f"{where} {how}", one, us, "us", f"<= {STREAM_SHARE} x a bare pair of kernels", limit=bare,
                            passed=us <= STREAM_SHARE * bare)
            peer = one[peers][0] if one[peers] else None
            judged = entry("5", f"{where} {how}, beside NCCL", one, us, "us", f"goal >= 2 x faster than NCCL {theirs}",
                           peer=peer["us"] if peer else None, peer_name=f"{peer['name']}, {theirs}" if peer else None,
                           passed=None if peer is None else peer["us"] >= 2 * us)
            yield beside_record(judged, NCCL, {**one, "measure": theirs, "ours": us}, peer["us"] if peer else None, ratio=True)


def promised(entries):
    """The same of buffers that promise to be ready, as those of an MPI must be: beside it that is like and like. Staged by hand they are not."""
    for one in entries:
        if one.get("ready"):
            yield {**one, "ours": one["ready"], "staged": None, "promised": True}


def from_device_peers(entries):
    for found in (Compared(entries), Compared(list(promised(entries)))):
        yield from between_devices(found)
        yield from with_host(found)
    yield from with_worker(Compared(entries))
    yield from in_streams(entries)


def other_run(found, peer, one, us, name):
    """Shows the peer's time out of another record of that machine: a target is a ratio of one run, so there is no verdict."""
    if us is None:
        found["note"] = f"not measured: {peer}"
        return found
    beside_record(found, peer, one, us, ratio=False)
    said = f"of another run, {one['commit'][:7]}, so no ratio counts: there {us / found['ours']:.2f} x ours"
    found.update(peer=round(us, 4), peer_name=name, note=f"{found['note']}; {said}" if found["note"] else said)
    return found


def enqueued_of(entries):
    """NCCL's 8 bytes as far as they are enqueued, out of a run beside the peers."""
    one = next((one for one in entries if one["measure"] == "enqueued" and one["bytes"] == 8 and not on_one_gpu(one)), None)
    return (one, one["peers"][0]) if one and one["peers"] else (None, None)


def from_streams(reports, peers=()):
    """Row 5: messages in streams, as plain calls and inside a graph. `peers`: the machine's last run beside the peers."""
    for report in reports:
        row = next((row for row in report["rows"] if row["bytes"] == 8), None)
        if not row or on_one_gpu(report):
            continue
        where = f"{report['from']} to {report['to']}, 8 B, one way"
        for figure, limit, how in (("median_us", "limit_us", "in a stream"), ("graph_us", "limit_graph_us", "in a graph")):
            if row.get(limit):
                yield entry("5", f"{where} {how}", report, row[figure], "us", f"<= {STREAM_SHARE} x a bare pair of kernels",
                            limit=row[limit], passed=row[figure] <= STREAM_SHARE * row[limit])
        one, nccl = enqueued_of(peers)
        plain = entry("5", f"{where} in a stream, beside NCCL", report, row["median_us"], "us", "goal >= 2 x faster than NCCL enqueued")
        yield other_run(plain, NCCL, one, *((nccl["us"], f"{nccl['name']}, enqueued") if nccl else (None, None)))
        graph = entry("5", f"{where} in a graph, beside NCCL", report, row["graph_us"], "us", "goal >= 2 x faster than NCCL captured")
        yield {**graph, "note": "not measured in that run: NCCL's send and receive in a graph; tools/gpu_run.sh peers has both"}


# Issue 4, section 3.
ALLREDUCE_SHARE = 0.6


def from_collectives(benches):
    """8 bytes of an allreduce in a stream that is waited for, beside NCCL's own in the same run."""
    def eight(by, benchmark):
        found = next((one for one in benches if one["by"].startswith(by) and one["benchmark"] == benchmark and not on_one_gpu(one)), None)
        row = next((row for row in found["rows"] if row["bytes"] == 8), None) if found else None
        return (found, row["median_us"]) if row else (None, None)
    ours, us = eight("isthmus", "allreduce_on")
    theirs, nccl = eight(NCCL, "allreduce")
    if ours:
        name = theirs["by"] if theirs else None
        judged = entry("5", f"{ours['from']} to {ours['to']}, allreduce of 8 B in a stream, waited for, {ours['ranks']} ranks", ours, us, "us",
                       f"<= {ALLREDUCE_SHARE} x NCCL (issue 4, section 3)", peer=nccl, peer_name=name,
                       passed=None if nccl is None else us <= ALLREDUCE_SHARE * nccl)
        yield beside_record(judged, NCCL, {**ours, "measure": "allreduce", "bytes": 8, "ours": us}, nccl, ratio=True)


def from_workers(reports, peers=()):
    """Rows 3 and 9 with the worker. The MPI has no part in these runs, so `peers` may only show what it took in another one."""
    compared = Compared(peers)
    for report in reports:
        row = next((row for row in report["rows"] if row["bytes"] == 8), None)
        pair = (word(report["from"]), word(report["to"]))
        if not report["worker"] or not row or on_one_gpu(report) or pair not in WITH_WORKER:
            continue
        number, target = WITH_WORKER[pair]
        promised = ", promised that nothing is pending" if report["ready"] else ""
        found = entry(number, f"{report['from']} to {report['to']}, 8 B, one way, with the worker{promised}", report, row["median_us"], "us", target)
        one = compared.find("latency", *pair, 8)
        yield other_run(found, MPI, one, *(mpi_of(one) if one else (None, None)))


# What the rows ask for between two GPUs, how an entry about it is known, and what has to be run for one.
WANTED = (
    ("3", "cuda to cuda, 8 B, one way, with the worker", "cuda:", "with the worker", "tools/gpu_run.sh workers"),
    ("5", "cuda to cuda, 8 B, one way in a stream and in a graph", "cuda:", "8 B, one way in a", "isthmus bench stream-latency"),
    ("5", "cuda to cuda, allreduce of 8 B in a stream, waited for", "cuda:", "allreduce of 8 B", "tools/gpu_run.sh collectives"),
    ("9", "host to cuda, 8 B, one way, with the worker", "host", "with the worker", "tools/gpu_run.sh workers"),
    ("9", "cuda to host, 8 B, one way, with the worker", "to host", "with the worker", "tools/gpu_run.sh workers"),
)


def not_measured(entries, beside):
    """What a machine with a run beside the peers has no figure of: entries without one, that say so."""
    for machine, compared in beside.items():
        if all(on_one_gpu(one) for one in compared if word(one["from"]) == word(one["to"]) == "cuda"):
            continue
        for row, measure, place, words, command in WANTED:
            if not any(one["row"] == row and one["machine"] == machine and place in one["measure"] and words in one["measure"]
                       for one in entries):
                target = next((goal for number, goal in WITH_WORKER.values() if number == row and "worker" in measure), "")
                yield entry(row, measure, compared[0], None, "us", target, note=f"not measured: no record of {command} on this machine has it")


def verdict_lines(entries):
    """What tools/peers/compare_device.py prints below its figures: target and verdict of each row of this run."""
    lines = [f"{'row':4} {'measure':46} {'ours':>9} {'peer':>9} {'limit':>9} {'unit':5} {'reached':7} target"]
    for one in from_device_peers(entries):
        figures = [f"{one[name]:9.2f}" if one[name] is not None else f"{'':9}" for name in ("ours", "peer", "limit")]
        reached = {True: "yes", False: "NO", None: "open"}[one["pass"]]
        lines.append(f"{one['row']:4} {one['measure']:46} {' '.join(figures)} {one['unit']:5} {reached:7} {one['target']}"
                     + (f" ({one['note']})" if one["note"] else ""))
    if len(lines) == 1:
        lines.append("none is judged: two ranks on one GPU, or no row of the targets was measured")
    return lines


def stream_table(files):
    lines = []
    for file in files:
        for report in json.loads(file.read_text()):
            lines += [f"### Messages in streams in [{file.name}]({file.name})", "",
                      f"{report['from']} to {report['to']}; {report['machine']}; commit {report['commit']}; {report['date'][:10]}. "
                      "Microseconds, half a round trip; the limit is a bare pair of kernels.", "",
                      "| bytes | plain calls (p10 to p90) | limit | in a graph | limit |", "|---|---|---|---|---|"]
            for row in report["rows"]:
                limits = [f"{row[name]:.2f}" if row.get(name) else "" for name in ("limit_us", "limit_graph_us")]
                lines.append(f"| {row['bytes']} | {row['median_us']:.2f} ({row['p10_us']:.2f} to {row['p90_us']:.2f}) | {limits[0]} | "
                             f"{row['graph_us']:.2f} | {limits[1]} |")
            lines.append("")
    return lines


def device_peers_table(files):
    lines = []
    for file in files:
        entries = Compared(json.loads(file.read_text())).entries
        if not entries:
            continue
        first = entries[0]
        kernels = any("kernel" in way for one in entries for way in one.get("limits", {}))
        stores = ", or, where they are quicker, bare store kernels" if kernels else ""
        lines += [f"### Device memory beside limits and peers in [{file.name}]({file.name})", "",
                  f"{first['machine']}; commit {first['commit']}; {first['date'][:10]}. Microseconds: latency is half a round trip, the others "
                  f"a window divided by its 64 messages; the limit is the driver's own copies in the same shape{stores}.", "",
                  "| measure | from | to | bytes | ours (p10 to p90) | limit | ours / limit | by hand | peers | path |", "|---|---|---|---|---|---|---|---|---|---|"]
        for one in entries:
            peers = ", ".join(f"{peer['name']} {peer['us']:.2f} ({peer['configuration']})" for peer in one["peers"])
            limit, staged = one.get("limit"), one.get("staged")
            ready = f", ready {one['ready']:.2f}" if one.get("ready") else ""
            cells = [one["measure"], one["from"], one["to"], str(one["bytes"]), f"{one['ours']:.2f} ({one['p10']:.2f} to {one['p90']:.2f}){ready}",
                     f"{limit:.2f}" if limit else "", f"{one['ours'] / limit:.2f}" if limit else "", f"{staged:.2f}" if staged else "",
                     peers, one["path"]]
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    return lines
