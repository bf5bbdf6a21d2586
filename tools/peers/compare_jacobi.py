#!/usr/bin/env python3
"""The Jacobi example in host memory beside the same by the MPIs of this machine, two ranks, in rounds in which each runs in turn.

    tools/peers/compare_jacobi.py BUILD OUT_FILE WHEELS_FOLDER

Called by `tools/compare_mpi.sh BUILD jacobi`. Both sides are the example's own sweep; what differs is who carries rows and norms
(tools/peers/jacobi_mpi.cpp). PEER_SIZE is the square's side (4096) and PEER_ITERATIONS how many there are (1000); ISTHMUS_ROUNDS how many rounds (3), of
which the median counts, of every MPI in its best way. The norms have to be the same but for the last bits.
"""
import json
import os
import pathlib
import statistics
import sys
import tempfile

from compare import processors
from mpis import MPICH, OPEN_MPI, anywhere, best_way, find_folders, run, version_of

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
WAYS = ("default", "pml ob1", "pml ucx")


class Peer:
    def __init__(self, name, folder, build, work):
        self.name, self.mpirun, self.title, self.times, self.rates = name, str(folder / "mpirun"), name, {}, {}
        _, self.open_mpi = version_of(self.mpirun)
        known = OPEN_MPI if self.open_mpi else MPICH
        self.ways = {way: known[way] for way in WAYS if way in known}
        self.program = str(work / f"jacobi_mpi-{name.replace(' ', '-')}")
        library = (build / "lib").resolve()
        said, why = run([str(folder / "mpicxx"), "-std=c++20", "-O3", "-ffp-contract=off", f"-I{TOP}/include", f"-I{TOP}/examples", "-o", self.program,
                         str(TOP / "tools/peers/jacobi_mpi.cpp"), str(TOP / "examples/common/stencil.cpp"), f"-L{library}", "-listhmus",
                         f"-Wl,-rpath,{library}"], {}, 180)
        if said is None:
            sys.exit(f"compare_jacobi: {folder / 'mpicxx'} does not compile the peer's program: {why}")

    def measure(self, way, size, iterations, where):
        options, variables = anywhere(self.open_mpi, *self.ways[way])
        said, why = run([self.mpirun, "-n", "2", *options, self.program, str(size), str(size), str(iterations), "1"],
                        {**variables, "PEER_PROCESSORS": ",".join(map(str, where))}, 300)
        if said is None:
            print(f"left out: {self.name}, {way}: {why}", file=sys.stderr)
            del self.ways[way]
            return None
        found = json.loads(said)
        self.title = found["peer_name"]
        self.times.setdefault(way, []).append(found["seconds"] * 1e6)
        return found


def main():
    build, out, wheels = (pathlib.Path(word) for word in sys.argv[1:])
    size, iterations = int(os.environ.get("PEER_SIZE", "4096")), int(os.environ.get("PEER_ITERATIONS", "1000"))
    rounds, where = int(os.environ.get("ISTHMUS_ROUNDS", "3")), processors()
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        peers = [Peer(name, folder, build, work) for name, folder in find_folders(wheels).items()]
        if not peers:
            print("compare_jacobi: no MPI is on this machine; nothing was measured")
            sys.exit(77)
        ours, norms, about, copies = {}, [], {}, []
        info, _ = run([str(build / "bin/isthmus"), "info", "--json"], {}, 60)
        about = {word: json.loads(info)[word] for word in ("machine", "commit")}
        for number in range(rounds):
            file = work / "jacobi.json"
            said, why = run([str(build / "bin/isthmus"), "run", "-n", "2", str(build / "bin/jacobi"), "--nx", str(size), "--ny", str(size),
                             "--iterations", str(iterations), "--compare", "10", "--json", str(file)], {}, 600, set(where))
            if said is None:
                sys.exit(f"compare_jacobi: jacobi: {why}")
            found = json.loads(file.read_text())
            copies.append(found["copy_rate"])
            for way in found["ways"]:
                if not way["verified"]:
                    sys.exit(f"compare_jacobi: jacobi by {way['name']} is wrong")
                ours.setdefault(way["name"], []).append(way["seconds"] * 1e6)
                norms.append(way["norm"])
            for peer in peers:
                for way in list(peer.ways):
                    theirs = peer.measure(way, size, iterations, where)
                    if theirs is not None and abs(theirs["norm"] - norms[0]) > 1e-4 * norms[0]:
                        sys.exit(f"compare_jacobi: the norm of {peer.name} is {theirs['norm']}, and ours {norms[0]}")
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
        rate = lambda us: (size - 2) ** 2 / us / 1e3  # noqa: E731, Gpix/s
        rows = [{"who": f"isthmus, {way}", "us": statistics.median(times), "all": times} for way, times in ours.items()]
        for peer in (peer for peer in peers if peer.times):
            best = best_way(peer.times)
            rows.append({"who": f"{peer.title} ({peer.name}, {best['configuration']})", **best})
        for row in rows:
            row["gpix"] = rate(row["us"])
        report = {**about, "benchmark": "jacobi beside MPI", "size": size, "iterations": iterations, "ranks": 2, "rounds": rounds,
                  "copy_gpix": statistics.median(copies), "rows": rows}
        out.write_text(json.dumps(report, indent=1) + "\n")
    print(f"{'':60} {'us/iteration':>12} {'Gpix/s':>8} {'of copying':>10}")
    for row in sorted(rows, key=lambda row: row["us"]):
        print(f"{row['who']:60} {row['us']:12.1f} {row['gpix']:8.3f} {row['gpix'] / report['copy_gpix']:10.2f}")
    print(f"wrote {out}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        print(__doc__)
        sys.exit(2)
    main()
