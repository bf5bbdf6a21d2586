#!/usr/bin/env python3
"""How much of a call is hidden behind computation, without and with a progress thread, by ranks that are bound to their shares of the
processors, as `isthmus run` does by itself, and by ranks that are not.

    tools/measure_overlap.py [BUILD]    BUILD: a folder in which isthmus was built (build)

Runs `isthmus bench overlap` by two ranks in each of these ways in turn, three times each, and keeps of each call and way the run whose
overlap at the largest size is in the middle. Each has in "binding" how its ranks were bound, and in "processors" which ones each of them
could use: a rank and its progress thread that have one between them take turns. Writes BUILD/overlap/overlap.json, which
tools/record_measurements.py files.

Environment: ISTHMUS_OVERLAP_KINDS, what the buffers are, such as "host cuda" (host).
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

CALLS = ("exchange", "allreduce")
SIZES = (8, 64 << 10, 1 << 20)
ROUNDS = 3
RANKS = 2
# What `isthmus run` is told, by what a record calls it.
BINDINGS = {"bound": [], "free": ["--no-bind"]}
WAYS = [(binding, progress) for binding in BINDINGS for progress in ("0", "1")]


def ranks_run(isthmus, binding, progress, program):
    """What they print, each line behind its rank."""
    command = [str(isthmus), "run", "-n", str(RANKS), "-l", *BINDINGS[binding], *map(str, program)]
    done = subprocess.run(command, env={**os.environ, "ISTHMUS_PROGRESS_THREAD": progress}, capture_output=True, text=True, timeout=300)
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
    ranks_run(isthmus, *way, [isthmus, "bench", "overlap", call, "--kind", kind, "--min", "8", "--max", "1MiB", "--json", file])
    return {**json.loads(file.read_text()), "binding": way[0], "processors": processors(isthmus, *way)}


def at_largest(report):
    return max(report["rows"], key=lambda row: row["bytes"])["overlap_percent"]


def whose(report):
    return ("free, " if report.get("binding") == "free" else "") + " and ".join(report.get("processors", []))


def overlap_table(files):
    if not files:
        return []
    lines = ["### Overlap", "", "The share of a call's time that vanishes when computation as long as the call runs between its start and the wait. "
             "Ranks are bound to their share of the processors unless it says free; records that do not name them are of bound ranks, too.",
             "", "| record | call | buffers | progress thread | processors of each rank | 8 B % | 64 KiB % | 1 MiB % | alone at 1 MiB us | machine | commit |",
             "|---|---|---|---|---|---|---|---|---|---|---|"]
    for file in files:
        for report in json.loads(file.read_text()):
            rows = {row["bytes"]: row for row in report["rows"]}
            shares = [f"{rows[size]['overlap_percent']:.0f}" if size in rows else "" for size in SIZES]
            cells = [f"[{file.name}]({file.name})", report["benchmark"], report["from"], "yes" if report["progress_thread"] else "no", whose(report), *shares,
                     f"{rows[SIZES[-1]]['alone_us']:.1f}" if SIZES[-1] in rows else "", report["machine"], report["commit"]]
            lines.append("| " + " | ".join(cells) + " |")
    return lines + [""]


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    isthmus = build / "bin" / "isthmus"
    if not isthmus.exists():
        sys.exit(f"measure_overlap: {isthmus} is not there: build it, or name the folder of the build")
    kept = []
    with tempfile.TemporaryDirectory() as work:
        file = pathlib.Path(work) / "bench.json"
        for kind in os.environ.get("ISTHMUS_OVERLAP_KINDS", "host").split():
            for call in CALLS:
                runs = [[measured(isthmus, call, kind, way, file) for way in WAYS] for _ in range(ROUNDS)]
                kept += [sorted(of_a_way, key=at_largest)[ROUNDS // 2] for of_a_way in zip(*runs)]
    out = build / "overlap" / "overlap.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(kept, indent=1) + "\n")
    print("\n".join(overlap_table([out])))
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
