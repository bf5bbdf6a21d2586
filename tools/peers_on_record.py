"""What the peers reached when the targets were written, and what is known of one that is slower in a later run.

A slow peer makes ours look good, so no ratio to one that is over 10 % slower than on record counts before that is explained. The figures
are those of the project's TARGETS (2026-11-21, two H200, two processes with a GPU each) and, of NCCL's allreduce, of issue 4. Explained is
what the run itself proves and nothing else: that the driver's own copy was slower there, too, or that the peer was as fast as it; and of
calls in kernels that a bare barrier was.
"""

KIB, MIB = 1 << 10, 1 << 20
# Slower than this many times what is on record wants an explanation.
TOLERATED = 1.1

MPI, NCCL, NVSHMEM, STAGED = "Open MPI", "NCCL", "NVSHMEM", "staged by hand"
# Peer, measure, from, to: size and figure, a time in us. Between a device and host memory the record has one figure for both ways.
TIMES = {
    (MPI, "latency", "cuda", "cuda"): {8: 14.6, 8 * KIB: 7.9, 64 * KIB: 8.0, MIB: 10.8, 4 * MIB: 19.4},
    (MPI, "latency", "host", "cuda"): {8: 7.3, 64 * KIB: 42.6, MIB: 529, 4 * MIB: 2012},
    (MPI, "latency", "pinned", "cuda"): {8: 7.3, 64 * KIB: 38, 4 * MIB: 1880},
    (STAGED, "latency", "cuda", "cuda"): {8: 14.2, 4 * MIB: 468},
    (NCCL, "enqueued", "cuda", "cuda"): {8: 6.6},
    (NCCL, "latency", "cuda", "cuda"): {8: 9.9},
    (NCCL, "allreduce", "cuda", "cuda"): {8: 13.6},
    (NVSHMEM, "put_signal", "cuda", "cuda"): {8: 2.15, 4 * KIB: 2.26, 16 * KIB: 2.5, 64 * KIB: 3.7},
    (NVSHMEM, "barrier", "cuda", "cuda"): {0: 3.26},
}
# The same in GB/s; of the 17 to 20 with ordinary host memory the lower end, which was reached that day, too.
RATES = {
    (MPI, "bandwidth", "cuda", "cuda"): {64 * KIB: 21, MIB: 172, 4 * MIB: 285, 64 * MIB: 383},
    (MPI, "bandwidth", "host", "cuda"): {4 * MIB: 17},
    (MPI, "bandwidth", "pinned", "cuda"): {4 * MIB: 52},
    (STAGED, "bandwidth", "cuda", "cuda"): {4 * MIB: 10.3},
    (NCCL, "bandwidth", "cuda", "cuda"): {MIB: 87, 4 * MIB: 204, 64 * MIB: 342},
}
# The driver's copy and the wait for it, in us.
BARE = {
    ("cuda", "cuda"): {8: 6.1, 64 * KIB: 6.6, MIB: 9.2, 4 * MIB: 17.2},
    ("cuda", "pinned"): {8: 6.9},
    ("pinned", "cuda"): {8: 5.4},
}
# The bare push barrier in a kernel, in us.
BARE_BARRIER = 1.44


def word(place):
    return place.split(":")[0]


def us_on_record(peer, one):
    """The peer's time for what `one` measures, or None."""
    for places in ((word(one["from"]), word(one["to"])), (word(one["to"]), word(one["from"]))):
        key, size = (peer, one["measure"], *places), one["bytes"]
        if size in TIMES.get(key, {}):
            return TIMES[key][size]
        if size in RATES.get(key, {}):
            return size / RATES[key][size] / 1e3
    return None


def bare_on_record(one):
    """The driver's copy of that size; of one in between it took no longer than of the next larger one on record."""
    found = BARE.get((word(one["from"]).replace("host", "pinned"), word(one["to"]).replace("host", "pinned")), {})
    sizes = [size for size in found if size >= one["bytes"]]
    return found[min(sizes)] if sizes else None


def explanation(peer, one, slower, bare):
    """Why the peer took `slower` times as long as on record, if the run proves it. `bare`: the driver's copy in that run, in us; of NVSHMEM
    in kernels, the bare push barrier."""
    if peer == NVSHMEM:
        if bare and slower <= TOLERATED * bare / BARE_BARRIER:
            return (f"a bare push barrier, a fence and a flag over the link, took {bare:.2f} us in that run, where {BARE_BARRIER} are on record, "
                    f"which leaves {100 * (slower * BARE_BARRIER / bare - 1):.0f} %")
        return None
    us, recorded = one["peer_us"], bare_on_record(one)
    # NCCL copies with kernels, and what is staged is copied twice.
    if peer != MPI or not bare:
        return None
    if us <= TOLERATED * bare:
        return f"the driver's own copies took {bare:.1f} us in that run, and the peer is at most 10 % behind them"
    if one["measure"] == "latency" and recorded and bare > recorded and slower <= TOLERATED * bare / recorded:
        return (f"the driver's own copy took {bare:.2f} us in that run, where at most {recorded:g} are on record, which leaves "
                f"{100 * (slower * recorded / bare - 1):.0f} %")
    return None


def doubt(peer, one, us, bare=None):
    """Of a peer that took `us` for what `one` measures: (what is to be said, whether it is explained), or None where nothing is."""
    recorded = us_on_record(peer, one)
    if us is None or recorded is None or us <= TOLERATED * recorded:
        return None
    slower = us / recorded
    why = explanation(peer, {**one, "peer_us": us}, slower, bare)
    said = f"{peer} was {100 * (slower - 1):.0f} % slower than the {recorded:.4g} us on record: "
    return (said + why, True) if why else (f"{said}peer slower than recorded, not explained", False)


def beside_record(entry, peer, one, us, *, ratio, bare=None):
    """Says so in the entry. `ratio`: the verdict is one on the peer. A miss beside a slow peer is one beside a fast one, too, and stays."""
    found = doubt(peer, one, us, bare)
    if found:
        said, explained = found
        if ratio and not explained and entry["pass"]:
            entry["pass"] = None
            if one.get("ours"):
                said += f"; beside the figure on record ours is {us_on_record(peer, one) / one['ours']:.1f} x faster"
        entry["note"] = said
    return entry
