#!/usr/bin/env python3
"""What compute-sanitizer said of the library's kernels: sanitize_record.py INFO LINES TO, from the lines of tools/gpu_run/sanitize.sh."""
import datetime
import json
import pathlib
import sys


def write(info, lines, to):
    about = json.loads(pathlib.Path(info).read_text())
    rows = [dict(zip(("tool", "what", "ranks", "status", "seconds", "tests", "skipped", "remark"), line.split("\t"))) for line in pathlib.Path(lines).read_text().splitlines()]
    for row in rows:
        row.update({name: int(row[name]) for name in ("ranks", "status", "seconds")})
        for name in ("tests", "skipped", "remark"):
            if not row.get(name):
                row.pop(name, None)
            elif name != "remark":
                row[name] = int(row[name])
        row["passed"] = row["status"] == 0
    record = {"machine": about["machine"], "commit": about["commit"],
              "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "rows": rows}
    pathlib.Path(to).write_text(json.dumps(record, indent=1) + "\n")


def sanitize_table(files):
    if not files:
        return []
    lines = ["### Kernels under compute-sanitizer", "", "Tests: those that passed, on all ranks, and were skipped; a blank: not told.", "",
             "| record | machine | commit | tool | of | ranks | tests | skipped | seconds | no fault | not seen |",
             "|---|---|---|---|---|---|---|---|---|---|---|"]
    for file in files:
        # One object, in a list where it was filed.
        found = json.loads(file.read_text())
        for record in found if isinstance(found, list) else [found]:
            for row in record["rows"]:
                lines.append(f"| [{file.name}]({file.name}) | {record['machine']} | {record['commit']} | {row['tool']} | {row['what']} | "
                             f"{row['ranks']} | {row.get('tests', '')} | {row.get('skipped', '')} | {row['seconds']} | "
                             f"{'yes' if row['passed'] else 'NO'} | {row.get('remark', '')} |")
    return lines + [""]


if __name__ == "__main__":
    if len(sys.argv) != 4:
        print(__doc__)
        sys.exit(2)
    write(*sys.argv[1:])
