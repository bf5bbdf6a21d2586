#!/usr/bin/env python3
"""What tools/gpu_run.sh soak found, call by call.

    soak_record.py add INFO FILE TO WHERE STATUS NAME    the record of one call, with machine, commit and date; FILE is what the soak
                                                         wrote, and where it wrote nothing the record says that it did not pass
    soak_record.py merge TO FROM...                      one list of the records of several calls, oldest first, each once; and how long
                                                         they took together
"""
import datetime
import json
import pathlib
import sys


def add(info, file, to, where, status, name):
    about = json.loads(pathlib.Path(info).read_text())
    record = {"machine": about["machine"], "commit": about["commit"],
              "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "where": where, "step": name,
              "status": int(status)}
    try:
        record.update(json.loads(pathlib.Path(file).read_text()))
    except (OSError, ValueError):
        record.update(benchmark="soak", passed=False, why="it wrote no record: it was ended, or nothing moved any more; the log says more")
    record["passed"] = record["passed"] and record["status"] == 0
    pathlib.Path(to).write_text(json.dumps(record, indent=1) + "\n")


def total(record):
    """Messages and bytes that were compared, of all ranks; 'by ...' counts the same ones once more."""
    counts = [count for rank in record.get("ranks", []) for what, count in rank["received"].items() if not what.startswith("by ")]
    return sum(count["messages"] for count in counts), sum(count["bytes"] for count in counts)


def merge(to, *files):
    records = {}
    for file in files:
        found = json.loads(pathlib.Path(file).read_text())
        for record in found if isinstance(found, list) else [found]:
            records[record["date"], record["step"]] = record
    ordered = [records[key] for key in sorted(records)]
    pathlib.Path(to).write_text(json.dumps(ordered, indent=1) + "\n")
    for where in sorted({record["where"] for record in ordered}):
        mine = [record for record in ordered if record["where"] == where and record["benchmark"] == "soak"]
        for record in (one for one in ordered if one["where"] == where and one["benchmark"] == "graph replays"):
            print(f"graph replays, {where}: {sum(row['replays'] for row in record['rows'])} in {len(record['rows'])} rows, "
                  f"{sum(row['mismatches'] for row in record['rows'])} mismatches")
        if mine:
            messages, size = (sum(numbers) for numbers in zip(*map(total, mine)))
            print(f"soak, {where}: {len(mine)} run(s), {sum(record.get('seconds', 0) for record in mine):.0f} s, {messages} messages, "
                  f"{size / 1e9:.1f} GB, {sum(not record['passed'] for record in mine)} not passed")


def grown(record, what):
    """Of the rank that grew most, in the unit of the table; blank where nothing was judged."""
    found = [rank[what]["grown"] for rank in record.get("ranks", []) if rank.get(what, {}).get("flat") is not None]
    if not found:
        return ""
    return str(max(found)) if what == "descriptors" else f"{max(found) / 2**20:.1f}"


def soak_table(files):
    if not files:
        return []
    lines = ["### Soaks", "", "Mixed traffic, every byte compared. Grown: the median of the last third of the samples between rounds, less that "
             "of the first, of the rank where it is most; a blank: not judged, the run was too short.", "",
             "| record | machine | commit | where | ranks | seconds | messages | GB | mismatches | descriptors grown | host MiB grown | "
             "device MiB grown | passed |", "|---|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for file in files:
        for one in json.loads(file.read_text()):
            if one["benchmark"] != "soak":
                continue
            messages, size = total(one)
            lines.append(f"| [{file.name}]({file.name}) | {one['machine']} | {one['commit']} | {one['where']} | {one.get('size', '')} | "
                         f"{one.get('seconds', 0):.0f} | {messages} | {size / 1e9:.1f} | "
                         f"{sum(rank['mismatches'] for rank in one.get('ranks', []))} | {grown(one, 'descriptors')} | "
                         f"{grown(one, 'host_bytes')} | {grown(one, 'device_bytes')} | {'yes' if one['passed'] else 'NO'} |")
    lines += ["", "Graphs that hold messages, replayed with other bytes each time.", "",
              "| record | machine | commit | where | captured | bytes | replays | mismatches | us each |", "|---|---|---|---|---|---|---|---|---|"]
    replays = [(file, one, row) for file in files for one in json.loads(file.read_text()) for row in one.get("rows", [])]
    for file, one, row in replays:
        lines.append(f"| [{file.name}]({file.name}) | {one['machine']} | {one['commit']} | {one['where']} | {row['captured']} | {row['bytes']} | "
                     f"{row['replays']} | {row['mismatches']} | {1e6 * row['seconds'] / row['replays']:.2f} |")
    return (lines if replays else lines[:-4]) + [""]


def main():
    words = sys.argv[1:]
    if len(words) == 7 and words[0] == "add":
        return add(*words[1:])
    if len(words) >= 3 and words[0] == "merge":
        return merge(*words[1:])
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
