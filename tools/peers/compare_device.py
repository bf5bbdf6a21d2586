#!/usr/bin/env python3
"""Isthmus beside its peers and the machine's own limits where memory of GPUs is involved: rounds in which each runs in turn.

    tools/peers/compare_device.py ISTHMUS OUT_FILE WORK_FOLDER

Called by `tools/gpu_run.sh peers`, whose head says what is measured and how that is steered. A call may be too short for all rounds:
each leaves what it measured in WORK_FOLDER (rounds.json), and a later one of the same machine and commit adds its rounds to those. For every pair of memories one round is:
the limits (`isthmus bench limits`), Isthmus, Isthmus staged by hand, Open MPI with each way of its that works, and between GPUs NCCL and NVSHMEM.
The median of the rounds counts, and of every peer its best way, whose name says which it was. Below the figures: target and verdict of each row.
"""
import json
import os
import pathlib
import shutil
import statistics
import sys

from mpis import best_way, run

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.append(str(TOP / "tools"))
from device_targets import WITH_WORKER, verdict_lines  # noqa: E402, of the folder above

KIB, MIB = 1 << 10, 1 << 20
LATENCY_SIZES = [8, 8 * KIB, 64 * KIB, MIB, 4 * MIB]
WINDOW_SIZES = [64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB]
SIZES = {"latency": LATENCY_SIZES, "bandwidth": WINDOW_SIZES, "bidirectional": WINDOW_SIZES,
         "limits": sorted({*LATENCY_SIZES, *WINDOW_SIZES})}

# Open MPI takes UCX with whatever transports there are; a message of few bytes is faster there without an eager copy.
UCX = ["--mca", "pml", "ucx", "--mca", "opal_common_ucx_tls", "any", "--mca", "opal_common_ucx_devices", "any"]
WAYS = {
    "UCX": (UCX, {}),
    "UCX, UCX_RNDV_THRESH=0": (UCX, {"UCX_RNDV_THRESH": "0"}),
    "UCX, UCX_TLS=cuda_ipc,cuda_copy,sm,self": (UCX, {"UCX_TLS": "cuda_ipc,cuda_copy,sm,self"}),
}


# Limits that are no messages of ours, and what they are called in the file.
BESIDE = {"limit-calls": "call", "limit-kernels": "kernels", "limit-residents": "residents"}

# From, to (the second GPU, where there are two), and the longest message; by name, as ISTHMUS_PAIRS has them.
PAIRS = {
    "cuda-cuda": ("cuda:0", "cuda", 64 * MIB),
    "pinned-cuda": ("pinned", "cuda", 64 * MIB),
    "cuda-pinned": ("cuda:0", "pinned", 64 * MIB),
    "host-cuda": ("host", "cuda", 4 * MIB),
    "cuda-host": ("cuda:0", "host", 4 * MIB),
}


def word(place):
    return place.split(":")[0]


def listed(table):
    """A table whose keys are tuples, as JSON can hold it."""
    return [[list(key), value] for key, value in table.items()]


def keyed(pairs):
    return {tuple(key): value for key, value in pairs}


class Peer:
    """What was measured of one, in all its ways: (benchmark, source, target, bytes) -> way -> us of each round."""

    def __init__(self):
        self.times, self.title = {}, ""

    def best(self, key):
        return [{"name": self.title, **best_way(self.times[key])}] if key in self.times else []

    def state(self):
        return {"title": self.title, "times": listed(self.times)}

    def take_up(self, state):
        self.title, self.times = state["title"], keyed(state["times"])


class OpenMpi(Peer):
    """The MPI on PATH, with the UCX of PEER_UCX where that is given, since most are built with one that knows no GPU."""

    def __init__(self, work):
        super().__init__()
        self.program = str(work / "mpi_bench")
        self.ways = dict(WAYS) if shutil.which("mpirun") and shutil.which("mpicc") else {}
        if not self.ways:
            print("compare_device: no mpicc and mpirun on PATH: no MPI is measured", file=sys.stderr)
            return
        said, why = run(["mpicc", "-O2", "-o", self.program, str(TOP / "tools/peers/mpi_bench.c"), "-ldl"], {}, 120)
        if said is None:
            sys.exit(f"compare_device: mpicc does not compile the peer's program: {why}")

    def worth_trying(self, source, target):
        """All of them in the first round; after that those that were best at something between these memories."""
        tried = [best_way(times)["configuration"] for key, times in self.times.items() if key[1:3] == (source, target)]
        return [way for way in self.ways if not tried or way in tried]

    def measure(self, source, target, most, where):
        for way in self.worth_trying(source, target):
            options, variables = self.ways[way]
            variables = {**variables, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
            if len(where) == 2:  # those of our ranks
                variables["PEER_PROCESSORS"] = ",".join(map(str, where))
            ucx = os.environ.get("PEER_UCX")
            if ucx:
                variables["LD_LIBRARY_PATH"] = f"{ucx}/lib:{os.environ.get('LD_LIBRARY_PATH', '')}"
                variables["UCX_MODULE_DIR"] = f"{ucx}/lib/ucx"
            exported = [part for name in variables for part in ("-x", name)]
            said, why = run(["mpirun", "-n", "2", "--bind-to", "core", *options, *exported, self.program, word(source), word(target),
                             str(most)], variables, 90)
            if said is None:
                print(f"left out: Open MPI, {way}, {source} to {target}: {why}", file=sys.stderr)
                continue
            found = json.loads(said)
            self.title = " ".join(found["peer_name"].replace("Version:", "").split())
            for row in found["rows"]:
                key = (row["benchmark"], source, target, row["bytes"])
                self.times.setdefault(key, {}).setdefault(way, []).append(row["median_us"])


class BetweenGpus(Peer):
    """A library whose program of ours starts its own two processes, with a GPU each: NCCL, NVSHMEM."""

    def __init__(self, name, program, compile_with, folder, gpus, variables):
        super().__init__()
        self.name, self.program, self.variables = name, program, variables
        if not folder or gpus < 2:
            print(f"compare_device: {name} is left out: " + ("one GPU" if folder else "none found with its header"), file=sys.stderr)
            self.program = None
            return
        said, why = run(["nvcc", "-std=c++17", "-O3", f"-I{folder}/include", str(TOP / f"tools/peers/{program.name}.cu"), "-o", str(program),
                         *compile_with(folder), "-Xlinker", f"-rpath,{folder}/lib"], {}, 200)
        if said is None:
            sys.exit(f"compare_device: nvcc does not compile the peer's program: {why}")

    def measure(self, source, target, most, _where):
        if not self.program or word(source) != "cuda" or word(target) != "cuda":
            return
        said, why = run([str(self.program), str(most)], self.variables, 90)
        if said is None:
            print(f"left out: {self.name}: {why}", file=sys.stderr)
            return
        # Some libraries say something of their own first.
        found = json.loads(said[said.index('{"peer_name"'):])
        self.title = found["peer_name"]
        for row in found["rows"]:
            # What is enqueued, and what the other side takes no part in, is of another kind than blocking messages: shown, and no peer of theirs.
            key = (row["benchmark"], source, target, row["bytes"])
            self.times.setdefault(key, {}).setdefault(row["way"], []).append(row["median_us"])


def nccl(work, gpus):
    return BetweenGpus("NCCL", work / "nccl_messages", lambda folder: [f"-L{folder}/lib", "-Xlinker", "-l:libnccl.so.2"],
                       os.environ.get("PEER_NCCL"), gpus, {"NCCL_NVLS_ENABLE": "0"})


def nvshmem(work, gpus):
    return BetweenGpus("NVSHMEM", work / "nvshmem_messages",
                       lambda folder: ["-arch=native", "-rdc=true", f"{folder}/lib/libnvshmem_device.a", "-Xlinker",
                                       f"{folder}/lib/libnvshmem_host.so.3", "-lcuda"],
                       os.environ.get("PEER_NVSHMEM"), gpus, {"NVSHMEM_DISABLE_NVLS": "1"})


class Ours:
    """`isthmus bench` in every round: messages, messages staged by hand, and the limits."""

    def __init__(self, isthmus, work):
        self.isthmus, self.file, self.about, self.rows = isthmus, work / "ours.json", {}, {}
        self.processors = []

    def bench(self, arguments, seconds=90, env=None):
        said, why = run([self.isthmus, "bench", *arguments, "--json", str(self.file)], env or {}, seconds)
        if said is None:
            sys.exit(f"compare_device: isthmus bench {' '.join(arguments)}: {why}")
        found = json.loads(self.file.read_text())
        return found if isinstance(found, list) else [found]

    def measure(self, source, target, most, _where):
        pair = ["--from", source, "--to", target]
        sizes = {name: ",".join(str(size) for size in all_sizes if size <= most) for name, all_sizes in SIZES.items()}
        wanted = [["limits", *pair, "--sizes", sizes["limits"]]]
        # Both ways at once is asked for between devices and page-locked memory alone.
        both = [] if "host" in (source, target) else ["bidirectional"]
        wanted += [[name, *pair, "--sizes", sizes[name]] for name in ("latency", "bandwidth", *both)]
        if word(source) == word(target) == "cuda":
            wanted.append(["bandwidth", *pair, "--staged", "--sizes", "1MiB,4MiB"])
            wanted.append(["stream-latency", *pair, "--sizes", "8"])
            wanted.append(["bandwidth", *pair, "--ready", "--sizes", "64KiB,256KiB,1MiB"])
        # An MPI asks no stream: its programs wait for theirs before they send. That is what a buffer promises here which is ready.
        ready = sizes["latency"] if word(source) == word(target) == "cuda" else "8"
        wanted.append(["latency", *pair, "--ready", "--sizes", ready])
        runs = [(arguments, {}) for arguments in wanted]
        if (word(source), word(target)) in WITH_WORKER and source != target:
            runs += [(["latency", *pair, "--sizes", "8", *promise], {"ISTHMUS_WORKER": "1"}) for promise in ([], ["--ready"])]
        for arguments, env in runs:
            for bench in self.bench(arguments, env=env):
                name = ("worker-" if env else "") + ("staged-" if bench.get("staged") else "ready-" if bench.get("ready") else "") + bench["benchmark"]
                if bench["ranks"] == 2:
                    self.processors = bench["limits"]["processors"]
                self.about = {key: bench[key] for key in ("machine", "commit", "date")}
                for row in bench["rows"]:
                    key = (name, source, target, f"{row['path']}, {row['bytes']} B" if name in BESIDE else row["bytes"])
                    self.rows.setdefault(key, []).append(row)

    def median(self, key):
        return statistics.median(row["median_us"] for row in self.rows[key]) if key in self.rows else None

    def entry(self, benchmark, source, target, size, peers):
        rows = self.rows[benchmark, source, target, size]
        found = {"measure": benchmark, "from": source, "to": target, "bytes": size, "unit": "us",
                 "ours": self.median((benchmark, source, target, size)), "ours_all": [row["median_us"] for row in rows],
                 "p10": statistics.median(row["p10_us"] for row in rows), "p90": statistics.median(row["p90_us"] for row in rows),
                 "path": rows[-1]["path"]}
        limits = {}
        for row in self.rows.get((f"limit-{benchmark}", source, target, size), []):
            limits.setdefault(row["path"], []).append(row["median_us"])
        if limits:
            best = best_way(limits)
            found["limit"], found["limit_name"], found["limits"] = best["us"], best["configuration"], best["tried"]
        staged = self.median(("staged-" + benchmark, source, target, size))
        if staged is not None:
            found["staged"] = staged
        for name in ("ready", "worker", "worker-ready"):
            us = self.median((f"{name}-{benchmark}", source, target, size))
            if us is not None:
                found[name] = us
        found["peers"] = sorted((one for peer in peers for one in peer.best((benchmark, source, target, size))), key=lambda one: one["us"])
        return {**found, **self.about}

    def streams(self, peers):
        """Messages in streams, plain and in a graph, beside bare kernels and what peers enqueue and capture."""
        for (name, source, target, size), rows in self.rows.items():
            if name != "stream-latency":
                continue
            found = {"measure": name, "from": source, "to": target, "bytes": size, "unit": "us"}
            for key, column in (("ours", "median_us"), ("graph", "graph_us"), ("limit", "limit_us"), ("limit_graph", "limit_graph_us")):
                known = [row[column] for row in rows if row.get(column) is not None]
                found[key] = statistics.median(known) if known else None
            for key, way in (("peers", "enqueued"), ("graph_peers", "captured")):
                found[key] = [one for peer in peers for one in peer.best((way, source, target, size))]
            yield {**found, **self.about}

    def state(self):
        return {"rows": listed(self.rows), "processors": self.processors, "about": self.about}

    def take_up(self, state):
        self.rows, self.processors, self.about = keyed(state["rows"]), state["processors"], state["about"]

    def calls(self):
        """What single calls of the driver cost, and words and bytes between kernels and processor: limits of no row, by what they are."""
        return [{"measure": BESIDE[name], "from": source, "to": target, "bytes": self.rows[key][0]["bytes"], "unit": "us",
                 "call": self.rows[key][0]["path"], "ours": self.median(key), **self.about}
                for key in self.rows for name, source, target in [key[:3]] if name in BESIDE]


def report(ours, peers, pairs, out, show):
    entries = []
    table = [f"{'measure':13} {'from':7} {'to':7} {'bytes':>9} {'ours us':>10} {'limit us':>10} {'ours/limit':>10} {'ready':>9} {'by hand':>9}  peers us (best way)"]
    for source, target, _ in pairs:
        for benchmark, sizes in (("latency", LATENCY_SIZES), ("bandwidth", WINDOW_SIZES), ("bidirectional", WINDOW_SIZES)):
            for size in sizes:
                if (benchmark, source, target, size) not in ours.rows:
                    continue
                one = ours.entry(benchmark, source, target, size, peers)
                entries.append(one)
                limit = one.get("limit")
                told = "; ".join(f"{peer['name']} {peer['us']:.2f} ({peer['configuration']})" for peer in one["peers"])
                table.append(f"{benchmark:13} {source:7} {target:7} {size:9} {one['ours']:10.2f} {limit or 0:10.2f} "
                      f"{one['ours'] / limit if limit else 0:10.2f} {one.get('ready', 0):9.2f} {one.get('staged', 0):9.2f}  {told}")
    others = [{"measure": name, "from": source, "to": target, "bytes": size, "unit": "us", "peers": peer.best((name, source, target, size)),
             **ours.about} for peer in peers for (name, source, target, size) in peer.times if name in ("enqueued", "captured", "put")]
    streams = list(ours.streams(peers))
    out.write_text(json.dumps(entries + streams + others + ours.calls(), indent=1) + "\n")
    if show:
        print(*table, "", *verdict_lines(entries + streams), f"wrote {out}", sep="\n")


def about(isthmus):
    """Whose rounds go together."""
    said, why = run([isthmus, "info", "--json"], {}, 60)
    if said is None:
        sys.exit(f"compare_device: isthmus info: {why}")
    info = json.loads(said)
    return {"machine": info["machine"], "commit": info["commit"]}


def take_up(kept, now, programs):
    """Goes on from the rounds of earlier calls, whose number is given."""
    if not kept.exists():
        return 0
    state = json.loads(kept.read_text())
    if state["about"] != now:
        print(f"compare_device: the rounds in {kept} are of {state['about']}, not of {now}: begun anew", file=sys.stderr)
        return 0
    for program, its in zip(programs, state["states"]):
        program.take_up(its)
    return state["rounds"]


def main():
    isthmus, out, work = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    work.mkdir(parents=True, exist_ok=True)
    named = [name for name in os.environ.get("ISTHMUS_PAIRS", "").split(",") if name]
    if wrong := [name for name in named if name not in PAIRS]:
        sys.exit(f"compare_device: ISTHMUS_PAIRS names {', '.join(wrong)}; there are {', '.join(PAIRS)}")
    said, _ = run(["nvidia-smi", "--list-gpus"], {}, 30) if shutil.which("nvidia-smi") else (None, "")
    gpus = len((said or "").splitlines())
    if gpus == 0:
        print("compare_device: no GPU is on this machine; nothing was measured")
        sys.exit(77)
    second = "cuda:1" if gpus > 1 else "cuda:0"
    pairs = [(source, second if target == "cuda" else target, most)
             for source, target, most in (PAIRS[name] for name in named or PAIRS)]
    ours, peers = Ours(isthmus, work), [OpenMpi(work), nccl(work, gpus), nvshmem(work, gpus)]
    kept = work / "rounds.json"
    now = {**about(isthmus), "pairs": [list(pair) for pair in pairs]}
    rounds = take_up(kept, now, [ours, *peers])
    wanted = int(os.environ.get("ISTHMUS_ROUNDS", "2"))
    for number in range(wanted):
        for source, target, most in pairs:
            for one in (ours, *peers):
                one.measure(source, target, most, ours.processors)
        rounds += 1
        # Whole rounds alone count, also where the next one is cut off.
        kept.write_text(json.dumps({"rounds": rounds, "about": now, "states": [one.state() for one in (ours, *peers)]}))
        print(f"round {rounds} is over", file=sys.stderr)
        report(ours, peers, pairs, out, show=number + 1 == wanted)


if __name__ == "__main__":
    main()
