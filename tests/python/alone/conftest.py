"""Tests that start processes of their own: each of them a script under the launcher, or beside it."""
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

COMMAND = os.environ.get("COMMAND_UNDER_TEST", "isthmus")
SOURCES = pathlib.Path(__file__).resolve().parents[3]


class Scripts:
    def __init__(self, folder):
        self.folder = folder

    def write(self, text):
        path = self.folder / "script.py"
        path.write_text(textwrap.dedent(text))
        return str(path)

    def run(self, ranks, text, timeout=60, environment=None, arguments=()):
        """Output of all ranks; the script must end well."""
        done = self.try_run(ranks, text, timeout, environment, arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def try_run(self, ranks, text, timeout=60, environment=None, arguments=()):
        path = text if text.endswith(".py") else self.write(text)
        return subprocess.run([COMMAND, "run", "-n", str(ranks), sys.executable, path, *arguments], capture_output=True,
                              text=True, timeout=timeout, env={**os.environ, **(environment or {})})


@pytest.fixture
def scripts(tmp_path):
    return Scripts(tmp_path)
