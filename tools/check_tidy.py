#!/usr/bin/env python3
"""Runs the linter over src/, as many files at a time as there are processors.

A file that passed is remembered by the content of everything the answer depends on (itself, the project's headers behind
it, flags, configuration, version), so that a second run repeats nothing. Where nearly nothing is remembered, as on a new
machine, files of a room are first looked at a dozen at a time, for which their headers are read once and not a dozen times; a dozen
with a fault is looked at by halves, those by halves again, and the last two one by one, which also finds what two files name alike no
fault. What the linter says only of a file that stands by itself (a using-declaration or a function that nothing uses, a header that is
not included) it then says of changed files alone, and in `make test-long`. Usage: check_tidy.py BUILD_DIR
"""
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
TIDY = TOP / ".venv/bin/clang-tidy"
PASSED = TOP / ".setup/tidy"
TOGETHER = 12
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
        if skip or word in ("-c", entry["file"]) or word.startswith(("-o", "-fprofile", "--coverage", "-fsanitize", "-M", "-Wno-error=")):
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


def looked_at(file, entry):
    """None where the linter finds no fault in the file, compiled as the entry is; else what it says."""
    done = subprocess.run([TIDY, "--quiet", f"--config-file={TOP}/.clang-tidy", file, "--", *arguments(entry)],
                          cwd=entry["directory"], capture_output=True, text=True)
    if done.returncode == 0:
        return None
    return done.stdout + "\n".join(line for line in done.stderr.splitlines() if "error" in line)


def lint(entry, key):
    fault = looked_at(entry["file"], entry)
    if fault is None:
        (PASSED / key).touch()
    return fault


def passed_together(key):
    return PASSED / (key + "-together")


def lint_together(some, folder):
    """Marks each of some (entry, key) of one room as passed, together, if all of them do, or all of a half, or of a half of that."""
    with tempfile.NamedTemporaryFile("w", suffix=".cpp", dir=folder) as unit:
        unit.write("".join(f'#include "{entry["file"]}"  // NOLINT\n' for entry, _ in some))
        unit.flush()
        fault = looked_at(unit.name, some[0][0])
    if fault is None:
        for _, key in some:
            passed_together(key).touch()
    elif len(some) > 2:
        middle = len(some) // 2
        for half in (some[:middle], some[middle:]):
            lint_together(half, folder)


def each_file(database):
    """An entry for each file of src/, also of those that CMake compiles together, as that is compiled."""
    entries = {}
    for entry in database:
        file = Path(entry["file"])
        if (TOP / "src") in file.parents:
            entries.setdefault(entry["file"], entry)
        elif "Unity" in file.parts:
            for member in re.findall(r'#include "([^"]+)"', file.read_text()):
                if (TOP / "src") in Path(member).parents:
                    entries.setdefault(member, {**entry, "file": member, "command": entry["command"].replace(entry["file"], member)})
    return [entry for entry in entries.values() if Path(entry["file"]).exists()]


def dozens(entries):
    """The (entry, key) that are compiled alike, a dozen at a time, without those that CMake too keeps alone."""
    alone = {(rules.parent / name).as_posix() for rules in (TOP / "src").glob("*/CMakeLists.txt")
             for names in re.findall(r"\bALONE\s([^)]*)", rules.read_text()) for name in names.split()}
    alike = {}
    for entry, key in entries:
        if entry["file"] in alone:
            continue
        room = Path(entry["file"]).relative_to(TOP / "src").parts[0]
        alike.setdefault((room, *arguments(entry)), []).append((entry, key))
    return [room[at:at + TOGETHER] for room in alike.values() for at in range(0, len(room), TOGETHER)]


def main():
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "compile_commands.json").exists():
        sys.exit("check_tidy: usage: check_tidy.py BUILD_DIR, a folder that CMake has configured")
    if not TIDY.exists() and os.environ.get("ISTHMUS_DEPS_DIR"):
        print(f"check_tidy: SKIPPED: no {TIDY.relative_to(TOP)}, and with ISTHMUS_DEPS_DIR nothing is fetched")
        return 0
    if not TIDY.exists():
        sys.exit(f"check_tidy: no {TIDY.relative_to(TOP)}; run tools/setup.sh test")
    database = json.loads((Path(sys.argv[1]) / "compile_commands.json").read_text())
    entries = each_file(database)
    cuda = any("/src/memory/cuda/" in entry["file"] for entry in entries)
    left_out = {path.as_posix() for path in (TOP / "src").rglob("*.cpp") if cuda or "cuda" not in path.parts}
    left_out -= {entry["file"] for entry in entries}
    if left_out:
        sys.exit(f"check_tidy: {sys.argv[1]} compiles no {', '.join(sorted(left_out))}; configure it again, or give the file to its room")
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    common = (TOP / ".clang-tidy").read_bytes() + re.sub(rb"Host CPU.*", b"", version)
    PASSED.mkdir(parents=True, exist_ok=True)
    keyed = [(entry, key_of(entry, common)) for entry in entries]
    by_itself = bool(os.environ.get("ISTHMUS_TEST_LONG"))

    def is_unknown(pair):
        return not (PASSED / pair[1]).exists() and (by_itself or not passed_together(pair[1]).exists())

    unknown = [pair for pair in keyed if is_unknown(pair)]
    known = len(keyed) - len(unknown)
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", os.cpu_count() or 1))) as pool:
        if len(unknown) > len(keyed) / 2 and not by_itself:
            with tempfile.TemporaryDirectory() as folder:
                list(pool.map(lambda some: lint_together(some, folder), dozens(unknown)))
            unknown = [pair for pair in unknown if is_unknown(pair)]
        faults = [fault for fault in pool.map(lambda pair: lint(*pair), unknown) if fault]
    for fault in faults:
        print(fault)
    print(f"check_tidy: {len(entries)} files, {known} unchanged since they passed, {len(faults)} with faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
