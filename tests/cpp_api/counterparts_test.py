#!/usr/bin/env python3
"""Every call of the C interface is reached by that class of the C++ face which stands for the handle it works on, or stands here with
the reason why not."""
import pathlib
import re
import sys

# Of each handle: the classes that stand for it, each with those that it is made of. What a call works on is the first of these that it takes.
CLASSES = {
    "message": [["Message"]],
    "request": [["Request"], ["PersistentRequest"]],
    "halo": [["Halo"]],
    "halo_grid": [["HaloGrid", "Halo"]],
    "heap": [["Heap"]],
    "window": [["Window"]],
    "layout": [["Layout", "LayoutCollectives", "LayoutStreams"]],
    "comm": [["Comm", "Gathers", "Collectives", "CommOwner", "Cart", "HaloGrid", "Halo", "Heap", "Window", "Layout", "LayoutCollectives", "LayoutStreams"]],
    "world": [["World", "WorldOwner", "Memory", "Registration"]],
    "op": [["Operation"]],
}
LEFT_OUT = {
    ("Request", "ist_start"): "it is started when it is made",
    ("World", "ist_world_leave"): "an object that its owner drops has no thread inside calls on it",
    ("WorldOwner", "ist_world_leave"): "the same",
    ("the C++ face", "ist_worker_blocks_on"): "host code beside kernels calls it, by launch.cuh",
}


def between_braces(face, start):
    depth, at = 1, start
    while depth > 0:
        depth += {"{": 1, "}": -1}.get(face[at], 0)
        at += 1
    return face[start : at - 1]


def body_of(face, name):
    """What stands between the braces of that class, and of those of its functions that are written behind it."""
    start = re.search(rf"^class (?:\[\[nodiscard\]\] )?{name}\b[^;{{]*\{{", face, flags=re.MULTILINE)
    if start is None:
        sys.exit(f"the C++ face has no class {name}; what stands for its handle now?")
    behind = re.finditer(rf"^inline [^;{{}}=]*\b{name}::\w+\([^;{{]*\{{", face, flags=re.MULTILINE)
    return "".join(between_braces(face, each.end()) for each in [start, *behind])


def worked_on(parameters):
    """The handle, and whether it is one of several; none: it works on no handle."""
    found = {}
    for parameter in parameters.split(","):
        taken = re.fullmatch(r"\s*(?:const )?ist_(\w+)(\*?) (\w+)", parameter)
        if taken and taken[1] in CLASSES:
            found.setdefault(taken[1], []).append(taken[2] == "*")
    # A pointer beside another handle is where a new one goes, unless it is a message's, which goes when it is received.
    given = [kind for kind in CLASSES if kind in found and (not all(found[kind]) or len(found) == 1)]
    if set(found) == {"message", "request"}:
        given = ["message"]
    return given[0] if given else None


def main():
    folder = pathlib.Path(sys.argv[1]) / "include" / "isthmus"
    face = "".join(path.read_text() for path in sorted(folder.glob("*.hpp")))
    # A comment or a declaration is no use of a call.
    face = re.sub(r"//.*", "", face)
    face = re.sub(r'^extern "C" .*', "", face, flags=re.MULTILINE)
    bodies = {name: body_of(face, name) for lists in CLASSES.values() for group in lists for name in group}
    calls, lacking = 0, []
    for path in sorted(folder.glob("*.h")):
        for call, parameters in re.findall(r"^IST_API [\w\s*]+?\b(ist_\w+)\(([^;]*)\);", path.read_text(), flags=re.MULTILINE):
            calls += 1
            kind = worked_on(parameters)
            several = "requests" in parameters
            makes = kind == "world" and re.search(r"_create", call)
            if kind is None or several or makes:
                groups = [("the C++ face", face)]
            else:
                groups = [(group[0], "".join(bodies[name] for name in group)) for group in CLASSES[kind]]
            for name, text in groups:
                if not re.search(rf"\b{call}\b", text) and (name, call) not in LEFT_OUT:
                    lacking.append(f"{name}: {call}")
    if calls < 100:
        sys.exit(f"only {calls} calls were found in the C headers; how are they declared now?")
    if lacking:
        sys.exit("the C++ face has no counterpart in " + ", ".join(lacking))


main()
