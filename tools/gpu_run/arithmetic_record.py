#!/usr/bin/env python3
"""What tools/gpu_run.sh arithmetic measured, and tools/measure_arithmetic.py of OpenCL: reductions of a device's memory with arithmetic on the
host and on the device.

    arithmetic_record.py INFO RAW TO    one list of the reports RAW/CALL-WHERE-WHOSE-ROUND.json, with machine, commit and date, and a table
"""
import json
import pathlib
import statistics
import sys


def medians(reports):
    """By (call, whose), then size, then where: the median of the rounds, in us."""
    times = {}
    for one in reports:
        for row in one["rows"]:
            sizes = times.setdefault((one["benchmark"], one["whose"]), {})
            sizes.setdefault(row["bytes"], {}).setdefault(one["where"], []).append(row["median_us"])
    return {key: {size: {where: statistics.median(all_of) for where, all_of in found.items()} for size, found in sorted(sizes.items())}
            for key, sizes in times.items()}


def lines_of(reports):
    lines = ["| call | device | bytes | arithmetic on the host us | on the device us |", "|---|---|---|---|---|"]
    for (call, whose), sizes in sorted(medians(reports).items()):
        for size, found in sizes.items():
            if {"host", "device"} <= set(found):
                lines.append(f"| {call} | {whose} | {size} | {found['host']:.1f} | {found['device']:.1f} |")
    return lines


def arithmetic_table(files):
    lines = []
    for file in files:
        reports = json.loads(file.read_text())
        if isinstance(reports, dict):
            continue  # of before this was a part of tools/gpu_run.sh
        first = reports[0]
        memory = "OpenCL" if any(one["from"].startswith("opencl") for one in reports) else "CUDA"
        lines += [f"### Arithmetic of reductions of {memory} memory in [{file.name}]({file.name})", "",
                  f"{first['machine']}; commit {first['commit']}; {first['date'][:10]}. Two ranks; own: rank 0 has the device, and rank 1 host memory; "
                  "shared: both have it. Medians of the rounds.", "", *lines_of(reports), ""]
    return lines


def main():
    info, raw, to = json.loads(pathlib.Path(sys.argv[1]).read_text()), pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    reports = []
    for file in sorted(raw.glob("*-*-*-[0-9].json")):
        _, where, whose, number = file.stem.rsplit("-", 3)
        try:
            found = json.loads(file.read_text())
        except ValueError:
            print(f"left out {file.name}: not complete")
            continue
        reports.append({**found, "machine": info["machine"], "commit": info["commit"], "where": where, "whose": whose, "round": int(number)})
    to.write_text(json.dumps(reports, indent=1) + "\n")
    print("\n".join(lines_of(reports)))


if __name__ == "__main__":
    main()
