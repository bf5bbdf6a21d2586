#!/usr/bin/env python3
"""Isthmus beside the MPIs of this machine, and UCX without one: rounds in which each runs in turn, on the same two processors.

    tools/peers/compare.py ISTHMUS OUT_FILE WHEELS_FOLDER

Called by tools/compare_mpi.sh, whose head says what is measured and how that is steered. Of every peer several configurations are
measured; per call and size the fastest counts, and its name says which it was. The fastest of many is so by luck, too: what was of windows
is measured as often again, in turn with ours, and compared by that.
"""
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

from mpis import best_way, find_peers, run
from ucx_peer import find_ucx

OURS = {"latency": ["latency", "--min", "8", "--max", "1MiB"], "bandwidth": ["bandwidth", "--min", "4KiB", "--max", "4MiB"],
        "bandwidth fresh": ["bandwidth", "--fresh", "--min", "4KiB", "--max", "1MiB"],
        "bandwidth shared": ["bandwidth", "--min", "32KiB", "--max", "4MiB"],
        "rate": ["rate"], "latency single": ["latency", "--min", "8", "--max", "8"], "rate single": ["rate"], **{call: ["collective", call, "--min", "8"] for call in ("allreduce", "bcast", "allgather", "alltoall")}}
# Memory as malloc gives it is what the MPIs have. By the last word of a call: that which ist_memory_alloc shares with the other rank; and
# a program that has promised to call from one thread at a time.
ORDINARY = {"ISTHMUS_SHARED_HEAP": "0"}
VARIANTS = {"shared": {}, "single": {**ORDINARY, "ISTHMUS_THREADS": "single"}}


def variables_of(call):
    return VARIANTS.get(call.split()[-1], ORDINARY)


def call_of_peers(call):
    return " ".join(word for word in call.split() if word not in VARIANTS)


def processors():
    """Two cores that this process may use, or those of ISTHMUS_PROCESSORS (A,B)."""
    if "ISTHMUS_PROCESSORS" in os.environ:
        return [int(word) for word in os.environ["ISTHMUS_PROCESSORS"].split(",")]
    cores = {}
    for number in sorted(os.sched_getaffinity(0)):
        siblings = pathlib.Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list")
        cores.setdefault(siblings.read_text() if siblings.exists() else str(number), number)
    if len(cores) < 2:
        sys.exit("compare_mpi: two cores are needed, one for each rank, and this process may use one")
    return list(cores.values())[:2]


class Distance:
    """How far apart the two processors are, as the way of a cache line between them tells: in a virtual machine that changes within
    minutes, tenfold (the same core, the same cache, or neither), and with it every figure. All that is compared is measured while they are as far
    apart as most often at the start."""

    PATIENCE = 300  # seconds of waiting, in all
    LOOKS = 12  # at the start, a second from each other: they may be where they rarely are
    ALIKE = 1.4

    def __init__(self, isthmus, where, file):
        self.command = [isthmus, "bench", "limits", "--kind", "host", "--sizes", "8", "--json", str(file)]
        self.where, self.file, self.waited, self.lines = where, file, 0, []
        looks = [self.look_later() for _ in range(self.LOOKS)]
        groups = [[line for line in looks if self.near(line, middle)] for middle in looks]
        self.wanted = statistics.median(max(groups, key=len))

    def look_later(self):
        time.sleep(1)
        return self.line()

    def near(self, line, wanted):
        return wanted / self.ALIKE < line < wanted * self.ALIKE

    def line(self):
        said, why = run(self.command, {}, 60, set(self.where))
        if said is None:
            sys.exit(f"compare_mpi: {' '.join(self.command)}: {why}")
        line = json.loads(self.file.read_text())[0]["limits"]["cache_line_us"]
        if not line:
            sys.exit(f"compare_mpi: no cache line could be sent between processors {self.where}; may this process use both?")
        return line

    def as_wanted(self):
        if not self.alike():
            return True
        self.lines.append(self.line())
        return self.near(self.lines[-1], self.wanted)

    def alike(self):
        """Was, and is, all that is kept measured at one distance?"""
        return self.waited < self.PATIENCE

    def measured(self, measure, keep):
        """Keeps what was measured while they were as at the start, before and behind it; once patience is over, whatever it was."""
        while True:
            if self.as_wanted():
                found = measure()
                if found is None:
                    return
                if self.as_wanted():
                    keep(found)
                    return
            self.waited += 3
            time.sleep(3)

    def told(self):
        text = f"a cache line took {self.wanted:.3f} us from one processor to the other most often at the start"
        if not self.alike():
            return text + f", and {min(self.lines):.3f} to {max(self.lines):.3f} later, too long for patience: what is compared may be of several"
        return text + f"; {self.waited} s were waited until it did again" if self.waited else text


class Ours:
    """What `isthmus bench` said in every round."""

    def __init__(self, isthmus):
        self.isthmus, self.about, self.rows, self.again, self.limits = isthmus, {}, {}, {}, {}

    def measure(self, call, where, file):
        said, why = run([self.isthmus, "bench", *OURS[call], "--json", str(file)], variables_of(call), 240, set(where))
        if said is None:
            sys.exit(f"compare_mpi: isthmus bench {' '.join(OURS[call])}: {why}")
        bench = json.loads(file.read_text())
        if sorted(bench["limits"]["processors"]) != sorted(where):
            sys.exit(f"compare_mpi: the ranks of isthmus ran on processors {bench['limits']['processors']}, not on {where}")
        return bench

    def keep_again(self, call, bench):
        for row in bench["rows"]:
            self.again.setdefault((call, row["bytes"]), []).append(row["median_us"])

    def keep(self, call, bench):
        self.about = {name: bench[name] for name in ("machine", "commit", "date", "ranks")}
        if bench["limits"].get("cache_line_us"):
            self.limits.setdefault(call, []).append(bench["limits"]["cache_line_us"])
        for row in bench["rows"]:
            self.rows.setdefault((call, row["bytes"]), []).append(row)

    def entry(self, key):
        """The median of the rounds, of the limits, too."""
        call, size = key
        times = [row["median_us"] for row in self.rows[key]]
        found = {"measure": call, "bytes": size, "unit": "us", "ours": statistics.median(times), "ours_all": times}
        for name in ("limit_gbs", "two_copies_gbs", "read_gbs", "one_copy_gbs"):
            said = [row[name] for row in self.rows[key] if row.get(name)]
            if said:
                found[name] = statistics.median(said)
        if call == "latency" and self.limits.get(call):
            found["cache_line_us"] = statistics.median(self.limits[call])
        return found


def quickest(peers, key):
    """Of each peer its fastest way of that call and size, the fastest first; UCX has no calls of all ranks."""
    return sorted((peer.best(key) for peer in peers if key in peer.times), key=lambda one: one["us"])


def once_more(ours, peers, key, found):
    """Ours and the fastest way of the rounds, as they were measured again; each of `found` that was has its own time beside the first ones."""
    mine = ours.again.get(key)
    for one in found:
        theirs = next(peer for peer in peers if peer.name == one["peer"]).again.get((call_of_peers(key[0]), key[1]), {}).get(one["configuration"])
        if mine and theirs:
            one["again_us"], one["again_all"] = statistics.median(theirs), theirs
    if "again_us" not in found[0]:
        return {}
    return {"again": {"ours": statistics.median(mine), "ours_all": mine, "peer": found[0]["again_us"], "peer_all": found[0]["again_all"]}}


def report(ours, peers, alike, out):
    measured = set().union(*(peer.times for peer in peers))
    keys = sorted((call, size) for call, size in ours.rows if (call_of_peers(call), size) in measured)
    entries = []
    print(f"{'call':16} {'bytes':>8} {'ours us':>10}" + "".join(f" {peer.name + ' us':>16}" for peer in peers) +
          f" {'best/ours':>9}  best peer")
    for key in keys:
        found = quickest(peers, (call_of_peers(key[0]), key[1]))
        name = f"{found[0]['name']} ({found[0]['peer']}, {found[0]['configuration']})"
        entry = ours.entry(key)
        entry |= once_more(ours, peers, key, found)
        entries.append({**entry, "peer": found[0]["us"], "peer_all": found[0]["all"], "peer_name": name, "peers": found, "alike": alike, **ours.about})
        us = {one["peer"]: one["us"] for one in found}
        print(f"{key[0]:16} {key[1]:8} {entry['ours']:10.3f}" + "".join(f" {us[peer.name]:16.3f}" if peer.name in us else f" {'-':>16}" for peer in peers) +
              f" {found[0]['us'] / entry['ours']:9.2f}  {name}" +
              (f"; again {entry['again']['ours']:.3f} and {entry['again']['peer']:.3f}" if "again" in entry else ""))
    out.write_text(json.dumps(entries, indent=1) + "\n")
    print(f"wrote {out}")


def all_rounds(ours, peers, where, distance, file):
    for number in range(int(os.environ.get("ISTHMUS_ROUNDS", "3"))):
        for call in OURS:
            distance.measured(lambda call=call: ours.measure(call, where, file), lambda found, call=call: ours.keep(call, found))
        for peer in peers:
            for way in list(peer.ways):
                distance.measured(lambda peer=peer, way=way: peer.measure(way, where),
                                  lambda found, peer=peer, way=way: peer.keep(way, found))
        print(f"round {number + 1}: processors {where[0]} and {where[1]}, " +
              ", ".join(f"{peer.name} in {len(peer.ways)} ways" for peer in peers), file=sys.stderr)
    print(f"compare_mpi: {distance.told()}", file=sys.stderr)


def measure_again(ours, peers, where, distance, file):
    """Windows of each size, and the rate, of the way that was the fastest at any of them, and of Open MPI's at the rate, and ours, in turn."""
    calls = [call for call in OURS if call_of_peers(call) in ("bandwidth", "bandwidth fresh", "rate")]
    keys = [key for key in set().union(*(peer.times for peer in peers)) if key[0] in ("bandwidth", "bandwidth fresh", "rate")]
    first = [one for key in keys for one in quickest(peers, key)[:1]]
    first += [one for key in keys if key[0] == "rate" for one in [each for each in quickest(peers, key) if each["name"].startswith("Open MPI")][:1]]
    wanted = sorted({(one["peer"], one["configuration"]) for one in first})
    for number in range(int(os.environ.get("ISTHMUS_ROUNDS", "3"))):
        for call in calls:
            distance.measured(lambda call=call: ours.measure(call, where, file), lambda found, call=call: ours.keep_again(call, found))
        for name, way in wanted:
            peer = next(peer for peer in peers if peer.name == name)
            if way in peer.ways:
                distance.measured(lambda peer=peer, way=way: peer.measure(way, where, ["windows"]),
                                  lambda found, peer=peer, way=way: peer.keep(way, found, again=True))
        print(f"windows again, round {number + 1}: {', '.join(f'{name}, {way}' for name, way in wanted)}", file=sys.stderr)
    print(f"compare_mpi: {distance.told()}", file=sys.stderr)


def main():
    isthmus, out, wheels = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    where, ours = processors(), Ours(isthmus)
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        peers = find_peers(wheels, work, find_ucx(wheels, work))
        if not peers:
            print("compare_mpi: neither an MPI nor UCX is on this machine; nothing was measured")
            sys.exit(77)
        distance = Distance(isthmus, where, work / "limits.json")
        all_rounds(ours, peers, where, distance, work / "ours.json")
        peers = [peer for peer in peers if peer.times]
        if not peers:
            sys.exit("compare_mpi: no peer could be started; nothing was compared")
        measure_again(ours, peers, where, distance, work / "ours.json")
        report(ours, peers, distance.alike(), out)


if __name__ == "__main__":
    main()
