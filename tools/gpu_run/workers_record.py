#!/usr/bin/env python3
"""Few bytes with and without workers, and with and without the promise that nothing is pending on a buffer.

    workers_record.py TO FROM...    one list of the reports of `isthmus bench latency`, from files named after the worker:
                                    workers-0-anything.json was measured with ISTHMUS_WORKER=0
"""
import json
import pathlib
import sys

SIZES = [8, 64, 512, 1024, 2048, 4096, 65536]


def bundle(to, *files):
    found = []
    for file in map(pathlib.Path, sorted(files)):
        worker = file.name.split("-")[1]
        if worker not in ("0", "1"):
            sys.exit(f"{file}: the name says not whether there was a worker: expected workers-0-... or workers-1-...")
        found.append({"worker": worker == "1", **json.loads(file.read_text())})
    pathlib.Path(to).write_text(json.dumps(found, indent=1) + "\n")


def workers_table(files):
    lines = []
    for file in files:
        reports = json.loads(file.read_text())
        first = reports[0]
        lines += [f"### Few bytes with workers in [{file.name}]({file.name})", "",
                  f"{first['machine']}; commit {first['commit']}; {first['date'][:10]}. Microseconds, half a round trip, and what carried "
                  "the bytes. Promised: that nothing is pending, so that no stream is asked.", "",
                  "| from | to | worker | promised | " + " | ".join(f"{size} B" for size in SIZES) + " |",
                  "|---" * (4 + len(SIZES)) + "|"]
        for report in reports:
            rows = {row["bytes"]: row for row in report["rows"]}
            cells = [f"{rows[size]['median_us']:.2f} {rows[size]['path'].split('/')[-1]}" if size in rows else "" for size in SIZES]
            lines.append(f"| {report['from']} | {report['to']} | {'yes' if report['worker'] else ''} | {'yes' if report['ready'] else ''} | "
                         + " | ".join(cells) + " |")
        lines.append("")
    return lines


if __name__ == "__main__":
    if len(sys.argv) < 3:
        print(__doc__)
        sys.exit(2)
    bundle(*sys.argv[1:])
