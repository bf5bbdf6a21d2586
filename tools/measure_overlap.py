#!/usr/bin/env python3
"""How much of a call is hidden behind computation, without and with a progress thread, by ranks with one processor to spare each, by ranks
that are bound to their shares of the machine, as `isthmus run` does by itself, and by ranks that are not bound.

    tools/measure_overlap.py [BUILD]    BUILD: a folder in which isthmus was built (build)

Runs `isthmus bench overlap` by two ranks in each of these ways in turn, three times each, and keeps of each call and way the run whose
overlap at the largest size is in the middle. Each has in "binding" how its ranks were bound, in "processors" which ones each of them
could use, and in "rounds" of how many runs it is: a rank and its progress thread that have one processor between them take turns, and with one
to spare ("spare": two ranks on four cores) the thread has the other. Writes BUILD/overlap/overlap.json, which
tools/record_measurements.py files.

Environment:
  ISTHMUS_OVERLAP_KINDS     what the buffers are, such as "host cuda" (host); of cuda each rank has its own device, where there are two
  ISTHMUS_OVERLAP_BINDINGS  which of "spare bound free", in turn (all that the machine has the cores for)
  ISTHMUS_OVERLAP_SECONDS   no further round begins that would probably end later; one there is always (no limit)
  ISTHMUS_BENCH_OPTIONS     more options for isthmus bench, such as --quick
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

CALLS = ("exchange", "allreduce")
SIZES = (8, 64 << 10, 1 << 20, 16 << 20)
# Between devices 1 MiB is hardly longer than what a message costs by itself, and between hosts what is longer no longer fits a cache.
LARGEST = "16MiB"
ROUNDS = 3
RANKS = 2
# What `isthmus run` is told, by what a record calls it.
BINDINGS = {"spare": [], "bound": [], "free": ["--no-bind"]}
FOLDER = "/sys/devices/system/cpu"


def spare_processors(allowed, siblings_of):
    """One processor of each of the first two cores for each rank, or none where there are fewer."""
    chosen, taken = [], set()
    for processor in sorted(allowed):
        if processor not in taken:
            chosen.append(processor)
            taken |= siblings_of(processor)
    wanted = 2 * RANKS
    return chosen[:wanted] if len(chosen) >= wanted else []


def siblings_of(processor):
    """The processors of its core, this one included."""
    try:
        text = pathlib.Path(f"{FOLDER}/cpu{processor}/topology/thread_siblings_list").read_text()
    except OSError:
        return {processor}
    found = {processor}
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def ranks_run(isthmus, binding, progress, program):
    """What they print, each line behind its rank."""
    command = [str(isthmus), "run", "-n", str(RANKS), "-l", *BINDINGS[binding], *map(str, program)]
    allowed = os.sched_getaffinity(0)
    # `isthmus run` gives out what it may use itself.
    used = spare_processors(allowed, siblings_of) if binding == "spare" else allowed
    done = subprocess.run(command, env={**os.environ, "ISTHMUS_PROGRESS_THREAD": progress}, capture_output=True, text=True, timeout=300,
                          preexec_fn=lambda: os.sched_setaffinity(0, used))
    if done.returncode != 0:
        sys.exit(f"measure_overlap: {' '.join(command)}: status {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


def processors(isthmus, binding, progress):
    """Of each rank, as the kernel lists them, such as "0-7"."""
    said = ranks_run(isthmus, binding, progress, ["grep", "Cpus_allowed_list", "/proc/self/status"])
    found = dict(re.findall(r"^\[(\d+)\] Cpus_allowed_list:\s*(\S+)$", said, flags=re.MULTILINE))
    if sorted(found) != [str(rank) for rank in range(RANKS)]:
        sys.exit(f"measure_overlap: the ranks did not say which processors they have: {said}")
    return [found[str(rank)] for rank in range(RANKS)]


def measured(isthmus, call, kind, way, file):
    ranks_run(isthmus, *way, [isthmus, "bench", "overlap", call, "--kind", kind, "--min", "8", "--max", LARGEST, "--json", file,
                              *os.environ.get("ISTHMUS_BENCH_OPTIONS", "").split()])
    return {**json.loads(file.read_text()), "binding": way[0], "processors": processors(isthmus, *way)}


def bindings():
    """Those that were asked for, and of those that were not the ones that can be."""
    possible = bool(spare_processors(os.sched_getaffinity(0), siblings_of))
    asked = os.environ.get("ISTHMUS_OVERLAP_BINDINGS", "").split()
    unknown = [name for name in asked if name not in BINDINGS]
    if unknown:
        sys.exit(f"measure_overlap: ISTHMUS_OVERLAP_BINDINGS has {', '.join(unknown)}; expected some of {', '.join(BINDINGS)}")
    chosen = [name for name in asked or BINDINGS if possible or name != "spare"]
    if not possible and (not asked or "spare" in asked):
        print(f"measure_overlap: without ranks that have a processor to spare: {RANKS} ranks need {2 * RANKS} cores")
    if not chosen:
        sys.exit("measure_overlap: nothing is left to measure here")
    return chosen


def at_largest(report):
    return max(report["rows"], key=lambda row: row["bytes"])["overlap_percent"]


def whose(report):
    return ({"free": "free, ", "spare": "spare, "}.get(report.get("binding"), "")) + " and ".join(report.get("processors", []))


def buffers(report):
    return report["from"] if report.get("to", report["from"]) == report["from"] else f"{report['from']} to {report['to']}"


def overlap_table(files):
    if not files:
        return []
    lines = ["### Overlap", "", "The share of a call's time that vanishes when computation as long as the call runs between its start and the wait. "
             "Ranks are bound to their share of the processors unless it says free, or spare: two cores each; records that do not name them are of bound "
             "ranks, too.",
             "", "| record | call | buffers | progress thread | processors of each rank | 8 B % | 64 KiB % | 1 MiB % | 16 MiB % | alone at 1 MiB us | machine | commit |",
             "|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for file in files:
        for report in json.loads(file.read_text()):
            rows = {row["bytes"]: row for row in report["rows"]}
            shares = [f"{rows[size]['overlap_percent']:.0f}" if size in rows else "" for size in SIZES]
            cells = [f"[{file.name}]({file.name})", report["benchmark"], buffers(report), "yes" if report["progress_thread"] else "no", whose(report), *shares,
                     f"{rows[1 << 20]['alone_us']:.1f}" if 1 << 20 in rows else "", report["machine"], report["commit"]]
            lines.append("| " + " | ".join(cells) + " |")
    return lines + [""]


def all_rounds(isthmus, cases, limit):
    """The runs of each case. In turn, so that a machine that becomes slower does so for all."""
    runs = {case: [] for case in cases}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as work:
        file = pathlib.Path(work) / "bench.json"
        for done in range(ROUNDS):
            taken = time.monotonic() - began
            if done > 0 and taken / done * (done + 1) > limit:
                print(f"measure_overlap: {done} of {ROUNDS} rounds, for a further one would not end within {limit:.0f} s")
                break
            for case in cases:
                kind, call, way = case
                runs[case].append(measured(isthmus, call, kind, way, file))
    return runs


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    isthmus = build / "bin" / "isthmus"
    if not isthmus.exists():
        sys.exit(f"measure_overlap: {isthmus} is not there: build it, or name the folder of the build")
    ways = [(binding, progress) for binding in bindings() for progress in ("0", "1")]
    cases = [(kind, call, way) for kind in os.environ.get("ISTHMUS_OVERLAP_KINDS", "host").split() for call in CALLS for way in ways]
    kept = []
    for runs in all_rounds(isthmus, cases, float(os.environ.get("ISTHMUS_OVERLAP_SECONDS", "inf"))).values():
        kept.append({**sorted(runs, key=at_largest)[(len(runs) - 1) // 2], "rounds": len(runs)})
    out = build / "overlap" / "overlap.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(kept, indent=1) + "\n")
    print("\n".join(overlap_table([out])))
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
