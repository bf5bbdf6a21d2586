#!/usr/bin/env python3
"""Runs the linter over src/, as many files at a time as there are processors.

A file that passed is remembered by the content of everything the answer depends on (itself, the project's headers behind
it, flags, configuration, version), so that a second run repeats nothing. Usage: check_tidy.py BUILD_DIR
"""
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
TIDY = TOP / ".venv/bin/clang-tidy"
PASSED = TOP / ".setup/tidy"
INCLUDE = re.compile(rb'^\s*#\s*include\s*[<"]([^">]+)[">]', re.M)


def behind(source):
    """The source and the project's headers it reaches."""
    found, waiting = {source}, [source]
    while waiting:
        here = waiting.pop()
        for target in INCLUDE.findall(here.read_bytes()):
            for root in (TOP / "src", TOP / "include", here.parent):
                path = root / target.decode()
                if path.is_file():
                    if path not in found:
                        found.add(path)
                        waiting.append(path)
                    break
    return sorted(found)


def arguments(entry):
    """The compiler's command without what only GCC knows or what names the output."""
    words, kept = entry["command"].split(), []
    words = words[next(i for i, w in enumerate(words) if re.search(r"(g|clang)\+\+(-\d+)?$|c\+\+$", w)) + 1:]
    skip = False
    for word in words:
        if skip or word in ("-c", entry["file"]) or word.startswith(("-o", "-fprofile", "--coverage", "-fsanitize", "-M")):
            skip = word in ("-o", "-MF", "-MT")
            continue
        kept.append(word)
    return kept


def key_of(entry, common):
    digest = hashlib.sha256(common)
    digest.update(" ".join(arguments(entry)).encode())
    for path in behind(Path(entry["file"])):
        digest.update(path.relative_to(TOP).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def lint(entry, key):
    if (PASSED / key).exists():
        return None
    done = subprocess.run([TIDY, "--quiet", entry["file"], "--", *arguments(entry)], cwd=entry["directory"],
                          capture_output=True, text=True)
    if done.returncode == 0:
        (PASSED / key).touch()
        return ""
    return done.stdout + "\n".join(line for line in done.stderr.splitlines() if "error" in line)


def main():
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "compile_commands.json").exists():
        sys.exit("check_tidy: usage: check_tidy.py BUILD_DIR, a folder that CMake has configured")
    if not TIDY.exists() and os.environ.get("ISTHMUS_DEPS_DIR"):
        print(f"check_tidy: SKIPPED: no {TIDY.relative_to(TOP)}, and with ISTHMUS_DEPS_DIR nothing is fetched")
        return 0
    if not TIDY.exists():
        sys.exit(f"check_tidy: no {TIDY.relative_to(TOP)}; run tools/setup.sh test")
    database = json.loads((Path(sys.argv[1]) / "compile_commands.json").read_text())
    entries = [e for e in database if (TOP / "src") in Path(e["file"]).parents and Path(e["file"]).exists()]
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    common = (TOP / ".clang-tidy").read_bytes() + re.sub(rb"Host CPU.*", b"", version)
    PASSED.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", os.cpu_count() or 1))) as pool:
        answers = list(pool.map(lambda e: lint(e, key_of(e, common)), entries))
    faults = [answer for answer in answers if answer]
    for fault in faults:
        print(fault)
    known = sum(answer is None for answer in answers)
    print(f"check_tidy: {len(entries)} files, {known} unchanged since they passed, {len(faults)} with faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
