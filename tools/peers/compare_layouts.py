#!/usr/bin/env python3
"""Layouts of Isthmus beside the derived types of the MPIs of this machine: packing, and messages there and back, in rounds in which each runs
in turn.

    tools/peers/compare_layouts.py ISTHMUS RAW_FOLDER KIND WHEELS_FOLDER

Called by `tools/compare_mpi.sh BUILD layouts`, whose KIND is host, and by `tools/gpu_run.sh layouts` for cuda. One round is `isthmus bench pack`,
`isthmus bench layout`, and tools/peers/mpi_layouts.c by every MPI in each of its ways; on the host all on the same two processors. RAW_FOLDER
gets mpi_layouts-KIND.json, with the medians of the rounds and of every MPI its best way, and, unless there is a report of messages already, what
ours wrote in the last round (layout-mpi-KIND.json), for tools/layout_record.py. An MPI that crashes on a shape is named with its rows
up to there; one that does not start is left out. ISTHMUS_BENCH_OPTIONS may be --quick, which shortens both sides' loops; ISTHMUS_ROUNDS is
how many rounds there are (3).
"""
import json
import os
import pathlib
import statistics
import sys
import tempfile

from compare import processors
from mpis import MPICH, OPEN_MPI, anywhere, best_way, find_folders, run, version_of
from compare_device import WAYS as DEVICE_WAYS

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
SHAPES = ["vector", "subarray", "indexed", "struct"]
SIZES = [64 << 10, 1 << 20, 4 << 20]
# Of device memory an MPI may copy each block by itself, 2 us or more for each.
BLOCKS = {"host": [16, 256, 4096], "cuda": [256, 4096]}
HOST_WAYS = ("default", "pml ob1", "pml ucx")


def listed(numbers):
    return ",".join(map(str, numbers))


class Peer:
    """One MPI, its program, and the ways to start it that work here."""

    def __init__(self, name, folder, kind, work):
        self.name, self.mpirun, self.title, self.left_out = name, str(folder / "mpirun"), name, []
        _, self.open_mpi = version_of(self.mpirun)
        known = OPEN_MPI if self.open_mpi else MPICH
        self.ways = dict(DEVICE_WAYS) if kind == "cuda" else {way: known[way] for way in HOST_WAYS if way in known}
        self.kind, self.program, self.times = kind, str(work / f"mpi_layouts-{name.replace(' ', '-')}"), {}
        said, why = run([str(folder / "mpicc"), "-O2", "-o", self.program, str(TOP / "tools/peers/mpi_layouts.c"), "-ldl"], {}, 120)
        if said is None:
            sys.exit(f"compare_layouts: {folder / 'mpicc'} does not compile the peer's program: {why}")

    def measure(self, way, shape, where, quick):
        options, variables = anywhere(self.open_mpi, *self.ways[way])
        if where:
            variables = {**variables, "PEER_PROCESSORS": listed(where)}
        ucx = os.environ.get("PEER_UCX")
        if ucx and self.kind == "cuda":
            variables = {**variables, "LD_LIBRARY_PATH": f"{ucx}/lib:{os.environ.get('LD_LIBRARY_PATH', '')}", "UCX_MODULE_DIR": f"{ucx}/lib/ucx"}
            options = [*options, "-x", "LD_LIBRARY_PATH", "-x", "UCX_MODULE_DIR"]
        with tempfile.NamedTemporaryFile("w+") as file:
            # What came before a crash is in the file.
            command = ["sh", "-c", 'exec "$@" >"$0"', file.name, self.mpirun, "-n", "2", *options, self.program, self.kind, shape, listed(SIZES),
                       listed(BLOCKS[self.kind]), *(["quick"] if quick else [])]
            done, why = run(command, variables, 120)
            lines = file.read().splitlines()
        for line in lines:
            if line.startswith("{"):
                self.title = json.loads(line + "]}")["peer_name"]
            elif line.startswith(" {"):
                row = json.loads(line.rstrip(","))
                for time in ("pack_us", "unpack_us", "median_us"):
                    if time in row:
                        key = (shape, row["block"], row["bytes"], time, row.get("source"), row.get("into"))
                        self.times.setdefault(key, {}).setdefault(way, []).append(row[time])
        if done is None:
            rows = sum(line.startswith(" {") for line in lines)
            self.left_out.append(f"{way}, {shape}: {why}, after {rows} rows")
            print(f"left out: {self.name}, {self.left_out[-1]}", file=sys.stderr)
        return done is not None


class Ours:
    def __init__(self, isthmus, kind, raw, work):
        self.isthmus, self.kind, self.raw, self.work, self.times, self.about = isthmus, kind, raw, work, {}, {}

    def bench(self, name, shape, where, options):
        file = self.work / f"{name}.json"
        command = [self.isthmus, "bench", name, shape, "--kind", self.kind, "--sizes", listed(SIZES), "--blocks", listed(BLOCKS[self.kind]), "--json", str(file), *options]
        said, why = run(command, {}, 300, set(where) if where else None)
        if said is None:
            sys.exit(f"compare_layouts: {' '.join(command)}: {why}")
        report = json.loads(file.read_text())
        self.about = {word: report[word] for word in ("machine", "commit", "date")}
        return report

    def keep(self, row, time, value, source=None, into=None):
        self.times.setdefault((row["shape"], row["block"], row["bytes"], time, source, into), []).append(value)

    def measure(self, shape, where, options, reports):
        for row in self.bench("pack", shape, where, options)["rows"]:
            for time in ("pack_us", "unpack_us"):
                self.keep(row, time, row[time])
        report = self.bench("layout", shape, where, options)
        for row in report["rows"]:
            self.keep(row, "median_us", row["median_us"], row["source"], row["into"])
            if row["source"] == "strided" and row["into"] == "contiguous":  # once of the three that have it
                self.keep(row, "median_us", row["contiguous_us"], "contiguous", "contiguous")
        reports.append(report)


def best_of(peers, key):
    found = [{"peer": peer.name, "name": peer.title, **best_way(peer.times[key])} for peer in peers if key in peer.times]
    return min(found, key=lambda one: one["us"], default=None)


def compared(ours, peers):
    for key, all_of_ours in ours.times.items():
        shape, block, size, time, source, into = key
        best = best_of(peers, key)
        row = {"shape": shape, "block": block, "bytes": size, "what": time.removesuffix("_us") if source is None else f"{source} to {into}",
               "ours_us": statistics.median(all_of_ours), "ours_all": all_of_ours, "peer_us": None, "peer_name": None}
        if best is not None:
            row.update({"peer_us": best["us"], "peer_all": best["all"], "peer_name": f"{best['name']} ({best['peer']}, {best['configuration']})"})
        yield row


def main():
    isthmus, raw, kind, wheels = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], pathlib.Path(sys.argv[4])
    options = os.environ.get("ISTHMUS_BENCH_OPTIONS", "").split()
    rounds = int(os.environ.get("ISTHMUS_ROUNDS", "3"))
    where = processors() if kind == "host" else None
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        peers = [Peer(name, folder, kind, work) for name, folder in find_folders(wheels).items() if kind == "host" or name == "system"]
        if not peers:
            print("compare_layouts: no MPI is on this machine; nothing was measured")
            sys.exit(77)
        ours = Ours(isthmus, kind, raw, work)
        for number in range(rounds):
            reports = []
            for shape in SHAPES:
                ours.measure(shape, where, options, reports)
                for peer in peers:
                    for way in list(peer.ways):
                        # One that gives no row of the first shape does not work here, and one that crashed may be slow to do so again.
                        if not peer.measure(way, shape, where, "--quick" in options) and not any(way in times for times in peer.times.values()):
                            del peer.ways[way]
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
    raw.mkdir(parents=True, exist_ok=True)
    if not any(raw.glob("layout*.json")):
        (raw / f"layout-mpi-{kind}.json").write_text(json.dumps({**reports[0], "rows": [row for report in reports for row in report["rows"]]}, indent=1) + "\n")
    found = {**ours.about, "kind": kind, "rounds": rounds, "quick": "--quick" in options, "left_out": [f"{peer.name}: {what}" for peer in peers for what in peer.left_out],
             "rows": list(compared(ours, peers))}
    (raw / f"mpi_layouts-{kind}.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        print(__doc__)
        sys.exit(2)
    main()
