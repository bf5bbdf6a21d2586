#!/usr/bin/env python3
"""How much of a call is hidden behind computation, without and with a progress thread.

    tools/measure_overlap.py [BUILD]    BUILD: a folder in which isthmus was built (build)

Runs `isthmus bench overlap` for both settings in turn, three times each, and keeps of each call the run whose overlap at the largest
size is in the middle. Writes BUILD/overlap/overlap.json, which tools/record_measurements.py files.

Environment: ISTHMUS_OVERLAP_KINDS, what the buffers are, such as "host cuda" (host).
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

CALLS = ("exchange", "allreduce")
SIZES = (8, 64 << 10, 1 << 20)
ROUNDS = 3


def measured(isthmus, call, kind, progress, file):
    command = [isthmus, "bench", "overlap", call, "--kind", kind, "--min", "8", "--max", "1MiB", "--json", str(file)]
    done = subprocess.run(command, env={**os.environ, "ISTHMUS_PROGRESS_THREAD": progress}, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"measure_overlap: {' '.join(command)}: status {done.returncode}: {done.stderr.strip()[-500:]}")
    return json.loads(file.read_text())


def at_largest(report):
    return max(report["rows"], key=lambda row: row["bytes"])["overlap_percent"]


def overlap_table(files):
    if not files:
        return []
    lines = ["### Overlap", "", "The share of a call's time that vanishes when computation as long as the call runs between its start and the wait.",
             "", "| record | call | buffers | progress thread | 8 B % | 64 KiB % | 1 MiB % | alone at 1 MiB us | machine | commit |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for file in files:
        for report in json.loads(file.read_text()):
            rows = {row["bytes"]: row for row in report["rows"]}
            shares = [f"{rows[size]['overlap_percent']:.0f}" if size in rows else "" for size in SIZES]
            cells = [f"[{file.name}]({file.name})", report["benchmark"], report["from"], "yes" if report["progress_thread"] else "no", *shares,
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
                runs = [[measured(isthmus, call, kind, progress, file) for progress in ("0", "1")] for _ in range(ROUNDS)]
                kept += [sorted(both, key=at_largest)[ROUNDS // 2] for both in zip(*runs)]
    out = build / "overlap" / "overlap.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(kept, indent=1) + "\n")
    print("\n".join(overlap_table([out])))
    print(f"wrote {out}")


if __name__ == "__main__":
    main()
