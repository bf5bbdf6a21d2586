#!/usr/bin/env python3
"""Includes between the rooms of src/ point one way, and nothing has outgrown its budget.

Prints one line per fault and ends with status 1 if there is any. Run from anywhere; needs only Python.
"""
import re
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
JOURNEY = ["cli", "face", "collective", "request", "match", "protocol", "heap", "path", "layout", "memory", "base"]
# Who is where stands beside the journey: it knows base only, and is asked from path on to the left.
BOOT_IS_ASKED_BY = JOURNEY[: JOURNEY.index("path") + 1]
FILE_LINES, FUNCTION_LINES, PUBLIC_REACH = 400, 60, 10
CODE = {".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp"}
BUDGETED = CODE | {".py", ".sh", ".cmake", ".txt"}
FOLDERS = ["src", "include", "examples", "tests", "tools", "cmake", "python", "models", "bench"]
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.M)
CONTRACT = ["Who calls this", "Threads", "Ownership", "Errors"]
NOT_FUNCTIONS = re.compile(r"^(?:\[\[.*?\]\]\s*)*(?:namespace|extern\s|export|enum|(?:template\s*<.*>\s*)?"
                           r"(?:typedef\s+)?(?:class|struct|union)\b[^()]*$)", re.S)


def files(folder, suffixes):
    root = TOP / folder
    return sorted(p for p in root.rglob("*") if p.suffix in suffixes and p.is_file()) if root.exists() else []


def shown(path):
    return path.relative_to(TOP).as_posix()


def allowed(room):
    if room == "boot":
        return {"boot", "base"}
    rooms = set(JOURNEY[JOURNEY.index(room):])
    return rooms | {"boot"} if room in BOOT_IS_ASKED_BY else rooms


def check_order():
    known = set(JOURNEY) | {"boot"}
    for path in files("src", CODE):
        room = path.relative_to(TOP / "src").parts[0]
        if room not in known:
            yield f"{shown(path)}: '{room}' is not a room; the rooms are {', '.join(JOURNEY)} and boot"
            continue
        for target in INCLUDE.findall(path.read_text()):
            other = target.split("/")[0]
            if other in known and other not in allowed(room) and (TOP / "src" / target).is_file():
                yield f"{shown(path)}: includes {target}; {room} may include only {', '.join(sorted(allowed(room)))}"


def check_contracts():
    for path in files("src", {".hpp", ".cuh"}):
        head = "\n".join(path.read_text().splitlines()[:25])
        missing = [word for word in CONTRACT if not re.search(rf"^(//|\s\*) {word}[^:]*:", head, re.M)]
        if missing:
            yield f"{shown(path)}: its contract at the top does not say: {', '.join(missing)}"


def check_file_lengths():
    for folder in FOLDERS:
        for path in files(folder, BUDGETED):
            lines = path.read_text().count("\n")
            if lines > FILE_LINES:
                yield f"{shown(path)}: {lines} lines, the budget is {FILE_LINES}"


def blank(match):
    """Keeps only the line breaks, so that positions and lines stay."""
    return re.sub(r"[^\n]", " ", match.group(0))


def without_words(text):
    """The text with comments, strings and preprocessor lines blanked out."""
    text = re.sub(r'R"([^(\s]*)\(.*?\)\1"', blank, text, flags=re.S)
    text = re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'", blank, text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.M)


def functions(text):
    """Yields (name, first line, last line) of every function body that stands in a namespace or a class."""
    text = without_words(text)
    open_scopes = []  # for each open brace: is it a namespace or class?
    head = 0          # where the present declaration begins
    body = None       # (name, start) while inside a function
    depth = 0
    for at, letter in enumerate(text):
        if body:
            depth += (letter == "{") - (letter == "}")
            if depth == 0:
                following = text[at + 1: at + 200].lstrip()[:1]
                # A member initialised in braces ends here; the body of the constructor is still to come.
                if following not in (",", "{"):
                    yield body[0], text.count("\n", 0, body[1]) + 1, text.count("\n", 0, at) + 1
                    head = at + 1
                body = None
        elif letter == "{":
            declaration = text[head:at].strip()
            is_function = "(" in declaration and not NOT_FUNCTIONS.match(declaration) and not declaration.endswith("=")
            if is_function:
                name = re.search(r"([~\w:]+|operator\s*\S+)\s*\(", declaration)
                body = (name.group(1) if name else "?", head + len(text[head:at]) - len(text[head:at].lstrip()))
                depth = 1
            else:
                open_scopes.append(head)
                head = at + 1
        elif letter == "}":
            if open_scopes:
                open_scopes.pop()
            head = at + 1
        elif letter == ";":
            head = at + 1


def check_function_lengths():
    for folder in FOLDERS:
        for path in files(folder, CODE):
            for name, first, last in functions(path.read_text()):
                if last - first + 1 > FUNCTION_LINES:
                    yield f"{shown(path)}:{first}: {name} has {last - first + 1} lines, the budget is {FUNCTION_LINES}"


def check_public_reach():
    for public in files("include", CODE):
        reached, waiting = set(), [public]
        while waiting:
            for target in INCLUDE.findall(waiting.pop().read_text()):
                for root in (TOP / "include", TOP / "src", public.parent):
                    found = root / target
                    if found.is_file() and found not in reached:
                        reached.add(found)
                        waiting.append(found)
        if len(reached) > PUBLIC_REACH:
            yield f"{shown(public)}: {len(reached)} project files behind it, the budget is {PUBLIC_REACH}"
        for found in sorted(reached):
            if TOP / "src" in found.parents:
                yield f"{shown(public)}: reaches {shown(found)}, which is not installed"


def main():
    checks = [check_order, check_contracts, check_file_lengths, check_function_lengths, check_public_reach]
    faults = [fault for check in checks for fault in check()]
    for fault in faults:
        print(f"check_rooms: {fault}")
    print(f"check_rooms: {len(faults)} fault(s)" if faults else "check_rooms: order and budgets hold")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
