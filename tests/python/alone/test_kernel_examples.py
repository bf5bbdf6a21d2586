"""The examples of kernels in Python where there is no GPU: each says so, and that of Triton compiles for one."""
import importlib.util

import pytest

from conftest import SOURCES

FOLDER = SOURCES / "examples" / "in_kernel"


@pytest.mark.parametrize("name", ["cupy_ring.py", "numba_ring.py", "triton_ring.py"])
def test_without_a_gpu_it_says_so(scripts, name):
    out = scripts.run(2, str(FOLDER / name), environment={"CUDA_VISIBLE_DEVICES": ""})
    assert out.count("SKIPPED: ") == 2 and "right" not in out, out


def test_the_kernel_of_triton_compiles():
    triton = pytest.importorskip("triton", reason="not covered here: kernels of Triton, which is not installed")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    found = importlib.util.spec_from_file_location("triton_ring", FOLDER / "triton_ring.py")
    example = importlib.util.module_from_spec(found)
    found.loader.exec_module(example)
    names = example.ring.arg_names
    signature = {**{name: "i64" for name in names[:5]}, "rounds": "i32", "count": "constexpr", "most": "constexpr"}
    made = triton.compile(ASTSource(example.ring, signature, {"count": 1024, "most": 1 << 20}), target=GPUTarget("cuda", 90, 32))
    assembly = made.asm["ptx"]
    assert "exch" in assembly and ".release" in assembly and ".acquire" in assembly and ".sys" in assembly
