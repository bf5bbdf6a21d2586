#!/usr/bin/env python3
"""OpenSHMEM tests that others wrote, compiled with oshcc and oshc++ and run: a verification that takes their sources as they are.

    tools/peers/openshmem_suite.py FOLDER... [--build build] [--pes 1 2 4] [--seconds 60] [--json FILE]

Each FOLDER has programs of one file, .c or .cpp, and headers of their own beside them; nothing of it is kept here. Of Sandia OpenSHMEM
(github.com/Sandia-OpenSHMEM/SOS) that is test/unit, of the University of Houston's (github.com/openshmem-org/tests-uh) feature_tests/C. A program passes
on so many PEs if it ends with status 0 in time and says "Failed" of nothing, as tests-uh does; with NAME=STATUS in FOLDER/statuses.txt, a line each,
that status is wanted. One that is for more PEs has NAME>=PES there, one of which the suite's maker says that it need not pass here NAME: and why.
The status of this is 1 if something failed that is not listed so. The record has what each program did, and goes to --json.
"""
import argparse
import datetime
import json
import pathlib
import re
import subprocess
import sys
import tempfile

SAYS_SO = re.compile(r"\bFAIL(ED)?\b|\bFailed\b")


def listed(folder):
    """By names of programs: the status that is wanted, the fewest PEs, why it need not pass."""
    found = {}
    file = folder / "statuses.txt"
    for line in file.read_text().splitlines() if file.exists() else []:
        name, how, value = re.match(r"([^=>:]+)(>=|=|:)\s*(.*)", line).groups()
        found.setdefault(name.strip(), {})[how] = value
    return found


def compiled(program, source, build):
    cxx = source.suffix != ".c"
    command = [build / "bin" / ("oshc++" if cxx else "oshcc"), "-O1", "-w", "-I", source.parent, source, "-o", program, "-lm", "-lpthread"]
    if not cxx:
        command.insert(1, "-std=gnu11")
    if "#pragma omp" in source.read_text():
        command.insert(1, "-fopenmp")
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200, check=False)
    errors = [line for line in done.stderr.splitlines() if "error" in line or "undefined" in line]
    return "" if done.returncode == 0 else (errors or done.stderr.splitlines() or ["no reason given"])[0]


def run(program, pes, build, seconds, wanted):
    try:
        done = subprocess.run([build / "bin" / "oshrun", "-n", str(pes), program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"did not end in {seconds} s"
    if done.returncode != wanted:
        lines = [line for line in done.stdout.strip().splitlines() if not line.startswith("isthmus run:")]
        return f"status {done.returncode}" + (f": {lines[-1][:200]}" if lines else "")
    said = [line for line in done.stdout.splitlines() if SAYS_SO.search(line)]
    return f"said {said[0][:200]}" if said else "passed"


def row_of(source, facts, options, place):
    row = {"suite": source.parent.name, "program": source.name}
    if ":" in facts:
        row["need_not_pass"] = facts[":"]
    program = pathlib.Path(place) / source.stem
    why = compiled(program, source, options.build)
    if why:
        return {**row, "does_not_compile": why}
    fewest = int(facts.get(">=", 1))
    return {**row, "pes": {str(pes): run(program, pes, options.build, options.seconds, int(facts.get("=", 0))) if pes >= fewest else "for more PEs"
                           for pes in options.pes}}


def passed(row):
    return "pes" in row and all(how in ("passed", "for more PEs") for how in row["pes"].values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--pes", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    for folder in options.folders:
        if not folder.is_dir():
            parser.error(f"{folder} is no folder: name those that hold the suites' programs")
    options.build = options.build.absolute()
    rows = []
    with tempfile.TemporaryDirectory() as place:
        for folder in options.folders:
            facts = listed(folder)
            for source in sorted(each for each in folder.iterdir() if each.suffix in (".c", ".cpp")):
                rows.append(row_of(source, facts.get(source.name, {}), options, place))
                row = rows[-1]
                print(f"{row['suite']}/{row['program']}: "
                      + ("passed" if passed(row) else row.get("does_not_compile") or ", ".join(f"{pes} PEs {how}" for pes, how in row["pes"].items()))
                      + (f" (need not pass: {row['need_not_pass']})" if "need_not_pass" in row else ""), flush=True)
    bad = [row for row in rows if not passed(row) and "need_not_pass" not in row]
    print(f"{sum(map(passed, rows))} of {len(rows)} programs passed on {', '.join(map(str, options.pes))} PEs; {len(bad)} failed that should not")
    if options.json:
        facts = json.loads(subprocess.run([options.build / "bin" / "isthmus", "info", "--json"], capture_output=True, text=True, check=True).stdout)
        options.json.write_text(json.dumps({
            "machine": facts["machine"], "commit": facts["commit"], "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "benchmark": "OpenSHMEM tests that others wrote", "rows": rows}, indent=1) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
