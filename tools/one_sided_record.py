#!/usr/bin/env python3
"""One list of what `isthmus bench one-sided` wrote on each side, and of NVSHMEM's calls of the same run, in kernels, by the host and in streams, and
how the two compare.

    one_sided_record.py INFO RAW TO

Called so by tools/gpu_run.sh one-sided; tools/record_measurements.py takes the tables of what is filed as `*-one-sided.json` from here. Status 1
where no report is complete.
"""
import datetime
import json
import pathlib
import sys

from host_targets import complete

# Of kernels: what ours is called, of whom, and the call of NVSHMEM beside it.
THEIRS = {("ping-pong", "put_signal"): "put_signal", ("ping-pong", "packets"): "put_signal", ("barrier", "a block"): "barrier",
          ("put bandwidth", ""): "put_nbi", ("rate of puts", "p"): "p", ("rate of puts", "put"): "put_nbi", ("fetch_add", "one word"): "atomic_fetch_add",
          ("add", "one word"): "atomic_add"}


# Of the host (of heaps of CUDA memory) and of streams: the operation, how ours begins, and what nvshmem_messages.cu calls the same and its way.
THEIRS_OUTSIDE = {"host": {("put and quiet", "put"): ("put", "put and quiet of the host"), ("barrier", "barrier"): ("barrier", "of the host")},
                  "stream": {("ping-pong", "put_signal_on"): ("enqueued", "put with a signal in a stream"),
                             ("put bandwidth", "put_on"): ("put in a stream", "puts in a stream"),
                             ("barrier", "barrier_on of the heap"): ("barrier", "in a stream")}}


def beside_outside(row, side, peer):
    for (operation, begins), (benchmark, way) in THEIRS_OUTSIDE[side].items():
        if row["operation"] == operation and row["path"].startswith(begins):
            found = [one for one in peer["rows"] if (one["benchmark"], one["way"], one["bytes"]) == (benchmark, way, row["bytes"])]
            return {"us": found[0]["median_us"]} if found else None
    return None


def of_outside(peer):
    return any("benchmark" in row for row in peer["rows"])


def peer_for(side, kind, reports):
    """What NVSHMEM did that compares with that side: of kernels one report, of the host and of streams the other."""
    wants_outside = side != "kernel"
    if kind != "cuda":
        return None
    return next((one for one in reports if "side" not in one and of_outside(one) == wants_outside), None)


def their_row(row, report, reports):
    peer = peer_for(report["side"], report["from"], reports)
    if peer is None:
        return None
    return beside(row, peer) if report["side"] == "kernel" else beside_outside(row, report["side"], peer)


def beside(row, peer):
    """Their row of the same call: by as many blocks where blocks share the work, by as many threads where those do, else the quickest."""
    by = row["path"].split(", ")[0]
    call = THEIRS.get((row["operation"], by), THEIRS.get((row["operation"], "")))
    rows = [one for one in peer["rows"] if one["call"] == call and one["bytes"] == row["bytes"]]
    if row["operation"] == "rate of puts" and call == "put_nbi":
        rows = [one for one in rows if one["by"] in ("a thread", "a warp", "a block") and one["threads"] == row["threads"]]
    elif call == "put_nbi":
        rows = [one for one in rows if one["by"].split()[0] == str(row["blocks"])]
    elif call == "p":
        rows = [one for one in rows if one["by"].endswith("blocks") == (row["blocks"] > 1)
                and (one["by"].split()[0] == str(row["blocks"]) if row["blocks"] > 1 else one["threads"] == row["threads"])]
    elif call in ("atomic_fetch_add", "atomic_add"):
        rows = rows if row["blocks"] * row["threads"] == 1 else []
    elif call == "barrier":
        rows = [one for one in rows if one["threads"] == row["threads"]]
    return min(rows, key=lambda one: one["us"], default=None)


HEAD = ["### One-sided calls", "",
        "Of `isthmus bench one-sided`: medians in us, of one way of a ping-pong, of one copy, store or atomic of many, or of one barrier; every byte "
        "was compared first. Limits, and NVSHMEM's calls (in kernels, by the host, in streams), are of the same run. Quick runs have a twentieth of the repetitions.", "",
        "| record | side | memory | operation | bytes | by | us (p10 to p90) | GB/s | M/s | limit us | ours / limit | limit | NVSHMEM us | theirs / ours |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"]


def one_sided_table(files):
    """For the tables of docs/measured: a line for each row of each record."""
    lines = []
    for file in files:
        reports = json.loads(file.read_text())
        for report in reports:
            for row in report["rows"] if "side" in report else []:
                theirs = their_row(row, report, reports)
                side = report["side"] + (" (quick)" if report.get("quick") else "")
                limit = [f"{row['limit_us']:.4f}", f"{row['limit_ratio']:.2f}"] if row.get("limit_us") else ["", ""]
                lines.append("| " + " | ".join([
                    f"[{file.name}]({file.name})", side, report["from"], row["operation"], str(row["bytes"]), row["path"],
                    f"{row['median_us']:.4f} ({row['p10_us']:.4f} to {row['p90_us']:.4f})", f"{row['gbps']:.2f}" if row["gbps"] else "",
                    f"{row['per_s'] / 1e6:.3f}" if "per_s" in row else "", *limit, row["limit_is"],
                    *([f"{theirs['us']:.4f}", f"{theirs['us'] / row['median_us']:.2f}"] if theirs else ["", ""])]) + " |")
    return HEAD + lines + [""] if lines else []


def table(report, reports):
    yield f"\n{report['side'] + ', ' + report['from']:22} {'bytes':>9}  {'by':40} {'us':>10} {'NVSHMEM us':>11} {'theirs / ours':>13}"
    for row in report["rows"]:
        theirs = their_row(row, report, reports)
        if theirs:
            yield (f"{row['operation']:22} {row['bytes']:9}  {row['path']:40} {row['median_us']:10.4f} {theirs['us']:11.4f} "
                   f"{theirs['us'] / row['median_us']:13.2f}")


def main(info, raw, to):
    about = json.loads(pathlib.Path(info).read_text())
    found = [report for report in map(complete, sorted(pathlib.Path(raw).glob("one-sided-*.json"))) if report]
    if not found:
        sys.exit(f"{raw} holds no report of isthmus bench one-sided that is complete; the log says more")
    ours = list(found)
    for peer in filter(None, map(complete, sorted(pathlib.Path(raw).glob("nvshmem*.json")))):
        found.append({"machine": about["machine"], "commit": about["commit"],
                      "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "by": peer["peer_name"], **peer})
    for report in ours:
        lines = list(table(report, found))
        if lines[1:]:
            print("\n".join(lines))
    pathlib.Path(to).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        print(__doc__)
        sys.exit(2)
    main(*sys.argv[1:])
