"""Proves that tools/fetch_deps.sh fetches the Python packages which tools/setup.sh names, by its list of what a folder is to hold: the
folder of this test has just that, so that nothing is fetched. Argument: the folder tools/. The system's packages are invented."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(sys.argv[1])
named = re.search(r"^python_parts=\((.*?)\)$", (TOOLS / "setup.sh").read_text(), flags=re.DOTALL | re.MULTILINE)[1].split()
wanted = [part for name in ("nanobind", "scikit-build-core", "pytest") for part in named if part.startswith(name + "==")]
assert len(wanted) == 3 and all(re.fullmatch(r"[\w-]+==[\w.]+", part) for part in named), named

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    for tool, answer in (("apt-get", "echo nothing is fetched in a test >&2; exit 1"), ("dpkg", "exit 1"), ("apt-cache", "exit 0")):
        (folder / tool).write_text(f"#!/bin/sh\n{answer}\n")
        (folder / tool).chmod(0o755)

    def fetch(wheels):
        (folder / "PACKAGES").write_text("".join(wheel + "\n" for wheel in wheels))
        return subprocess.run([TOOLS / "fetch_deps.sh", folder], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})

    done = fetch(sorted(wanted, key=named.index))
    assert done.returncode == 0 and "holds these versions already" in done.stdout, done
    done = fetch([])
    assert done.returncode != 0 and "nothing is fetched in a test" in done.stderr, done
print("the packages are those of setup.sh")
