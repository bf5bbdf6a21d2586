"""isthmus.numba_cuda where there is no GPU: what it says without numba-cuda, that both of its files declare the same, and that kernels compile."""
import ast
import importlib.util
import re
import struct
import subprocess
import sys

import pytest

from conftest import SOURCES

sys.path.insert(0, str(SOURCES / "tests" / "python"))
import devices  # noqa: E402

PACKAGE = SOURCES / "python" / "isthmus"


def test_without_numba_cuda_it_says_what_to_install():
    code = ("import sys; sys.modules['numba'] = None\n"
            "try:\n    import isthmus.numba_cuda\n"
            "except ImportError as error:\n    print(error)")
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    assert "isthmus.numba_cuda needs the package numba-cuda" in said and "pip install" in said


def test_both_files_declare_the_same_functions():
    names = {"i32": "int32", "u32": "uint32", "u64": "uint64"}
    text = (PACKAGE / "numba_cuda.cu").read_text()
    team = re.search(r"#define TEAM (.*)", text)[1]
    defined = {}
    for name, parameters in re.findall(r'^extern "C" __device__ int ist_numba_(\w+)\(([^)]*)\)', text, flags=re.MULTILINE):
        types = [names[each.split()[0].rstrip("*")] for each in parameters.replace("TEAM", team).split(",")]
        defined[name] = (types[0], types[1:])
    tree = ast.parse((PACKAGE / "numba_cuda.py").read_text())
    constants = {node.targets[0].id: node.value.value for node in tree.body
                 if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and hasattr(node.targets[0], "id")}
    declared = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_function":
            name, result, arguments = (each.value for each in node.args)
            arguments = arguments.replace("TEAM", constants["_TEAM"])
            declared[name] = (result, arguments.split(", ") if arguments else [])
    assert declared == defined and len(declared) > 10


@pytest.fixture
def compiled(monkeypatch):
    """For a kernel and the types of its arguments: its text for sm_90, and how many pieces of code the link of a program takes."""
    devices.give_numba_its_names()
    try:
        from isthmus import numba_cuda  # noqa: F401
        from numba import cuda
        from numba.cuda import dispatcher
    except ImportError as error:
        pytest.skip(f"not covered here: kernels of Numba ({error})")

    class Gpu:
        compute_capability = (9, 0)

    monkeypatch.setattr(dispatcher, "get_current_device", Gpu)  # it compiles functions of functions for the GPU that is there

    def compile(kernel, *types):
        options = {"device": False, "abi": "numba", "cc": (9, 0)}
        text, _ = cuda.compile(kernel.py_func, types, output="ptx", **options)
        if not hasattr(cuda, "compile_all"):  # an older one: what is called is compiled when a GPU is there
            return text, 2
        codes, _ = cuda.compile_all(kernel.py_func, types, output="ltoir", **options)
        return text, len(codes)
    return compile


def loaded(path):
    found = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def types_of(*letters):
    """`t` of a team; `i4` and the like of numbers; `1 i4`, `2 i4` of arrays."""
    import numba
    import numpy as np
    from isthmus import numba_cuda
    try:
        from numba.cuda.types import Array
        from numba.cuda.typing.typeof import typeof
    except ImportError:
        from numba import typeof
        from numba.core.types import Array
    view = type("AnyHeap", (), {"kind": "cuda", "device_view": lambda self: bytes(80)})()
    every = []
    for each in letters:
        number = typeof(np.zeros(1, each.split()[-1])[0]) if each != "t" else None
        every.append(typeof(numba_cuda.team(view)) if each == "t" else Array(number, int(each[0]), "C") if " " in each else number)
    return every


def test_every_call_compiles(compiled):
    kernels = loaded(SOURCES / "tests" / "python" / "gpu" / "numba_kernels.py")
    text, pieces = compiled(kernels.ring, *types_of("t", "2 i4", "1 u8", "1 i4", "i8", "1 i8", "1 i8"))
    called = set(re.findall(r"\.extern \.func[^;]*?ist_numba_(\w+)", text))
    defined = set(re.findall(r"ist_numba_(\w+)\(", (PACKAGE / "numba_cuda.cu").read_text()))
    assert called == defined
    assert pieces == 2  # the kernel's own code, and one of all that it calls
    _, pieces = compiled(kernels.mistakes, *types_of("t", "2 i4", "1 u8", "1 i4"))
    assert pieces == 2
    _, pieces = compiled(kernels.without_atomics, *types_of("t", "2 i4", "1 u8", "1 i4", "1 i8"))
    assert pieces == 2
    text, _ = compiled(kernels.grids, *types_of("t", "2 i4", "i8", "1 i8"))
    assert {"put", "barrier"} == set(re.findall(r"\.extern \.func[^;]*?ist_numba_(\w+)", text))


def test_a_view_of_host_memory_is_refused(compiled):
    from isthmus import numba_cuda
    with pytest.raises(ValueError, match="this one is of host memory"):
        numba_cuda.team(type("AnyHeap", (), {"kind": "host"})())
    held = struct.pack("=ii6QqQQ", 3, 4, *(1 << 63 | number for number in range(6)), -1, 77, 1 << 62)
    team = numba_cuda.team(type("AnyHeap", (), {"kind": "cuda", "device_view": lambda self: held})())
    assert team == (3, 4, *(1 << 63 | number for number in range(6)), 1 << 62)
    assert team._fields[6:] == ("sync_bytes", "abort_word", "desk")


def test_the_example_compiles(compiled):
    example = loaded(SOURCES / "examples" / "in_kernel" / "numba_ring.py")
    text, _ = compiled(example.ring, *types_of("t", "2 i4", "1 u8", "i8", "1 i4"))
    assert {"put_signal", "wait_until", "barrier"} == set(re.findall(r"\.extern \.func[^;]*?ist_numba_(\w+)", text))


@pytest.mark.parametrize("kernel, types, said", [
    ("lambda team, words: numba_cuda.fetch_add(team, words, 1, 0)", ("t", "1 f8"), "integer of 4 or 8 bytes"),
    ("lambda team, words: numba_cuda.signal(team, words, 1, 0)", ("t", "1 u4"), "has 8 bytes"),
    ("lambda team, words: numba_cuda.put(team, words[::2], words[::2], 0)", ("t", "1 u4"), "without gaps"),
])
def test_mistakes_of_types_are_named(compiled, kernel, types, said):
    from isthmus import numba_cuda
    from numba import cuda
    inner = cuda.jit(device=True)(eval(kernel, {"numba_cuda": numba_cuda}))

    class Kernel:
        @staticmethod
        def py_func(team, words):
            inner(team, words)

    with pytest.raises(Exception, match=said):
        compiled(Kernel, *types_of(*types))
