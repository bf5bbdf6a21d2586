#!/usr/bin/env python3
"""Collective calls between host buffers of several ranks: ours, in memory that all ranks see and by messages alone, beside the Open MPI on PATH.

    tools/compare_collectives.py BUILD OUT [RANKS ...]     BUILD: a folder with bin/isthmus; OUT: a folder; RANKS: 2, 4 and so on

Each in turn, ISTHMUS_ROUNDS times (3), as tools/peers/mpi_bench.c and `isthmus bench collective` do it: the time of a call, an untimed
barrier after it, averaged over ranks. Of the rounds the median counts, of the MPI's configurations the fastest. Writes
OUT/host_collectives.json, which tools/record_measurements.py files. Where there is no Open MPI, or one of its configurations gives nothing,
that is said, and the rest stands alone.
"""
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
SIZES = (8, 1024, 16384, 65536, 1 << 20)
CALLS = ("allreduce", "reduce", "bcast", "allgather", "alltoall")
CONFIGURATIONS = {
    "default": [],
    "pml ob1": ["--mca", "pml", "ob1"],
    "pml ucx, UCX_TLS=self,sm": ["--mca", "pml", "ucx", "-x", "UCX_TLS=self,sm"],
}


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


def ours(isthmus, ranks, work, profile):
    """{(call, bytes): us}, and what the report says of the machine. One run for each call."""
    found, about = {}, {}
    for call in (*CALLS, "barrier"):
        file = work / "one.json"
        file.unlink(missing_ok=True)
        sizes = [] if call == "barrier" else ["--min", "8", "--max", str(SIZES[-1])]
        run([isthmus, "run", "-n", str(ranks), isthmus, "bench", "collective", call, *sizes, "--json", str(file)], {"ISTHMUS_PROFILE": profile})
        if not file.exists():
            continue
        report = json.loads(file.read_text())
        about = {key: report[key] for key in ("machine", "commit", "date")}
        for row in report["rows"]:
            if call == "barrier":
                found[call, 8] = row["median_us"], row.get("path", "")
            elif row["bytes"] in SIZES:
                found[call, row["bytes"]] = row["median_us"], row["path"]
    return found, about


def theirs(program, ranks):
    """By configuration: {(call, bytes): us}; and the MPI's name."""
    found, name = {}, ""
    for configuration, options in CONFIGURATIONS.items():
        said = run(["mpirun", "--allow-run-as-root", "--bind-to", "core", "-n", str(ranks), *options, program, "collectives"])
        try:
            report = json.loads(said or "")
        except json.JSONDecodeError:
            continue
        name = report["peer_name"]
        found[configuration] = {(row["benchmark"], row["bytes"]): row["median_us"] for row in report["rows"]}
    return found, name


def main(build, out, *wanted):
    isthmus, work = str(pathlib.Path(build) / "bin" / "isthmus"), pathlib.Path(out)
    work.mkdir(parents=True, exist_ok=True)
    messages = work / "by_messages_profile.json"
    messages.write_text(json.dumps({"isthmus_profile": 1, "machine": "any", "note": "built in, but for shared memory", "message": {},
                                    "collective": {"shared_up_to": 0}}))
    program = None
    if shutil.which("mpicc") and shutil.which("mpirun"):
        program = str(work / "mpi_bench")
        if run(["mpicc", "-O2", "-o", program, str(TOP / "tools/peers/mpi_bench.c"), "-ldl"]) is None:
            sys.exit("compare_collectives: mpicc does not compile tools/peers/mpi_bench.c")
    rows = []
    for ranks in (int(number) for number in wanted or ("2",)):
        kept, about, name = {}, {}, ""
        for _ in range(int(os.environ.get("ISTHMUS_ROUNDS", "3"))):
            for way, profile in (("shared", "builtin"), ("messages", str(messages))):
                times, said = ours(isthmus, ranks, work, profile)
                about = said or about
                for key, (us, path) in times.items():
                    kept.setdefault(key, {}).setdefault(way, []).append(us)
                    if way == "shared":
                        kept[key]["path"] = path
            if program:
                peers, called = theirs(program, ranks)
                name = called or name
                for configuration, times in peers.items():
                    for key, us in times.items():
                        kept.setdefault(key, {}).setdefault("mpi", {}).setdefault(configuration, []).append(us)
        for (call, size), found in sorted(kept.items()):
            if "shared" not in found:
                continue
            tried = {configuration: statistics.median(times) for configuration, times in found.get("mpi", {}).items()}
            best = min(tried, key=tried.get) if tried else None
            rows.append({"call": call, "bytes": size, "ranks": ranks, "path": found.get("path", ""), "us": statistics.median(found["shared"]),
                         "all": found["shared"], "messages_us": statistics.median(found["messages"]) if "messages" in found else None,
                         "messages_all": found.get("messages"), "peer_us": tried.get(best), "peer_name": f"{name} ({best})" if best else None, "tried": tried,
                         **about})
            beside = f", {rows[-1]['peer_name']} {tried[best]:.3f}" if best else ""
            print(f"{ranks:3d} ranks {call:10s} {size:8d} B {rows[-1]['us']:10.3f} us ({rows[-1]['path']}), by messages {rows[-1]['messages_us']}{beside}", flush=True)
        (work / "host_collectives.json").write_text(json.dumps(rows, indent=1) + "\n")
    messages.unlink()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
