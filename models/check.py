#!/usr/bin/env python3
"""Explores the Spin models of the lock-free parts exhaustively, as they are and with each guard deleted.

    models/check.py             all models
    models/check.py slots       one
    models/check.py --long      also with more slots and messages (so does ISTHMUS_TEST_LONG=1)

A model as it is must have no error, in a search that was not cut short. A guard is a place that NO_GUARD_NAME takes
out; without it the model must have an error, or the guard would guard nothing. Other variants of a model are listed below.
Without spin nothing is checked, and the status is 77, which ctest reports as skipped.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
VARIANTS = {"cell_queue": ["KILL"], "mailbox": ["FAILS TOTAL=4", "DIES TOTAL=4", "GIVES_UP TOTAL=4"]}  # further definitions under which the model must be clean
LARGER = {  # the same, for long runs
    "slots": ["SHARES=3 TOTAL=8", "SLOTS=4 BLOCKS=4 TOTAL=8"],
    "slot_ring": ["SLOTS=2 FEW=1 MESSAGES=8", "MESSAGES=8", "SLOTS=2 FEW=1 PLACES=3 MESSAGES=8"],
    "cell_queue": ["MESSAGES=9", "MESSAGES=9 KILL"],
    "doorbell": ["MESSAGES=4"],
    "engine_lock": ["ROUNDS=5", "THREADS=3 ROUNDS=2"],
    "left_cells": ["POSTS=5"],
    "shown": ["TOTAL=8"],
    "channel": ["TOTAL=14"],
    "stream_meeting": ["TOTAL=10"],
    "worker": ["TOTAL=13"],
    "mailbox": ["TOTAL=10", "FAILS TOTAL=5"],
    "device_barrier": ["BARRIERS=6", "PES=3 BLOCKS=1", "BLOCKS=3 BARRIERS=2"],
    "packets": ["TOTAL=13"],
    "gathering": ["CALLS=3", "TOGETHER CALLS=3", "APART CALLS=4", "APART BLOCKS=4 CALLS=2"],
    "heap_barrier": ["EPOCHS=3", "PES=2 EPOCHS=6"],
    "lane": ["CALLS=10", "SLOTS=3 CALLS=9"],
    "lane_turns": ["TURNS=4"],
    "lane_count": ["CALLS=6"],
    "invitation": ["RECEIVES=6"],
    "word_proxy": ["TIMES=4", "PLACES=3 TIMES=4"],
}
SKIPPED = 77


def explore(model: pathlib.Path, definitions: str) -> tuple[int, int]:
    """Number of errors found and of states stored; raises if the search was not complete."""
    # States are kept as they are, which takes two thirds of the time, where they have room that way.
    packed = ["-DCOLLAPSE"] if definitions in LARGER.get(model.stem, []) else []
    with tempfile.TemporaryDirectory(prefix="isthmus-model-") as folder:
        def call(*command: str) -> str:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
            return done.stdout

        call("spin", *(f"-D{each}" for each in definitions.split()), "-a", str(model))
        # A model with a guard deleted fails early: compiling it costs more than running it, but where the compiler does nothing well.
        quick = ["tcc"] if shutil.which("tcc") else ["gcc", "-O0"]
        compiler = quick if "GUARD" in definitions else ["gcc", "-O1"]
        call(*compiler, "-w", "-DSAFETY", *packed, "-DMEMLIM=2000", "-o", "pan", "pan.c")
        # Room for depth is written to before the search begins, and that for states, by its default, is 128 MiB; few need much.
        small = ["-w18"] if "GUARD" in definitions else []
        for depth in (20000, 1000000):
            report = call("./pan", f"-m{depth}", *small, "-n")
            if "max search depth too small" not in report:
                break
    errors = int(re.search(r"errors: (\d+)", report).group(1))
    states = int(re.search(r"(\d+) states, stored", report).group(1))
    if "max search depth too small" in report or "out of memory" in report or "hash-compact" in report:
        raise RuntimeError(f"{model.name} {definitions}: the search was cut short\n{report}")
    if errors == 0 and "Search not completed" in report:
        raise RuntimeError(f"{model.name} {definitions}: the search was not completed\n{report}")
    return errors, states


def main(arguments: list[str]) -> int:
    names = [name for name in arguments if name != "--long"]
    long = "--long" in arguments or os.environ.get("ISTHMUS_TEST_LONG", "0") not in ("", "0")
    if not shutil.which("spin") or not shutil.which("gcc"):
        print("models: skipped: needs spin and gcc: apt-get install spin gcc", file=sys.stderr)
        return SKIPPED
    models = [HERE / f"{name}.pml" for name in names] or sorted(HERE.glob("*.pml"))
    work = []  # model, definition, must it be clean
    for model in models:
        guards = sorted(set(re.findall(r"NO_GUARD_\w+", model.read_text())))
        if not guards:
            print(f"{model.name} has no guard", file=sys.stderr)
            return 1
        work += [(model, definition, True) for definition in ["", *VARIANTS.get(model.stem, []), *(LARGER[model.stem] if long else [])]]
        work += [(model, guard, False) for guard in guards]
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(1 if names else 2) as pool:  # one named model is a test, which others run beside
        results = pool.map(lambda item: explore(item[0], item[1]), work)
        for (model, definition, clean), (errors, states) in zip(work, results):
            good = (errors == 0) == clean
            wrong += not good
            wanted = "no error" if clean else "an error"
            print(f"{'ok  ' if good else 'FAIL'} {model.stem:11} {definition or 'as it is':28} {states:9} states, "
                  f"{'no error' if errors == 0 else 'an error'}{'' if good else ', wanted ' + wanted}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
