#!/usr/bin/env python3
"""What compute-sanitizer said of the library's kernels.

sanitize_record.py findings FILE        what it has told in that output, each kind once and how often, as lines for people
sanitize_record.py findings --json FILE the same as one line of JSON
sanitize_record.py INFO LINES TO        the record, from the lines of tools/gpu_run/sanitize.sh
"""
import collections
import datetime
import json
import pathlib
import re
import sys

LINE = re.compile(r"^(\[\d+\] )?={9}(.*)$")
NO_FINDING = re.compile(r"COMPUTE-SANITIZER|SUMMARY:|Target application returned|No hazards|This tool is")
# What differs between two reports of one fault: the threads, the addresses, and how many hazards one of them stands for.
VARIES = ((re.compile(r"\[\d+ hazards?\]"), ""), (re.compile(r"\(\d+,\d+,\d+\)"), "(...)"), (re.compile(r"0x[0-9a-f]{8,}"), "0x..."))


def findings(text):
    """(how often, what), the first ones first: of each report its first line and the ones that say where and with what."""
    reports, open_ones = [], {}
    for line in text.splitlines():
        found = LINE.match(line)
        if not found:
            continue
        rank, words = found.group(1), found.group(2)
        if not words.strip() or NO_FINDING.search(words):
            open_ones.pop(rank, None)
        elif rank in open_ones and words.startswith("     "):
            open_ones[rank].append(words.strip())
        else:
            open_ones[rank] = [words.strip()]
            reports.append(open_ones[rank])
    told = collections.Counter()
    for report in reports:
        said = " ".join(line for line in report[:4] if not line.startswith(("Saved host", "Host Frame", "by thread")))
        for pattern, instead in VARIES:
            said = pattern.sub(instead, said)
        told[said.strip()] += 1
    return [(times, said) for said, times in told.items()]


def write(info, lines, to):
    about = json.loads(pathlib.Path(info).read_text())
    names = ("tool", "what", "ranks", "status", "seconds", "tests", "skipped", "remark", "findings")
    rows = [dict(zip(names, line.split("\t"))) for line in pathlib.Path(lines).read_text().splitlines()]
    for row in rows:
        row.update({name: int(row[name]) for name in ("ranks", "status", "seconds")})
        row["findings"] = json.loads(row.get("findings") or "[]")
        for name in ("tests", "skipped", "remark", "findings"):
            if not row.get(name):
                row.pop(name, None)
            elif name in ("tests", "skipped"):
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
    told = []
    for file in files:
        # One object, in a list where it was filed.
        found = json.loads(file.read_text())
        for record in found if isinstance(found, list) else [found]:
            for row in record["rows"]:
                lines.append(f"| [{file.name}]({file.name}) | {record['machine']} | {record['commit']} | {row['tool']} | {row['what']} | "
                             f"{row['ranks']} | {row.get('tests', '')} | {row.get('skipped', '')} | {row['seconds']} | "
                             f"{'yes' if row['passed'] else 'NO'} | {row.get('remark', '')} |")
                told += [f"- {file.name}, {row['tool']}, {row['what']}, {one['times']} times: `{one['said']}`" for one in row.get("findings", [])]
    return lines + [""] + (["What the tools told:", ""] + told + [""] if told else [])


def main(words):
    if words[:1] == ["findings"] and len(words) in (2, 3):
        found = findings(pathlib.Path(words[-1]).read_text(errors="replace"))
        if "--json" in words:
            print(json.dumps([{"times": times, "said": said} for times, said in found]))
        else:
            for times, said in found:
                print(f"       {times} times: {said}")
        return 0
    if len(words) == 3:
        write(*words)
        return 0
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
