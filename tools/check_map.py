#!/usr/bin/env python3
"""MAP.md tells the truth: every path in it exists, every room is in it, and the route's steps can be walked.

A path is a word in back quotes that has a slash or a source file's ending. No table has two rows of one path. In the section whose heading has the word
"route", each numbered step names at least one file, and a call in back quotes such as `post()` occurs in one of them.
"""
import re
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
QUOTED = re.compile(r"`([^`\n]+)`")
ENDINGS = (".c", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".py", ".sh", ".md", ".cmake", ".pml", ".json", ".txt")
CALL = re.compile(r"^(?:\w+::)*(~?\w+)\(\)$")


def find(word, near=None):
    """The file or folder a word names: from the top, from src/, or beside the last file of the step."""
    clean = word.rstrip("/").split(":")[0]
    for root in [TOP, TOP / "src", TOP / "include"] + ([near] if near else []):
        if (root / clean).exists():
            return root / clean
        # "a/b.{hpp,cpp}" names both; "a/*" names the folder.
        several = re.fullmatch(r"(.*)\{([^{}]+)\}(.*)", clean)
        if several and all((root / (several[1] + part + several[3])).exists() for part in several[2].split(",")):
            return root / (several[1] + several[2].split(",")[-1] + several[3])
        if "*" in clean and list(root.glob(clean)):
            return next(iter(root.glob(clean)))
    return None


def is_path(word):
    if not re.fullmatch(r"[\w.+/*{},:-]+", word) or word.startswith(("-", "http", "/")) or "::" in word:
        return False
    # What a build makes is not in the repository.
    if word.startswith(("build", "demo-out", "gpu-out")):
        return False
    return ("/" in word and not word.endswith("/h")) or word.endswith(ENDINGS)


def check_paths(text):
    for number, line in enumerate(text.splitlines(), 1):
        for word in QUOTED.findall(line):
            if is_path(word) and not find(word):
                yield f"line {number}: `{word}` does not exist"


def check_rooms(text):
    for room in sorted(p.name for p in (TOP / "src").iterdir() if p.is_dir()):
        if not re.search(rf"\b{room}/", text):
            yield f"room src/{room}/ is not mentioned"


def check_rows(text):
    """A table tells of each thing once: two rows of one are what a merge has left."""
    seen = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            seen = {}
            continue
        first = QUOTED.match(line[1:].strip())
        if first and first[1] in seen:
            yield f"line {number}: `{first[1]}` has a row in line {seen[first[1]]} already; make one row of both"
        elif first:
            seen[first[1]] = number


def route_steps(text):
    """The numbered items of the route's section, as (number, text)."""
    section = re.search(r"^#+[^\n]*\broute\b[^\n]*\n(.*?)(?=^#|\Z)", text, re.M | re.S | re.I)
    if not section:
        return None
    return [(int(n), body) for n, body in re.findall(r"^(\d+)\.\s+(.*?)(?=^\d+\.\s|^\S|\Z)", section[1], re.M | re.S)]


def check_route(text):
    steps = route_steps(text)
    if not steps:
        yield "no section with the word 'route' in its heading and numbered steps in it"
        return
    for expected, (number, body) in enumerate(steps, 1):
        if number != expected:
            yield f"route: step {number} stands where step {expected} should"
        words = QUOTED.findall(body)
        found = [find(word) for word in words if is_path(word)]
        sources = [path for path in found if path and path.is_file()]
        if not sources:
            yield f"route step {number} names no file that exists"
            continue
        beside = [p.with_suffix(s) for p in sources for s in (".hpp", ".cpp", ".h") if p.with_suffix(s).is_file()]
        code = "\n".join(path.read_text() for path in sources + beside)
        for word in words:
            call = CALL.match(word)
            if call and not re.search(rf"\b{re.escape(call[1])}\b", code):
                yield f"route step {number}: `{word}` is in none of the files it names"


def main():
    path = TOP / "MAP.md"
    if not path.exists():
        print("check_map: MAP.md does not exist")
        return 1
    text = path.read_text()
    faults = [fault for check in (check_paths, check_rooms, check_rows, check_route) for fault in check(text)]
    for fault in faults:
        print(f"check_map: {fault}")
    print(f"check_map: {len(faults)} fault(s)" if faults else f"check_map: true, {len(route_steps(text))} steps")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
