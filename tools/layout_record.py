#!/usr/bin/env python3
"""Row 12 of the targets: packing beside a kernel by hand, and messages with layouts beside the bare link, on devices.

    layout_record.py RAW TO    one object: what `isthmus bench layout --json` wrote in RAW as layout*.json, with its machine, commit and date,
                               and as "pack" RAW/pack_kernels.json (tools/peers/pack_kernels.cu --json) where it is complete; and its tables.
                               Status 1 where there are no messages, or not of one machine and commit.

tools/record_measurements.py takes targets and tables of what is filed as `*-layouts.json` from here.
"""
import json
import pathlib
import sys

from device_targets import on_one_gpu
from host_targets import complete, entry, last_objects, size_text
from peers_on_record import word

PACK_FACTOR, LINK_FACTOR, LEAST_BLOCK = 0.95, 0.9, 16


def pack_entries(record):
    for row in record.get("pack", {}).get("rows", []):
        rate, theirs = (row["bytes"] / row[name] / 1e3 for name in ("pack_us", "by_hand_us"))
        yield entry("12", f"pack on the device, {row['what']}, {size_text(row['bytes'])}", record, rate, "GB/s",
                    f">= {PACK_FACTOR:g} x a kernel by hand", peer=theirs, peer_name="a kernel by hand",
                    passed=rate >= PACK_FACTOR * theirs)


def worst_of(rows):
    """That which falls the farthest behind its limit."""
    return max(rows, key=lambda row: row["median_us"] / row["limit_us"])


def message_entries(record):
    """Of each shape and size the block with the worst ratio: one that misses is enough."""
    groups = {}
    for report in record["messages"]:
        if word(report["from"]) != "cuda" or on_one_gpu(report):
            continue
        for row in report["rows"]:
            # A struct's rows have some bytes less than was asked for.
            about = size_text(1 << (row["bytes"] - 1).bit_length()) if row["bytes"] & (row["bytes"] - 1) else size_text(row["bytes"])
            if row["block"] >= LEAST_BLOCK:
                groups.setdefault((row["source"], row["into"], row["shape"], about), []).append(row)
    for (source, into, shape, about), rows in groups.items():
        row = worst_of(rows)
        blocks = sorted({each["block"] for each in rows})
        what = f"{shape}, {source} to {into}, {about}, worst of blocks of {size_text(blocks[0])}"
        what += f" to {size_text(blocks[-1])}" if len(blocks) > 1 else ""
        limit = row["bytes"] / row["limit_us"] / 1e3
        if (source, into) == ("strided", "contiguous"):
            yield entry("12", f"device to device, {what}", record, row["gbps"], "GB/s", f">= {LINK_FACTOR:g} x the contiguous link rate",
                        limit=limit, passed=row["gbps"] >= LINK_FACTOR * limit, note=f"worst at blocks of {size_text(row['block'])}")
        else:
            yield entry("12", f"device to device, {what}", record, row["gbps"], "GB/s", "beside its own bare bound", limit=limit,
                        note=f"worst at blocks of {size_text(row['block'])}; no factor is set")


def from_record(record):
    yield from pack_entries(record)
    yield from message_entries(record)


def from_layouts(measured):
    """Of every machine its last record."""
    for record in last_objects(measured, "layouts"):
        yield from from_record(record)


def rows_table(record):
    lines = []
    if record.get("pack"):
        lines += ["| packed on the device | bytes | pack us | unpack us | by hand us | by hand / pack |", "|---|---|---|---|---|---|"]
        for row in record["pack"]["rows"]:
            lines.append(f"| {row['what']} | {row['bytes']} | {row['pack_us']:.1f} | {row['unpack_us']:.1f} | {row['by_hand_us']:.1f} | "
                         f"{row['by_hand_us'] / row['pack_us']:.3f} |")
        lines.append("")
    lines += ["| from | to | shape | block | bytes | from layout | into | us (p10 to p90) | GB/s | one piece us | limit us | limit / ours | packed by hand us | "
              "a message a block us | path |", "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for report in record["messages"]:
        for row in report["rows"]:
            each = "" if row["blocks_us"] is None else f"{row['blocks_us']:.1f}"
            lines.append(f"| {report['from']} | {report['to']} | {row['shape']} | {row['block']} | {row['bytes']} | {row['source']} | {row['into']} | "
                         f"{row['median_us']:.2f} ({row['p10_us']:.2f} to {row['p90_us']:.2f}) | {row['gbps']:.2f} | {row['contiguous_us']:.2f} | "
                         f"{row['limit_us']:.2f} | {row['limit_us'] / row['median_us']:.3f} | {row['by_hand_us']:.2f} | {each} | {row['path']} |")
    return lines


def layout_table(files):
    lines = []
    for file in files:
        record = json.loads(file.read_text())
        quick = " Quick runs." if any(report.get("quick") for report in record["messages"]) else ""
        lines += [f"### Layouts in [{file.name}]({file.name})", "",
                  f"{record['machine']}; commit {record['commit']}; {record['date'][:10]}.{quick} Half of there and back, every byte compared; "
                  f"limit: {record['messages'][0]['limit_is']}.", "", *rows_table(record), ""]
    return lines


def main(raw, to):
    raw = pathlib.Path(raw)
    found = [complete(file) for file in sorted(raw.glob("layout*.json"))]
    messages = [report for report in found if report is not None and report.get("benchmark") == "layout"]
    if not messages:
        sys.exit(f"{raw} holds no layout*.json that is complete: write some there by isthmus bench layout --json")
    apart = {(report["machine"], report["commit"]) for report in messages}
    if len(apart) > 1:
        sys.exit(f"{raw} holds layout*.json of several machines or commits: " + "; ".join(", ".join(pair) for pair in sorted(apart)))
    about = {name: messages[-1][name] for name in ("machine", "commit", "date")}
    pack = complete(raw / "pack_kernels.json")
    record = {**about, "messages": messages, **({"pack": pack} if pack else {})}
    pathlib.Path(to).write_text(json.dumps(record, indent=1) + "\n")
    print("\n".join(rows_table(record)))
    for one in from_record(record):
        verdict = {True: "reached", False: "MISSED", None: "no verdict"}[one["pass"]]
        beside = one["peer"] if one["limit"] is None else one["limit"]
        print(f"{verdict}: {one['measure']}: {one['ours']:.1f} beside {beside:.1f} GB/s, {one['target']}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(__doc__)
        sys.exit(2)
    main(*sys.argv[1:])
