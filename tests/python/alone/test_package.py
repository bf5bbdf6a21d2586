"""The package itself: what it needs, what it shows, and that its stubs say the truth."""
import ast
import inspect
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest

import isthmus
from isthmus import _core

SOURCES = pathlib.Path(__file__).resolve().parents[3]


def test_nothing_else_is_imported():
    code = "import sys; before = set(sys.modules); import isthmus; print(*(set(sys.modules) - before))"
    added = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout.split()
    roots = {name.split(".")[0] for name in added}
    assert roots - {"isthmus"} <= set(sys.stdlib_module_names)


def test_the_command_starts_the_program_with_pipes_that_end_it(tmp_path):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "isthmus"
    program.write_text("#!/bin/sh\nexec grep SigIgn /proc/self/status\n")
    program.chmod(0o755)
    shutil.copy(SOURCES / "python" / "isthmus" / "_command.py", tmp_path)
    done = subprocess.run([sys.executable, "-c", "import _command; _command.main()"], capture_output=True, text=True, check=True,
                          timeout=60, cwd=tmp_path)
    assert not int(done.stdout.split()[1], 16) & 1 << signal.SIGPIPE - 1


def test_a_world_of_one_without_numpy():
    code = ("import sys; sys.modules['numpy'] = None; import isthmus\n"
            "with isthmus.World() as world:\n"
            "    into = bytearray(3)\n"
            "    world.comm.sendrecv(b'abc', 0, into)\n"
            "    print(into.decode(), world.comm.sendrecv_object([1, 2], 0), world)\n"
            "print(world)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("abc [1, 2] <isthmus.World, rank 0 of 1>\n<isthmus.World, closed>\n", "")


def test_functions_get_memoryviews_where_numpy_was_not_imported(scripts):
    out = scripts.run(2, """
        import sys
        sys.modules["numpy"] = None
        from array import array
        import isthmus
        seen = set()
        def smaller(lower, higher):
            seen.add((type(lower).__name__, lower.format, lower.readonly, higher.readonly))
            return map(min, lower, higher)
        def add(lower, higher):
            for at, number in enumerate(lower):
                higher[at] += number
        with isthmus.World() as world:
            comm = world.comm
            for letter in "bBhHiIqQfd":
                got = array(letter, [99] * 1000)
                mine = array(letter, [(number * (3 + comm.rank)) % 50 for number in range(1000)])
                comm.allreduce(mine, got, isthmus.Operation(smaller))
                assert list(got) == [min((number * 3) % 50, (number * 4) % 50) for number in range(1000)], letter
                comm.allreduce(mine, got, isthmus.Operation(add))
                assert list(got) == [(number * 3) % 50 + (number * 4) % 50 for number in range(1000)], letter
            every = set().union(*comm.allgather_object(seen))
            assert {each[0] for each in every} == {"memoryview"} and {each[2:] for each in every} == {(True, False)}
            assert {each[1] for each in every} == set("bBhHiIqQfd"), every
            short = isthmus.Operation(lambda lower, higher: [1])
            try:
                comm.allreduce(mine, got, short)
            except (ValueError, isthmus.Error) as error:
                assert "gave 1 elements for two arrays of" in str(error), error
            else:
                assert False
            if comm.rank == 0:
                print("right")
        """)
    assert out == "right\n"


def test_the_command_of_a_package_that_was_not_installed_says_where_the_program_is():
    program = pathlib.Path(isthmus.__file__).parent / "bin" / "isthmus"
    if program.exists():
        pytest.skip("not covered here: a package without its program; this one is installed")
    done = subprocess.run([sys.executable, "-m", "isthmus", "run", "-n", "1", "true"], capture_output=True, text=True, timeout=60)
    built = program.parents[3] / "bin" / "isthmus"
    assert done.returncode == 1 and f"{program} is not there" in done.stderr
    assert f"run {built if built.exists() else 'build/bin/isthmus'} instead, or install the package (pip install .)" in done.stderr
    assert "again" not in done.stderr


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


def arguments_by_name():
    """Of the stubs' functions, methods and constructors; several classes may have a method of one name."""
    stub = ast.parse((SOURCES / "python" / "isthmus" / "_core.pyi").read_text())
    found = {}
    for owner in ast.walk(stub):
        for each in getattr(owner, "body", []) if isinstance(owner, (ast.Module, ast.ClassDef)) else []:
            if isinstance(each, ast.FunctionDef):
                found.setdefault(owner.name if each.name == "__init__" else each.name, []).append(each.args)
    return found


def parameters(arguments):
    """Those that may be given by their place, and those by their name alone, each with its default."""
    places = [each.arg for each in arguments.posonlyargs + arguments.args]
    defaults = [None] * (len(places) - len(arguments.defaults)) + arguments.defaults
    by_place = [pair for pair in zip(places, defaults) if pair[0] != "self"]
    return by_place, dict(zip((each.arg for each in arguments.kwonlyargs), arguments.kw_defaults))


def same(written, true):
    """Defaults. What is not written is left open, as are operations in the stubs."""
    if written is None or true is None:
        return written is None
    values = [getattr(isthmus, text) if hasattr(isthmus, text) else ast.literal_eval(text) for text in map(ast.unparse, (written, true))]
    return ... in values or values[0] == values[1]


def agrees(written, true):
    """What is written has the true parameters, in their order and with `*` where theirs is; those at the end may be left out."""
    (by_place, by_name), (true_by_place, true_by_name) = parameters(written), parameters(true)
    return (len(by_place) <= len(true_by_place) and set(by_name) <= set(true_by_name)
            and all(name == true_name and same(default, true_default)
                    for (name, default), (true_name, true_default) in zip(by_place, true_by_place))
            and all(same(default, true_by_name[name]) for name, default in by_name.items()))


def can_be_made(call, true):
    by_place, by_name = parameters(true)
    free = {name for name, _ in by_place[len(call.args):]} | set(by_name)
    return len(call.args) <= len(by_place) and (true.kwarg or all(each.arg in free for each in call.keywords))


def test_calls_in_the_document_are_those_of_the_stubs():
    """Those in the first column of a table are signatures, with a `*` before what is given by name; the others are calls."""
    true = arguments_by_name()
    looked_at = set()
    for line in (SOURCES / "docs" / "python.md").read_text().split("\n"):
        column = line.split("|")[1] if line.startswith("| ") else ""
        for text, is_signature in (column, True), (line.replace(column, "", 1), False):
            for name, inside in re.findall(r"`(?:\w+\.)?(\w+)\(([^`]+)\)`", text):
                if name not in true or inside == "...":
                    continue
                looked_at.add(name)
                if is_signature:
                    written, right = ast.parse(f"def call({inside}): pass").body[0].args, agrees
                else:
                    written, right = ast.parse(f"call({inside})").body[0].value, can_be_made
                assert any(right(written, each) for each in true[name]), f"{name}({inside})"
    assert looked_at >= {"sendrecv", "sendrecv_replace", "recv", "waitall", "reduce_scatter", "gather", "alltoall", "reduce_object", "World",
                         "send_on", "send_on_queue"}, looked_at


def test_everything_public_is_exported_and_documented():
    for name in isthmus.__all__:
        thing = getattr(isthmus, name)
        assert not inspect.isclass(thing) or thing.__doc__, name
    # Modules of their own, such as isthmus.numba_cuda, are there once another test has imported them.
    found = [name for name, thing in vars(isthmus).items() if not name.startswith("_") and not inspect.ismodule(thing)]
    assert sorted(name for name in isthmus.__all__ if not inspect.ismodule(getattr(isthmus, name))) == sorted(found)


def test_every_call_of_the_c_interface_has_its_counterpart():
    """What has none is in the table at the end of docs/python.md, or is a name of this list."""
    document = (SOURCES / "docs" / "python.md").read_text()
    left_out = document.split("## Left out of the C interface")[1]
    other_names = {"world_create": "World", "world_create_configured": "World", "world_create_with": "World.create_with",
                   "world_create_configured_with": "World.create_with", "world_comm": "World.comm",
                   "world_comm_self": "World.comm_self", "comm_dup": "Comm.dup", "comm_split": "Comm.split",
                   "comm_split_local": "Comm.split_local", "comm_create_group": "Comm.create_group", "comm_free": "Comm.free",
                   "cart_ndims": "Cart.ndims", "cart_get": "Cart.dims", "wait": "Request.wait", "test": "Request.test",
                   "cancel": "Request.cancel", "request_free": "Request.free", "start": "PersistentRequest.start",
                   "mrecv": "Message.recv", "imrecv": "Message.irecv", "get_count": "Status.get_count",
                   "op_create": "Operation", "kind_devices": "World.devices", "memory_alloc": "World.allocate",
                   "memory_copy": "World.copy", "register": "World.register", "unregister": "Registration.release",
                   "heap_create": "Comm.heap", "heap_destroy": "Heap.close", "heap_calloc": "Heap.array",
                   "heap_free": "SymmetricArray.free", "heap_pointer": "SymmetricArray.at",
                       "heap_buffer": "SymmetricArray.opencl", "heap_atomic32": "Heap.atomic",
                   "heap_atomic64": "Heap.atomic", "heap_compare_swap32": "Heap.compare_swap",
                   "heap_compare_swap64": "Heap.compare_swap", "heap_put_layout": "Heap.put", "heap_get_layout": "Heap.get",
                   "heap_iput": "Heap.put", "heap_iget": "Heap.get",
                   "window_create": "Comm.window", "window_free": "Window.close", "window_view_of": "Window.view",
                   "window_pointer": "Window.peer_ptr", "window_atomic32": "Window.atomic", "window_atomic64": "Window.atomic",
                   "window_compare_swap32": "Window.compare_swap", "window_compare_swap64": "Window.compare_swap",
                   "halo_grid_create": "Comm.halo_grid", "halo_grid_get": "HaloGrid.dims", "halo_create": "HaloGrid.halo",
                   "halo_create_lists": "Comm.halo_lists", "halo_sides_of": "HaloGrid.sides", "halo_all_sides_of": "HaloGrid.all_sides", "carrier_name": "Status.carrier", "world_traffic": "World.traffic", "version": "_core.version"}
    for header in ("isthmus.h", "collective.h", "heap.h", "heap_stream.h", "window.h", "halo.h", "layout.h", "layout_collective.h", "layout_stream.h", "stream.h", "queue.h", "boot.h"):
        text = (SOURCES / "include" / "isthmus" / header).read_text()
        for name in re.findall(r"^IST_API [\w\s*]+?\bist_(\w+)\(", text, flags=re.MULTILINE):
            plain = re.sub(r"(gather|scatter|alltoall)v$", r"\1", name)
            place = other_names.get(name)
            if place is None:
                candidates = [f"Comm.{plain}", f"Comm.{plain.removeprefix('comm_')}", f"Cart.{plain}",
                              f"Heap.{plain.removeprefix('heap_')}", f"Window.{plain.removeprefix('window_')}", f"HaloGrid.{plain.removeprefix('halo_grid_')}",
                              f"Halo.{plain.removeprefix('halo_')}", plain]
            else:
                candidates = [place]

            def found(path):
                thing = isthmus
                for part in path.split("."):
                    thing = getattr(thing, part, None)
                return thing is not None

            assert any(map(found, candidates)) or f"ist_{name}`" in left_out, name


def test_the_packages_nccl_comes_before_the_systems(tmp_path, monkeypatch):
    from isthmus import _nccl
    library = tmp_path / "nvidia" / "nccl" / "lib" / "libnccl.so.2"
    library.parent.mkdir(parents=True)
    library.touch()
    monkeypatch.syspath_prepend(tmp_path)
    found = {}
    _nccl.prefer_the_packages_own(found)
    assert found == {"ISTHMUS_NCCL": str(library.resolve())}
    for said in ("another", "never"):
        named = {"ISTHMUS_NCCL": said}
        _nccl.prefer_the_packages_own(named)
        assert named == {"ISTHMUS_NCCL": said}
    library.unlink()
    without = {}
    _nccl.prefer_the_packages_own(without)
    assert "ISTHMUS_NCCL" not in without or str(tmp_path) not in without["ISTHMUS_NCCL"]


def test_the_headers_for_kernels_are_in_the_package():
    folder = pathlib.Path(isthmus.get_include())
    assert (folder / "isthmus" / "device.cuh").is_file() and (folder / "isthmus" / "device" / "words.cuh").is_file()
    text = isthmus.device_source()
    assert '#include "isthmus/' not in text and "ist_team_view" in text and text.count("namespace ist::device {") > 5
