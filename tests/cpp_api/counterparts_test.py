#!/usr/bin/env python3
"""Every call of the C interface is reached by the C++ face, or stands here with the reason why not."""
import pathlib
import re
import sys

LEFT_OUT = {}


def main():
    folder = pathlib.Path(sys.argv[1]) / "include" / "isthmus"
    face = "".join(path.read_text() for path in sorted(folder.glob("*.hpp")))
    # A comment or a declaration is no use of a call.
    face = re.sub(r"//.*", "", face)
    face = re.sub(r'^extern "C" .*', "", face, flags=re.MULTILINE)
    calls = []
    for path in sorted(folder.glob("*.h")):
        calls += re.findall(r"^IST_API [\w\s*]+?\b(ist_\w+)\(", path.read_text(), flags=re.MULTILINE)
    lacking = [call for call in calls if not re.search(rf"\b{call}\b", face) and call not in LEFT_OUT]
    if len(calls) < 100:
        sys.exit(f"only {len(calls)} calls were found in the C headers; how are they declared now?")
    if lacking:
        sys.exit("the C++ face has no counterpart of " + ", ".join(lacking))


main()
