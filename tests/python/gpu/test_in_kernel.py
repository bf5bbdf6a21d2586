"""Kernels that Python compiles, with isthmus/device.cuh, over the view of a symmetric heap: each rank on a GPU of its own."""
import pathlib

import numpy as np
import pytest

import isthmus

EPOCHS = 200
SOURCE = pathlib.Path(__file__).with_name("ring_kernel.cu")


@pytest.fixture
def heap(world, comm):
    cupy = pytest.importorskip("cupy", reason="not covered here: kernels compiled by CuPy")
    try:
        devices = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"not covered here: kernels compiled by CuPy ({error})")
    # Two processes' kernels on one GPU do not run together.
    if devices < comm.size or world.devices("cuda") < comm.size:
        pytest.skip("not covered here: kernels of two ranks that wait for each other; each needs a GPU of its own")
    with cupy.cuda.Device(comm.rank), comm.heap("cuda", 4 << 20, device=comm.rank) as heap:
        yield heap


@pytest.mark.parametrize("by", ["folder", "one text"])
def test_kernels_of_cupy_reach_other_ranks(heap, by):
    import cupy
    if by == "folder":
        kernel = cupy.RawKernel(SOURCE.read_text(), "ring", ("-std=c++17", "-I" + isthmus.get_include()))
    else:
        text = SOURCE.read_text().replace('#include "isthmus/device.cuh"', isthmus.device_source())
        kernel = cupy.RawKernel(text, "ring", ("-std=c++17",))
    kernel.compile()
    data, words = heap.array(4 * 4096), heap.array(2, "u8")
    wrong = cupy.zeros(1, cupy.uint64)
    cupy.cuda.Device().synchronize()
    heap.barrier()
    # A structure by value is what CuPy makes of a NumPy array of one element.
    view = np.frombuffer(heap.view(), f"V{len(heap.view())}")
    kernel((1,), (256,), (view, cupy.asarray(data), cupy.asarray(words), np.int32(EPOCHS), wrong))
    assert int(wrong[0]) == 0
    heap.barrier()
    assert heap.atomic("fetch", words_of(words, 1), pe=0) == 3 * EPOCHS * heap.pes
    heap.barrier()


def words_of(words, at):
    return isthmus.Buffer("cuda", words.address + 8 * at, 1, "u8")


def test_what_a_rank_put_is_an_array_of_cupy(heap, ring):
    import cupy
    after, before = ring
    array = heap.array((3, 7), "f4")
    mine = cupy.asarray(array)
    assert mine.data.ptr == array.address and mine.shape == (3, 7) and mine.dtype == np.float32
    heap.barrier()
    heap.put(mine[1], cupy.full(7, heap.pe + 1, cupy.float32), after)
    heap.barrier()
    assert cupy.asnumpy(mine).tolist() == [[0] * 7, [before + 1] * 7, [0] * 7]
    heap.barrier()
