#!/usr/bin/env python3
"""Picks one share of the tests of a build folder, so that all of them fit several calls of bounded length.

    shares.py BUILD K/N NAMES    prints the numbers of the tests of share K of N, as `ctest -I` takes them; their names go to a file

Slow tests are dealt out first, to whichever share has least to do so far, so that the shares take about as long as each other. What a
test costs is in slow_tests.txt beside this file, and never taken from earlier runs: the shares must be the same in every call. ctest
starts tests by what they took in the last run in this build folder; where there was none, it is told what the list says. Left out are
the wheel, which compiles everything once more and asks nothing of a GPU, and the arrays of other packages on a GPU, which `check
rest` runs.
"""
import json
import pathlib
import re
import subprocess
import sys

LEFT_OUT = re.compile(r"python\.(wheel|on_a_gpu)")
ORDINARY = 0.3  # seconds of a test that nobody listed as slow


def known_costs():
    """(pattern, seconds) of each line of the list."""
    lines = (pathlib.Path(__file__).with_name("slow_tests.txt")).read_text().splitlines()
    return [(re.compile(pattern), float(seconds)) for seconds, pattern in
            (line.split(maxsplit=1) for line in lines if line.strip() and not line.startswith("#"))]


def recorded_costs(file):
    """What ctest itself has written down: name -> (runs, seconds). After the line of dashes come names of tests that failed."""
    costs = {}
    for line in file.read_text().splitlines() if file.exists() else []:
        words = line.split(" ")
        if len(words) != 3:
            break
        costs[words[0]] = (int(words[1]), float(words[2]))
    return costs


def deal(costs, shares):
    """Lists of indices, one for each share: the dearest first, each to the share that has least."""
    dealt, sums = [[] for _ in range(shares)], [0.0] * shares
    for index in sorted(costs, key=lambda index: (-costs[index], index)):
        least = sums.index(min(sums))
        dealt[least].append(index)
        sums[least] += costs[index]
    return dealt


def listed(build):
    """The names of all tests, as ctest numbers them, from 1."""
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True)
    return [test["name"] for test in json.loads(shown.stdout[shown.stdout.index("{"):])["tests"]]


def main():
    if len(sys.argv) != 4 or not re.fullmatch(r"[1-9]\d*/[1-9]\d*", sys.argv[2]):
        sys.exit("usage: shares.py BUILD K/N NAMES")
    build, (share, shares) = pathlib.Path(sys.argv[1]), map(int, sys.argv[2].split("/"))
    if share > shares:
        sys.exit(f"shares.py: there is no share {share} of {shares}")
    names, known = listed(build), known_costs()
    costs = {number: next((seconds for pattern, seconds in known if pattern.search(name)), ORDINARY)
             for number, name in enumerate(names, 1) if not LEFT_OUT.match(name)}
    file = build / "Testing" / "Temporary" / "CTestCostData.txt"
    recorded = recorded_costs(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{name} {runs} {seconds}\n" for name, (runs, seconds) in
                            {**{names[number - 1]: (0, seconds) for number, seconds in costs.items()}, **recorded}.items()) + "---\n")
    chosen = sorted(deal(costs, shares)[share - 1])
    pathlib.Path(sys.argv[3]).write_text("".join(names[number - 1] + "\n" for number in chosen))
    # No range (start, end and stride of 0), only these.
    print(",".join(map(str, [0, 0, 0, *chosen])))


if __name__ == "__main__":
    main()
