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
from measure_overlap import overlap_table  # noqa: E402

# Notes what it was asked; its overlap is another one in each of the three runs of a way, and the middle one comes last.
ISTHMUS = '''#!/usr/bin/env python3
import json, os, pathlib, sys
words = sys.argv[1:]
progress = os.environ["ISTHMUS_PROGRESS_THREAD"]
free = "--no-bind" in words
assert words[:4] == ["run", "-n", "2", "-l"], words
if "grep" in words:
    for rank in (1, 0):
        print(f"[{rank}] Cpus_allowed_list:\\t" + ("0-7" if free else f"{rank * 4}-{rank * 4 + 3}"))
    sys.exit(0)
call = words[words.index("overlap") + 1]
log = pathlib.Path(__file__).with_name("log")
way = f"{call} {'free' if free else 'bound'} {progress}"
before = log.read_text().splitlines() if log.exists() else []
log.write_text("\\n".join([*before, way]) + "\\n")
percent = (90, 10, 50)[before.count(way)] + free + 2 * int(progress)
rows = [{"bytes": size, "overlap_percent": share, "alone_us": 100.0} for size, share in ((8, 1), (65536, 2), (1 << 20, percent))]
pathlib.Path(words[words.index("--json") + 1]).write_text(json.dumps(
    {"benchmark": f"overlap-{call}", "from": "host", "progress_thread": progress == "1", "rows": rows, "machine": "Invented", "commit": "0"}))
'''

with tempfile.TemporaryDirectory() as name:
    build = pathlib.Path(name)
    (build / "bin").mkdir()
    isthmus = build / "bin" / "isthmus"
    isthmus.write_text(ISTHMUS)
    isthmus.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != "ISTHMUS_OVERLAP_KINDS"}
    done = subprocess.run([sys.executable, "-B", TOOLS / "measure_overlap.py", build], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    # In turn, so that a machine that becomes slower does so for all.
    asked = (build / "bin" / "log").read_text().splitlines()
    ways = [f"{binding} {progress}" for binding in ("bound", "free") for progress in "01"]
    assert asked == [f"{call} {way}" for call in ("exchange", "allreduce") for _ in range(3) for way in ways], asked
    file = build / "overlap" / "overlap.json"
    found = json.loads(file.read_text())
    assert [(one["benchmark"], one["binding"], one["progress_thread"], one["processors"], one["rows"][-1]["overlap_percent"]) for one in found] == [
        (f"overlap-{call}", binding, thread, ["0-7", "0-7"] if binding == "free" else ["0-3", "4-7"], 50 + (binding == "free") + 2 * thread)
        for call in ("exchange", "allreduce") for binding in ("bound", "free") for thread in (False, True)], found
    assert "| overlap-exchange | host | yes | 0-3 and 4-7 | 1 | 2 | 52 | 100.0 |" in done.stdout, done.stdout
    assert "| overlap-exchange | host | no | free, 0-7 and 0-7 | 1 | 2 | 51 | 100.0 |" in done.stdout, done.stdout
    # Records from before have neither.
    for one in found:
        del one["binding"], one["processors"]
    file.write_text(json.dumps(found))
    table = "\n".join(overlap_table([file]))
    assert "| overlap-exchange | host | yes |  | 1 | 2 | 52 | 100.0 |" in table, table
    # What fails is told.
    isthmus.write_text("#!/bin/sh\necho no such kind >&2\nexit 3\n")
    done = subprocess.run([sys.executable, "-B", TOOLS / "measure_overlap.py", build], capture_output=True, text=True, env=environment)
    assert done.returncode == 1 and "status 3: no such kind" in done.stderr, done
print("each way was measured in turn, and recorded with its binding")
