"""Counts what the calls that carry a small message execute, and compares it with what is recorded in instructions.json: instructions,
atomic operations (locked instructions and exchanges, callgrind's global bus events) and indirect calls and jumps, returns not among
them. A call of the C library or from one of ours to another through the PLT would be an indirect jump, too.

The program hot_path runs under callgrind with two numbers of messages; the difference, divided by that of the numbers, is
what one call costs without start and first times; what is counted in windows of 64 messages is what it costs for each of them, and of collective calls
what those of two ranks cost together. (One thread is both
ranks: ist_send and ist_recv name two communicators in turn.) Fails where
there are more than 10 % more instructions, 25 % with another compiler than the recorded one; where there is any more of the atomic
operations, unless the kernel has no membarrier and each call its lock; and of the indirect calls, where another compiler may have one a call. Status 77: nothing can be compared here, and the
reason is printed.

    instructions.py build/tests/hot_path --compiler "GNU 12.2.0" [--update]
"""
import argparse
import ctypes
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
WAYS = {"count": ("ist_send", "ist_recv", "ist_wait"), "windows": ("ist_isend", "ist_irecv", "ist_waitall"), "calls": ("ist_bcast", "ist_reduce")}
CALLS = [call for calls in WAYS.values() for call in calls]
# Whole rounds of the pair's 64 slots lie between them.
FEW, MANY = 256, 1280
SAME_COMPILER, OTHER_COMPILER = 1.10, 1.25
# What is counted, by its name in the record and callgrind's.
EVENTS = {"instructions": "Ir", "atomics": "Ge", "indirect": "Bi"}
INDIRECT_OF_OTHERS = 1
# Of what not every call does, so many a call come and go with where the slots' report falls.
NOW_AND_THEN = 0.01
# Where the kernel has no membarrier for processes there are no favourites, and the lock is an exchange (src/request/engine_lock.hpp).
LOCK = 1.02
MEMBARRIER, REGISTER_PRIVATE_EXPEDITED = 324, 1 << 4  # of x86-64, the processor that is recorded


def skip(reason):
    print("skipped: instructions are not counted here, because", reason)
    sys.exit(SKIPPED)


def run(words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"instructions: {' '.join(map(str, words))} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def totals(program, way, messages):
    """Of each call that is counted that way: the events of all its executions, with everything that it calls."""
    with tempfile.TemporaryDirectory() as folder:
        profile = pathlib.Path(folder) / "profile"
        run(["valgrind", "--tool=callgrind", "--collect-bus=yes", "--branch-sim=yes", f"--callgrind-out-file={profile}",
             "--zero-before=counting_begins", *[f"--toggle-collect={call}" for call in WAYS[way]], program, way, str(messages)])
        table = run(["callgrind_annotate", "--inclusive=yes", "--threshold=100", f"--show={','.join(EVENTS.values())}", profile])
    return {call: of_call(call, table) for call in WAYS[way]}


def of_call(call, table):
    """The numbers of its line, which has a point for none, and shares in brackets."""
    column = r"\s*([\d,]+|\.)(?:\s*\([^)]*\))?\s+"
    line = re.search(rf"^{column * len(EVENTS)}\S*:{call}(?:\s|$)", table, flags=re.MULTILINE)
    if not line:
        sys.exit(f"instructions: callgrind saw no {call}; its table:\n{table}")
    return [0 if number == "." else int(number.replace(",", "")) for number in line.groups()]


def count(program):
    """By event and call. Instructions are whole numbers; of the others there are fractions, of what not every call does."""
    found = {event: {} for event in EVENTS}
    for way, calls in WAYS.items():
        few, many = totals(program, way, FEW), totals(program, way, MANY)
        for call in calls:
            for event, less, more in zip(EVENTS, few[call], many[call]):
                each = (more - less) / (MANY - FEW)
                found[event][call] = round(each) if event == "instructions" else round(each, 3)
    return found


def has_favourites():
    return ctypes.CDLL(None).syscall(MEMBARRIER, REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0


def limit_of(event, recorded, same_compiler):
    if event == "instructions":
        return int(recorded * (SAME_COMPILER if same_compiler else OTHER_COMPILER))
    if event == "atomics":
        return recorded if has_favourites() else max(recorded, LOCK)
    return round(recorded + NOW_AND_THEN, 3) if same_compiler else max(recorded, INDIRECT_OF_OTHERS)


def compare(counted, record, same_compiler):
    """What is above its limit, in words."""
    print(f"{'call':<10} {'what':<12} {'counted':>8} {'recorded':>9} {'limit':>8}")
    above = []
    for event in EVENTS:
        for call in CALLS:
            now, before = counted[event][call], record[event][call]
            limit = limit_of(event, before, same_compiler)
            verdict = ""
            if now > limit:
                above.append(f"{call} ({event}: {now}, and the limit is {limit})")
                verdict = "  above the limit"
            elif now < (before / SAME_COMPILER if event == "instructions" else before):
                verdict = "  fewer: record it with --update"
            print(f"{call:<10} {event:<12} {now:>8} {before:>9} {limit:>8}{verdict}")
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
        RECORD.write_text(json.dumps({"processor": processor, "compiler": compiler, "bytes": 8, **counted}, indent=1) + "\n")
        print(f"{RECORD.name} rewritten: {counted}; docs/messages.md tells these numbers, too")
        return 0
    print(f"what a call executes, 8 bytes; {compiler}, recorded with {record['compiler']}")
    above = compare(counted, record, compiler == record["compiler"])
    if above:
        print(f"{', '.join(above)}: more than was recorded. If the reason is worth it, "
              f"record anew: tests/stress/{pathlib.Path(__file__).name} PROGRAM --compiler NAME --update")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
