"""Proves that tools/check_map.py finds what a map may not say: two rows of one path in a table, and paths that there are not. Argument: the
folder tools/."""
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import check_map  # noqa: E402

ROWS = "| room | question |\n|---|---|\n| `src/face/` | what? |\n| `src/base/` | which, beside `src/face/`? |\n"
assert not list(check_map.check_rows(ROWS))
# Another table, and other text, may begin with the same.
assert not list(check_map.check_rows(ROWS + "\n`src/face/` and more\n\n" + ROWS))
assert list(check_map.check_rows(ROWS + "| `src/face/` | what else? |\n")) == [
    "line 5: `src/face/` has a row in line 3 already; make one row of both"]
assert list(check_map.check_paths("the room `src/none/` and `src/base/`")) == ["line 1: `src/none/` does not exist"]
