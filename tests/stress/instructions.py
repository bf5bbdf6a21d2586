"""Counts the instructions of the calls that carry a small message, and compares them with the recorded ones.

The program hot_path runs under callgrind with two numbers of messages; the difference, divided by that of the numbers, is
what one call costs without start and first times; ist_waitall, of windows of 64 messages, is what it costs for each of them. Fails where a count is more than 10 % above instructions.json, 25 % for
another compiler than the recorded one. Status 77: nothing can be compared here, and the reason is printed.

    instructions.py build/tests/hot_path --compiler "GNU 12.2.0" [--update]
"""
import argparse
import json
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

RECORD = pathlib.Path(__file__).resolve().with_name("instructions.json")
SKIPPED = 77
# By how hot_path is told to send.
WAYS = {"count": ("ist_send", "ist_recv", "ist_isend", "ist_irecv", "ist_wait"), "windows": ("ist_waitall",)}
CALLS = [call for calls in WAYS.values() for call in calls]
# Whole rounds of the pair's 64 slots lie between them.
FEW, MANY = 256, 1280
SAME_COMPILER, OTHER_COMPILER = 1.10, 1.25


def skip(reason):
    print("skipped: instructions are not counted here, because", reason)
    sys.exit(SKIPPED)


def run(words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"instructions: {' '.join(map(str, words))} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def totals(program, way, messages):
    """Of each call that is counted that way: the instructions of all its executions, with everything that it calls."""
    with tempfile.TemporaryDirectory() as folder:
        profile = pathlib.Path(folder) / "profile"
        run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}",
             *[f"--toggle-collect={call}" for call in WAYS[way]], program, way, str(messages)])
        table = run(["callgrind_annotate", "--inclusive=yes", "--threshold=100", profile])
    found = {}
    for call in WAYS[way]:
        line = re.search(rf"^\s*([\d,]+)\s.*[:\s]{call}(?:\s|$)", table, flags=re.MULTILINE)
        if not line:
            sys.exit(f"instructions: callgrind saw no {call}; its table:\n{table}")
        found[call] = int(line[1].replace(",", ""))
    return found


def count(program):
    found = {}
    for way, calls in WAYS.items():
        few, many = totals(program, way, FEW), totals(program, way, MANY)
        found.update({call: round((many[call] - few[call]) / (MANY - FEW)) for call in calls})
    return found


def compare(counted, recorded, factor):
    """The calls above their limit."""
    print(f"{'call':<10} {'counted':>8} {'recorded':>9} {'limit':>8}")
    above = []
    for call in CALLS:
        limit = int(recorded[call] * factor)
        verdict = ""
        if counted[call] > limit:
            above.append(call)
            verdict = "  above the limit"
        elif counted[call] < recorded[call] / SAME_COMPILER:
            verdict = "  fewer: record it with --update"
        print(f"{call:<10} {counted[call]:>8} {recorded[call]:>9} {limit:>8}{verdict}")
    return above


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", help="hot_path of an optimised build")
    parser.add_argument("--compiler", required=True, help="name and version")
    parser.add_argument("--update", action="store_true", help="record what is counted")
    given = parser.parse_args()
    for tool in ("valgrind", "callgrind_annotate"):
        if not shutil.which(tool):
            skip(f"{tool} is not installed")
    # Version 12.2.0 counts as 12.
    compiler = given.compiler.split(".")[0]
    processor = platform.machine()
    if not given.update:
        record = json.loads(RECORD.read_text())
        if record["processor"] != processor:
            skip(f"those recorded are of {record['processor']}, and this is {processor}")
    counted = count(given.program)
    if given.update:
        RECORD.write_text(json.dumps({"processor": processor, "compiler": compiler, "bytes": 8, "instructions": counted},
                                     indent=1) + "\n")
        print(f"{RECORD.name} rewritten: {counted}; docs/messages.md tells these numbers, too")
        return 0
    factor = SAME_COMPILER if compiler == record["compiler"] else OTHER_COMPILER
    print(f"instructions of a call, 8 bytes; {compiler}, recorded with {record['compiler']}")
    above = compare(counted, record["instructions"], factor)
    if above:
        print(f"{', '.join(above)}: more than {(factor - 1) * 100:.0f} % above the recorded count. If the reason is worth it, "
              f"record anew: tests/stress/{pathlib.Path(__file__).name} PROGRAM --compiler NAME --update")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
