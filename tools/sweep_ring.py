#!/usr/bin/env python3
"""Measures the pipelined ring over slot size, slots and copies in flight: where the defaults in src/base/settings.hpp come from.

    tools/sweep_ring.py ISTHMUS FROM TO [--json FILE]

ISTHMUS is the command (build/bin/isthmus); FROM and TO are kinds as `isthmus bench` takes them. Each setting is measured with
`isthmus bench bandwidth` and `latency` at 256 KiB, 1 MiB and 4 MiB, bytes checked first. Prints a table, best bandwidth first.
"""
import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile

KIB = 1024
SIZES = [256 * KIB, 1024 * KIB, 4096 * KIB]


def measure(isthmus, benchmark, sender, receiver, settings, about):
    """The median time in us by size, or None if the command failed; `about` learns machine, commit and date."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [isthmus, "bench", benchmark, "--from", sender, "--to", receiver, "--quick", "--min", str(SIZES[0]), "--max",
                   str(SIZES[-1]), "--json", file.name]
        done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            print(f"failed: {settings}: {done.stderr.strip()[-300:]}", file=sys.stderr)
            return None
        report = json.load(open(file.name, encoding="utf-8"))
        about.update({name: report[name] for name in ("machine", "commit", "date")})
        return {row["bytes"]: row["median_us"] for row in report["rows"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("isthmus")
    parser.add_argument("sender")
    parser.add_argument("receiver")
    parser.add_argument("--json")
    options = parser.parse_args()
    hosts = options.sender == options.receiver == "host"
    slots = [16, 32, 64, 128, 256] if hosts else [128, 256, 512, 1024, 2048]
    flights = [4] if hosts else [2, 4, 8]
    rows, about = [], {}
    for size, number, flight in itertools.product(slots, [8, 16], flights):
        settings = {"ISTHMUS_RING_SLOT_HOST" if hosts else "ISTHMUS_RING_SLOT_DEVICE": f"{size}KiB",
                    "ISTHMUS_RING_SLOTS": str(number), "ISTHMUS_RING_IN_FLIGHT": str(flight)}
        bandwidth = measure(options.isthmus, "bandwidth", options.sender, options.receiver, settings, about)
        latency = measure(options.isthmus, "latency", options.sender, options.receiver, settings, about)
        if bandwidth is None or latency is None:
            continue
        rows.append({"slot_kib": size, "slots": number, "in_flight": flight,
                     "gbps": {str(n): n / bandwidth[n] / 1e3 for n in SIZES}, "latency_us": {str(n): latency[n] for n in SIZES}})
    rows.sort(key=lambda row: -row["gbps"][str(SIZES[-1])])
    print(f"{options.sender} to {options.receiver}\n{'slot KiB':>8} {'slots':>5} {'flying':>6}"
          + "".join(f" {n // KIB:>6} KiB GB/s" for n in SIZES) + "".join(f" {n // KIB:>7} KiB us" for n in SIZES))
    for row in rows:
        print(f"{row['slot_kib']:>8} {row['slots']:>5} {row['in_flight']:>6}"
              + "".join(f" {row['gbps'][str(n)]:>15.2f}" for n in SIZES)
              + "".join(f" {row['latency_us'][str(n)]:>14.1f}" for n in SIZES))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({**about, "benchmark": "sweep_ring", "from": options.sender, "to": options.receiver, "rows": rows}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
