#!/usr/bin/env python3
"""Rows 1a, 1b and 2 of the targets: Isthmus's calls in kernels beside bare loops and NVSHMEM's calls, in one run between two GPUs.

    in_kernel_record.py INFO RAW TO    one object: RAW/in_kernel.json with machine, commit and date, and as "peer" RAW/nvshmem.json where it
                                       is there and complete; and its table. Status 1 where ours is not complete. Of more than two GPUs it has as
                                       "team" RAW/in_kernel_team.json, the barriers among all of them, with its own "peer" from RAW/nvshmem_team.json.

Called so by tools/gpu_run.sh in-kernel; tools/record_measurements.py takes targets and tables of what is filed as `*-in-kernel.json` from here.
"""
import datetime
import json
import pathlib
import sys

from host_targets import complete, entry, last_objects, size_text
from one_sided_record import one_sided_table
from peers_on_record import NVSHMEM, beside_record

# What ours is called: what is said of it, its row, how many times as long as the bare loop it may take, and the call of NVSHMEM beside it.
MESSAGES = {"packets": ("in packets", "1a", 1.2, "a bare loop of packets that loads and stores, too"),
            "packets, answered": ("in packets that answer each other", "1a", 1.2, "a bare loop of packets that loads and stores, too"),
            "put_signal": ("put with a signal", "1b", 1.1, "a bare store, fence, flag")}
PACKETS_UP_TO = 4096
BARRIER_SHARE, BARRIER_FACTOR = 1.05, 2.1
# The calls of NVSHMEM that do what ours does, each by one block or a part of it.
THEIRS = {"packets": "put_signal", "packets, answered": "put_signal"}


def packets_factor(size):
    """How many times faster than NVSHMEM's put_signal."""
    return 2.2 if size <= 512 else 1.7


def of_nvshmem(record, call, size):
    """Its quickest row of what `call` of ours does; None where it was no part of the run."""
    rows = [row for row in record.get("peer", {}).get("rows", []) if (row["call"], row["bytes"]) == (THEIRS.get(call, call), size)]
    return min(rows, key=lambda row: row["us"], default=None)


def bare_barrier(record):
    """The bare push barrier of the run, which says how long a fence and a way over the link take there."""
    return min((row["bare_us"] for row in record["rows"] if row["call"] == "barrier" and "bare_us" in row), default=None)


def pair(record, row, number, what, share, bare, faster, factor):
    """Two entries: beside the bare loop, and beside NVSHMEM at its best."""
    us = row["us"]
    if row.get("bare_us"):
        yield entry(number, what, record, us, "us", f"<= {share:g} x {bare}", limit=row["bare_us"], passed=us <= share * row["bare_us"])
    theirs = of_nvshmem(record, row["call"], row["bytes"])
    name = f"{record['peer']['peer_name']}, {theirs['call']} by {theirs['by']}, threads: {theirs['threads']}" if theirs else None
    judged = entry(number, f"{what}, beside NVSHMEM", record, us, "us", faster, peer=theirs["us"] if theirs else None, peer_name=name,
                   passed=None if theirs is None else theirs["us"] >= factor * us, note=None if theirs else "not measured: NVSHMEM")
    one = {"measure": THEIRS.get(row["call"], row["call"]), "from": "cuda:0", "to": "cuda:1", "bytes": row["bytes"], "ours": us}
    yield beside_record(judged, NVSHMEM, one, theirs["us"] if theirs else None, ratio=True, bare=bare_barrier(record))


def from_record(record):
    # Two kernels on one GPU send nothing over a link: no figure of any row.
    if record["between"] != "two GPUs":
        return
    for row in record["rows"]:
        size = row["bytes"]
        # NVSHMEM has no such call of a grid: its figures are in the table alone.
        if row["call"] in MESSAGES and row["by"] != "a grid" and (row["call"] == "put_signal" or size <= PACKETS_UP_TO):
            said, number, share, bare = MESSAGES[row["call"]]
            factor = 1 if number == "1b" else packets_factor(size)
            faster = "never slower than NVSHMEM" if number == "1b" else f">= {factor:g} x faster than NVSHMEM's put_signal"
            yield from pair(record, row, number, f"in a kernel, {size_text(size)} {said}, one way", share, bare, faster, factor)
    yield from barriers(record, "two GPUs")
    if "team" in record:
        yield from barriers({**{name: record[name] for name in ("machine", "commit", "date")}, **record["team"]}, record["team"]["between"])


def barriers(record, among):
    for row in record["rows"]:
        if row["call"] == "barrier" and row["by"] == "a block":
            yield from pair(record, row, "2", f"in a kernel, barrier of {among} by a block of {row['threads']} threads", BARRIER_SHARE,
                            "a bare push barrier", f">= {BARRIER_FACTOR} x faster than NVSHMEM's barrier_all_block", BARRIER_FACTOR)


def from_in_kernel(measured):
    """Of every machine its last record."""
    for record in last_objects(measured, "in-kernel"):
        yield from from_record(record)


def wrong_checks(record):
    return [one["check"] for one in record["checks"] + record.get("team", {}).get("checks", [])
            if one.get("wrong") or one.get("status") or one.get("wanted") != one.get("found")]


def rows_table(record):
    lines = ["| call | by | threads | bytes | us (low to high) | bare loop | bare us | ours / bare | NVSHMEM us (low to high) | by | threads | "
             "NVSHMEM / ours |", "|---|---|---|---|---|---|---|---|---|---|---|---|"]

    def figure(row):
        return f"{row['us']:.3f} ({row['us_low']:.3f} to {row['us_high']:.3f})"

    def side(row, ours):
        return [figure(row), row["by"], str(row["threads"]), f"{row['us'] / ours:.2f}" if ours else ""]
    shown = set()
    for row in record["rows"]:
        theirs = None
        # A warp or a grid meets in another way than NVSHMEM's block.
        if row["call"] not in ("barrier", "sync") or row["by"] == "a block":
            theirs = of_nvshmem(record, row["call"], row["bytes"])
        bare = [row["bare"], f"{row['bare_us']:.3f}", f"{row['us'] / row['bare_us']:.2f}"] if "bare" in row else [""] * 3
        if theirs:
            shown.add((theirs["call"], theirs["bytes"]))
        threads = f"{row['blocks']} x {row['threads']}" if row.get("blocks", 1) > 1 else str(row["threads"])
        lines.append("| " + " | ".join([row["call"], row["by"], threads, str(row["bytes"]), figure(row), *bare,
                                        *(side(theirs, row["us"]) if theirs else [""] * 4)]) + " |")
    for row in record.get("peer", {}).get("rows", []):
        if (row["call"], row["bytes"]) not in shown:
            lines.append("| " + " | ".join([f"{row['call']}, NVSHMEM alone", "", "", str(row["bytes"]), "", *[""] * 3, *side(row, None)]) + " |")
    return lines


def in_kernel_table(files, one_sided=()):
    """Those of `in-kernel`, and behind them those of `one-sided`."""
    lines = []
    for file in files:
        record = json.loads(file.read_text())
        peer = record.get("peer", {}).get("peer_name", "NVSHMEM was no part of it")
        lines += [f"### Calls in kernels in [{file.name}]({file.name})", "",
                  f"{record['machine']}; commit {record['commit']}; {record['date'][:10]}. Between {record['between']}; {peer}. Half a round trip, "
                  f"or one barrier or call; checks that went wrong: {', '.join(wrong_checks(record)) or 'none'} of {len(record['checks'])}.", "",
                  *rows_table(record), ""]
        if "team" in record:
            team = record["team"]
            held = "; ".join(f"{one['check']}, {one['epochs']} times" for one in team["checks"])
            lines += [f"Barriers among {team['between']} of that machine, checked before ({held}); {team.get('peer', {}).get('peer_name', 'NVSHMEM was no part of it')}:",
                      "", *rows_table(team), ""]
    return lines + one_sided_table(one_sided)


def main(info, raw, to):
    about = json.loads(pathlib.Path(info).read_text())
    ours, peer, team, team_peer = (complete(pathlib.Path(raw) / name)
                                   for name in ("in_kernel.json", "nvshmem.json", "in_kernel_team.json", "nvshmem_team.json"))
    if ours is None:
        sys.exit(f"{raw} holds no in_kernel.json that is complete: the program that times our calls ended before it had printed all; the log "
                 "says more")
    record = {"machine": about["machine"], "commit": about["commit"],
              "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), **ours, **({"peer": peer} if peer else {}),
              **({"team": {**team, **({"peer": team_peer} if team_peer else {})}} if team else {})}
    pathlib.Path(to).write_text(json.dumps(record, indent=1) + "\n")
    print(f"checks: {len(ours['checks']) + len((team or {}).get('checks', []))}, wrong: {', '.join(wrong_checks(record)) or 'none'}")
    for one in [record] + ([record["team"]] if team else []):
        print("\n".join(rows_table(one)))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        print(__doc__)
        sys.exit(2)
    main(*sys.argv[1:])
