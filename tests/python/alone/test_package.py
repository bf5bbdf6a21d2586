"""The package itself: what it needs, what it shows, and that its stubs say the truth."""
import ast
import inspect
import pathlib
import re
import subprocess
import sys

import isthmus
from isthmus import _core

SOURCES = pathlib.Path(__file__).resolve().parents[3]


def test_nothing_else_is_imported():
    code = "import sys; before = set(sys.modules); import isthmus; print(*(set(sys.modules) - before))"
    added = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout.split()
    roots = {name.split(".")[0] for name in added}
    assert roots - {"isthmus"} <= set(sys.stdlib_module_names)


def test_a_world_of_one_without_numpy():
    code = ("import sys; sys.modules['numpy'] = None; import isthmus\n"
            "with isthmus.World() as world:\n"
            "    into = bytearray(3)\n"
            "    world.comm.sendrecv(b'abc', 0, into)\n"
            "    print(into.decode(), world.comm.sendrecv_object([1, 2], 0), world)\n"
            "print(world)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("abc [1, 2] <isthmus.World, rank 0 of 1>\n<isthmus.World, closed>\n", "")


def test_codes_are_those_of_the_library():
    for code in isthmus.Code:
        name = _core.code_name(code)
        assert name == "IST_" + code.name if code in (isthmus.Code.OK, isthmus.Code.CANCELLED) else name == "IST_ERR_" + code.name
    assert _core.code_name(max(isthmus.Code) + 1) == "unknown code"


def test_version_is_that_of_the_sources():
    assert re.search(r"project\(isthmus VERSION ([0-9.]+)", (SOURCES / "CMakeLists.txt").read_text())[1] == isthmus.__version__


def test_stubs_are_what_the_extension_is(tmp_path):
    """After a change: python -m nanobind.stubgen -m isthmus._core -o python/isthmus/_core.pyi"""
    made = tmp_path / "_core.pyi"
    subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "isthmus._core", "-o", str(made)], check=True, timeout=60)
    assert made.read_text() == (SOURCES / "python" / "isthmus" / "_core.pyi").read_text()


def test_stubs_name_every_public_thing():
    stub = ast.parse((SOURCES / "python" / "isthmus" / "_core.pyi").read_text())
    named = {node.name for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    named |= {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign)}
    assert {name for name in vars(_core) if not name.startswith("_")} == named
    assert "std::" not in ast.unparse(stub)
    assert (SOURCES / "python" / "isthmus" / "py.typed").exists()


def test_everything_public_is_exported_and_documented():
    for name in isthmus.__all__:
        thing = getattr(isthmus, name)
        assert not inspect.isclass(thing) or thing.__doc__, name
    assert sorted(isthmus.__all__) == sorted(name for name in vars(isthmus) if not name.startswith("_"))
