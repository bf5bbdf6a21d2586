"""Proves that tools/measure_overlap.py measures each way as it says, keeps the run in the middle, and records how its ranks were bound.
Argument: the folder tools/. The isthmus that it runs is invented."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(sys.argv[1])
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOOLS))
from measure_overlap import overlap_table, siblings_of, spare_processors  # noqa: E402

# Notes what it was asked; its overlap is another one in each of the three runs of a way, and the middle one comes last.
ISTHMUS = '''#!/usr/bin/env python3
import json, os, pathlib, sys
words = sys.argv[1:]
progress = os.environ["ISTHMUS_PROGRESS_THREAD"]
free = "--no-bind" in words
assert words[:4] == ["run", "-n", "2", "-l"], words
if "grep" in words:
    for rank in (1, 0):
        if os.environ["ISTHMUS_OVERLAP_BINDINGS"] == "spare":
            print(f"[{rank}] Cpus_allowed_list:\\t" + ",".join(map(str, sorted(os.sched_getaffinity(0))[2 * rank:2 * rank + 2])))
            continue
        print(f"[{rank}] Cpus_allowed_list:\\t" + ("0-7" if free else f"{rank * 4}-{rank * 4 + 3}"))
    sys.exit(0)
call = words[words.index("overlap") + 1]
kind = words[words.index("--kind") + 1]
assert words[words.index("--max") + 1] == "16MiB", words
log = pathlib.Path(__file__).with_name("log")
way = f"{call} {'free' if free else 'bound'} {progress}"
before = log.read_text().splitlines() if log.exists() else []
log.write_text("\\n".join([*before, way]) + "\\n")
percent = (90, 10, 50)[before.count(way)] + free + 2 * int(progress)
rows = [{"bytes": size, "overlap_percent": share, "alone_us": 100.0} for size, share in ((8, 1), (65536, 2), (1 << 20, percent))]
pathlib.Path(words[words.index("--json") + 1]).write_text(json.dumps(
    {"benchmark": f"overlap-{call}", "from": "host" if kind == "host" else kind + ":0", "to": "host" if kind == "host" else kind + ":1", "progress_thread": progress == "1", "rows": rows, "machine": "Invented", "commit": "0"}))
'''



def run(build, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ISTHMUS_OVERLAP_")}
    (build / "bin" / "log").unlink(missing_ok=True)
    return subprocess.run([sys.executable, "-B", TOOLS / "measure_overlap.py", build], capture_output=True, text=True,
                          env={**environment, **{f"ISTHMUS_OVERLAP_{name}": value for name, value in variables.items()}})


def asked(build):
    return (build / "bin" / "log").read_text().splitlines()


# Two threads of each of four cores, numbered in both ways that there are; and cores that are too few.
assert spare_processors(range(8), lambda one: {one, one ^ 1}) == [0, 2, 4, 6]
assert spare_processors(range(8), lambda one: {one % 4, one % 4 + 4}) == [0, 1, 2, 3]
assert spare_processors({5, 1, 7, 3, 9}, lambda one: {one}) == [1, 3, 5, 7]
assert spare_processors(range(6), lambda one: {one, one ^ 1}) == []
mine = os.sched_getaffinity(0)
assert all(one in siblings_of(one) for one in mine)

with tempfile.TemporaryDirectory() as name:
    build = pathlib.Path(name)
    (build / "bin").mkdir()
    isthmus = build / "bin" / "isthmus"
    isthmus.write_text(ISTHMUS)
    isthmus.chmod(0o755)
    # With one to spare each, where this machine has the cores; else it says why not.
    spare = spare_processors(mine, siblings_of)
    done = run(build, BINDINGS="spare")
    if spare:
        found = json.loads((build / "overlap" / "overlap.json").read_text())
        assert done.returncode == 0 and {tuple(one["processors"]) for one in found} == {
            (f"{spare[0]},{spare[1]}", f"{spare[2]},{spare[3]}")} and {one["binding"] for one in found} == {"spare"}, (done, found)
        assert f"| spare, {spare[0]},{spare[1]} and {spare[2]},{spare[3]} |" in done.stdout, done.stdout
    else:
        assert done.returncode == 1 and "2 ranks need 4 cores" in done.stdout and "nothing is left" in done.stderr, done
    assert "expected some of spare, bound, free" in run(build, BINDINGS="bound tied").stderr
    # Of devices more bytes, and no more rounds than there is time for.
    done = run(build, BINDINGS="bound", KINDS="cuda", SECONDS="0")
    assert done.returncode == 0 and "1 of 3 rounds" in done.stdout and len(asked(build)) == 4, done
    assert "| overlap-exchange | cuda:0 to cuda:1 | yes | 0-3 and 4-7 | 1 | 2 | 92 |" in done.stdout, done.stdout
    assert {one["rounds"] for one in json.loads((build / "overlap" / "overlap.json").read_text())} == {1}

    done = run(build, BINDINGS="bound free")
    assert done.returncode == 0, done.stderr
    # In turn, so that a machine that becomes slower does so for all.
    ways = [f"{binding} {progress}" for binding in ("bound", "free") for progress in "01"]
    assert asked(build) == [f"{call} {way}" for _ in range(3) for call in ("exchange", "allreduce") for way in ways], asked(build)
    file = build / "overlap" / "overlap.json"
    found = json.loads(file.read_text())
    assert [(one["benchmark"], one["binding"], one["progress_thread"], one["processors"], one["rows"][-1]["overlap_percent"]) for one in found] == [
        (f"overlap-{call}", binding, thread, ["0-7", "0-7"] if binding == "free" else ["0-3", "4-7"], 50 + (binding == "free") + 2 * thread)
        for call in ("exchange", "allreduce") for binding in ("bound", "free") for thread in (False, True)], found
    assert {one["rounds"] for one in found} == {3}, found
    assert "| overlap-exchange | host | yes | 0-3 and 4-7 | 1 | 2 | 52 |  | 100.0 |" in done.stdout, done.stdout
    assert "| overlap-exchange | host | no | free, 0-7 and 0-7 | 1 | 2 | 51 |  | 100.0 |" in done.stdout, done.stdout
    # Records from before have neither.
    for one in found:
        del one["binding"], one["processors"], one["to"]
    file.write_text(json.dumps(found))
    table = "\n".join(overlap_table([file]))
    assert "| overlap-exchange | host | yes |  | 1 | 2 | 52 |  | 100.0 |" in table, table
    # What fails is told.
    isthmus.write_text("#!/bin/sh\necho no such kind >&2\nexit 3\n")
    done = run(build, BINDINGS="bound")
    assert done.returncode == 1 and "status 3: no such kind" in done.stderr, done
print("each way was measured in turn, and recorded with its binding")
