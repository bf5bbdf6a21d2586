#!/usr/bin/env python3
"""Collective calls between host buffers of several ranks: ours, in memory that all ranks see and by messages alone, beside the MPIs of this machine.

    tools/compare_collectives.py BUILD OUT [RANKS ...]     BUILD: a folder with bin/isthmus; OUT: a folder; RANKS: 2, 4 and so on

Each in turn, ISTHMUS_ROUNDS times (3), as tools/peers/mpi_bench.c and `isthmus bench collective` do it: the time of a call, an untimed
barrier after it, averaged over ranks. Of the rounds the median counts, of the MPIs' configurations the fastest (tools/peers/mpis.py lists both:
the MPI on PATH, and those that tools/peers/get_mpi_wheels.sh has put into BUILD/peers). Two ranks are measured while their processors are as far apart as at the start; the record
says whether they always were ("alike"). Writes OUT/host_collectives.json, which tools/record_measurements.py files. Where there is no MPI, or one of
its configurations gives nothing, that is said, and the rest stands alone.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "tools/peers"))
from compare import Distance, processors  # noqa: E402
from mpis import find_peers  # noqa: E402

SIZES = (8, 1024, 16384, 65536, 1 << 20)
CALLS = ("allreduce", "reduce", "bcast", "allgather", "alltoall", "reduce_scatter", "gather", "scatter", "scan")


def run(command, environment=None, limit=120):
    """What it printed; none where it failed or took longer, which is said."""
    try:
        done = subprocess.run(command, env={**os.environ, **(environment or {})}, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        print(f"compare_collectives: gave up after {limit} s: {' '.join(command)}", file=sys.stderr)
        return None
    if done.returncode != 0:
        print(f"compare_collectives: status {done.returncode}: {' '.join(command)}\n{done.stderr.strip()[-500:]}", file=sys.stderr)
    return done.stdout if done.returncode == 0 else None


def ours(isthmus, ranks, work, profile, call):
    """{(call, bytes): (us, path)}, and what the report says of the machine."""
    found = {}
    file = work / "one.json"
    file.unlink(missing_ok=True)
    sizes = [] if call == "barrier" else ["--min", "8", "--max", str(SIZES[-1])]
    run([isthmus, "run", "-n", str(ranks), isthmus, "bench", "collective", call, *sizes, "--json", str(file)], {"ISTHMUS_PROFILE": profile})
    if not file.exists():
        return None
    report = json.loads(file.read_text())
    for row in report["rows"]:
        if call == "barrier" or row["bytes"] in SIZES:
            found[call, 8 if call == "barrier" else row["bytes"]] = row["median_us"], row.get("path", "")
    return found, {key: report[key] for key in ("machine", "commit", "date")}


class Kept:
    """By call and size: the times of our two ways, and those of each MPI's configurations."""

    def __init__(self):
        self.ways, self.paths, self.theirs, self.about = {}, {}, {}, {}

    def keep(self, way, found):
        times, self.about = found
        for key, (us, path) in times.items():
            self.ways.setdefault(key, {}).setdefault(way, []).append(us)
            if way == "shared":
                self.paths[key] = path

    def keep_theirs(self, peer, way, found):
        for row in found["rows"]:
            name = f"{peer.title} ({peer.name}, {way})"
            self.theirs.setdefault((row["benchmark"], row["bytes"]), {}).setdefault(name, []).append(row["median_us"])

    def row(self, key):
        mine = self.ways[key]
        tried = {name: statistics.median(times) for name, times in self.theirs.get(key, {}).items()}
        best = min(tried, key=tried.get) if tried else None
        return {"call": key[0], "bytes": key[1], "path": self.paths[key], "us": statistics.median(mine["shared"]), "all": mine["shared"],
                "messages_us": statistics.median(mine["messages"]) if "messages" in mine else None, "messages_all": mine.get("messages"),
                "peer_us": tried.get(best), "peer_all": self.theirs[key][best] if best else None, "peer_name": best, "tried": tried, **self.about}


def all_rounds(isthmus, ranks, work, messages, peers):
    """What was kept, and whether it was measured at one distance; of more than two ranks nobody looks."""
    where = processors()
    distance = Distance(isthmus, where, work / "line.json") if ranks == 2 else None
    kept = Kept()

    def measured(measure, keep):
        if distance:
            distance.measured(measure, keep)
        elif (found := measure()) is not None:
            keep(found)

    for _ in range(int(os.environ.get("ISTHMUS_ROUNDS", "3"))):
        for call in (*CALLS, "barrier"):
            for way, profile in (("shared", "builtin"), ("messages", str(messages))):
                measured(lambda call=call, profile=profile: ours(isthmus, ranks, work, profile, call), lambda found, way=way: kept.keep(way, found))
        for peer in peers:
            for way in list(peer.ways):
                measured(lambda peer=peer, way=way: peer.measure(way, where, ["collectives"], ranks),
                         lambda found, peer=peer, way=way: kept.keep_theirs(peer, way, found))
    if distance:
        print(f"compare_collectives: {distance.told()}", file=sys.stderr)
    return kept, distance.alike() if distance else None


def main(build, out, *wanted):
    isthmus, work = str(pathlib.Path(build) / "bin" / "isthmus"), pathlib.Path(out)
    work.mkdir(parents=True, exist_ok=True)
    messages = work / "by_messages_profile.json"
    messages.write_text(json.dumps({"isthmus_profile": 1, "machine": "any", "note": "built in, but for shared memory", "message": {},
                                    "collective": {"shared_up_to": 0}}))
    rows = []
    for ranks in (int(number) for number in wanted or ("2",)):
        kept, alike = all_rounds(isthmus, ranks, work, messages, find_peers(pathlib.Path(build) / "peers", work))
        for key in sorted(key for key, ways in kept.ways.items() if "shared" in ways):
            row = {**kept.row(key), "ranks": ranks, "alike": alike}
            rows.append(row)
            beside = f", {row['peer_name']} {row['peer_us']:.3f}" if row["peer_us"] else ""
            print(f"{ranks:3d} ranks {row['call']:10s} {row['bytes']:8d} B {row['us']:10.3f} us ({row['path']}), by messages {row['messages_us']}{beside}", flush=True)
        (work / "host_collectives.json").write_text(json.dumps(rows, indent=1) + "\n")
    messages.unlink()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
