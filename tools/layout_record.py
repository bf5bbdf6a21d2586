#!/usr/bin/env python3
"""Row 12 of the targets: packing beside a kernel by hand, and messages with layouts beside the bare link, on devices.

    layout_record.py RAW TO    one object, with mpi_layouts-*.json of tools/peers/compare_layouts.py as "mpi" where there are some: what `isthmus bench layout --json` wrote in RAW as layout*.json, with its machine, commit and date,
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
    """Of each shape and size the block with the worst ratio: one that misses is enough. Rows whose bare copy could not be measured are none."""
    groups, old = {}, ""
    for report in record["messages"]:
        if word(report["from"]) != "cuda" or on_one_gpu(report):
            continue
        if not report["limit_is"].startswith("a bare copy"):  # as records before that was measured have it
            old = "; the limit is our own message in one piece, and not a bare copy"
        for row in report["rows"]:
            # A struct's rows have some bytes less than was asked for.
            about = size_text(1 << (row["bytes"] - 1).bit_length()) if row["bytes"] & (row["bytes"] - 1) else size_text(row["bytes"])
            if row["block"] >= LEAST_BLOCK and row["limit_us"] is not None:
                groups.setdefault((row["source"], row["into"], row["shape"], about), []).append(row)
    for (source, into, shape, about), rows in groups.items():
        row = worst_of(rows)
        blocks = sorted({each["block"] for each in rows})
        what = f"{shape}, {source} to {into}, {about}, worst of blocks of {size_text(blocks[0])}"
        what += f" to {size_text(blocks[-1])}" if len(blocks) > 1 else ""
        limit = row["bytes"] / row["limit_us"] / 1e3
        note = f"worst at blocks of {size_text(row['block'])}" + old
        if (source, into) == ("strided", "contiguous"):
            yield entry("12", f"device to device, {what}", record, row["gbps"], "GB/s", f">= {LINK_FACTOR:g} x the contiguous link rate",
                        limit=limit, passed=row["gbps"] >= LINK_FACTOR * limit, note=note)
        else:
            yield entry("12", f"device to device, {what}", record, row["gbps"], "GB/s", "beside its own bare bound", limit=limit,
                        note=note + "; no factor is set")


def from_record(record):
    yield from pack_entries(record)
    yield from message_entries(record)


def from_layouts(measured):
    """Of every machine its last record."""
    for record in last_objects(measured, "layouts"):
        yield from from_record(record)


def limit_cells(row):
    return "- | -" if row["limit_us"] is None else f"{row['limit_us']:.2f} | {row['limit_us'] / row['median_us']:.3f}"


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
                         f"{limit_cells(row)} | {row['by_hand_us']:.2f} | {each} | {row['path']} |")
    return lines


def mpi_table(beside):
    """Where MPI's derived types stand beside ours: an MPI that is quicker has a ratio below 1."""
    quick = ", quick runs" if beside["quick"] else ""
    lines = [f"Beside MPI's derived types, memory of kind {beside['kind']}, {beside['rounds']} rounds{quick}; of each MPI the best way.", "",
             "| shape | block | bytes | what | ours us | MPI us | MPI / ours | which |", "|---|---|---|---|---|---|---|---|"]
    for row in beside["rows"]:
        theirs = ("-", "-", "none gave one") if row["peer_us"] is None else (f"{row['peer_us']:.2f}", f"{row['peer_us'] / row['ours_us']:.2f}", row["peer_name"])
        lines.append(f"| {row['shape']} | {row['block']} | {row['bytes']} | {row['what']} | {row['ours_us']:.2f} | {theirs[0]} | {theirs[1]} | {theirs[2]} |")
    return lines + ["", *(f"- left out: {what}" for what in beside["left_out"])]


def layout_table(files):
    lines = []
    for file in files:
        record = json.loads(file.read_text())
        quick = " Quick runs." if any(report.get("quick") for report in record["messages"]) else ""
        lines += [f"### Layouts in [{file.name}]({file.name})", "",
                  f"{record['machine']}; commit {record['commit']}; {record['date'][:10]}.{quick} Half of there and back, every byte compared; "
                  f"limit: {record['messages'][0]['limit_is']}.", "", *rows_table(record), ""]
        for beside in record.get("mpi", []):
            lines += [*mpi_table(beside), ""]
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
    mpi = list(filter(None, (complete(file) for file in sorted(raw.glob("mpi_layouts-*.json")))))
    record = {**about, "messages": messages, **({"pack": pack} if pack else {}), **({"mpi": mpi} if mpi else {})}
    pathlib.Path(to).write_text(json.dumps(record, indent=1) + "\n")
    print("\n".join([*rows_table(record), *(line for beside in mpi for line in mpi_table(beside))]))
    for one in from_record(record):
        verdict = {True: "reached", False: "MISSED", None: "no verdict"}[one["pass"]]
        beside = one["peer"] if one["limit"] is None else one["limit"]
        print(f"{verdict}: {one['measure']}: {one['ours']:.1f} beside {beside:.1f} GB/s, {one['target']}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(__doc__)
        sys.exit(2)
    main(*sys.argv[1:])
