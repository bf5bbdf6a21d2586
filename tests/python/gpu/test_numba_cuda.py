"""Kernels of Numba over the view of a symmetric heap: each rank on a GPU of its own."""
import os

import numpy as np
import pytest

import devices
import isthmus

EPOCHS = 200


@pytest.fixture
def heap(world, comm):
    if "ISTHMUS_TEST_FAKE_CUDA" in os.environ:
        pytest.skip("not covered here: kernels of Numba; it would take the invented driver for a real one")
    devices.give_numba_its_names()
    try:
        from isthmus import numba_cuda  # noqa: F401
        from numba import cuda
    except ImportError as error:
        pytest.skip(f"not covered here: kernels of Numba ({error})")
    # Two processes' kernels on one GPU do not run together.
    if world.devices("cuda") < comm.size or not cuda.is_available() or len(cuda.gpus) < comm.size:
        pytest.skip("not covered here: kernels of two ranks that wait for each other; each needs a GPU of its own")
    cuda.select_device(comm.rank)
    with comm.heap("cuda", 4 << 20, device=comm.rank) as heap:
        yield heap


def test_kernels_of_numba_reach_other_ranks(heap, comm):
    from isthmus import numba_cuda
    from numba import cuda

    import numba_kernels
    data, words, small = heap.array((6, numba_kernels.COUNT), "i4"), heap.array(5, "u8"), heap.array(3, "i4")
    wins, wrong = (cuda.to_device(np.zeros(size, "i8")) for size in (2, 6))
    arguments = [numba_cuda.team(heap), *(cuda.as_cuda_array(each) for each in (data, words, small))]
    numba_kernels.ring[1, 256](*arguments, 0, wins, wrong)  # compiles, which takes one rank longer than another
    cuda.synchronize()
    heap.barrier()
    numba_kernels.ring[1, 256](*arguments, EPOCHS, wins, wrong)
    cuda.synchronize()
    assert wrong.copy_to_host().tolist() == [0] * 6
    heap.barrier()
    won = comm.allgather_object(wins.copy_to_host().tolist())
    assert [sum(each) for each in zip(*won)] == [EPOCHS, EPOCHS], won
    if heap.pe == 0:
        sums = np.zeros(5, "u8"), np.zeros(3, "i4")
        heap.get(sums[0], words, 0)
        heap.get(sums[1], small, 0)
        assert sums[0].tolist() == [EPOCHS, EPOCHS, 2 * EPOCHS, 5 * EPOCHS * heap.pes, EPOCHS]
        assert sums[1].tolist() == [-3 * EPOCHS * heap.pes, -EPOCHS, -EPOCHS]
    heap.barrier()


def test_several_blocks_of_numba_meet(heap):
    from isthmus import numba_cuda
    from numba import cuda

    import numba_kernels
    data, wrong = heap.array((2, 8 * 64), "i4"), cuda.to_device(np.zeros(2, "i8"))
    arguments = numba_cuda.team(heap), cuda.as_cuda_array(data)
    for rounds in 0, EPOCHS:  # the first compiles
        cuda.synchronize()
        heap.barrier()
        numba_kernels.grids[8, 64](*arguments, rounds, wrong)
    assert wrong.copy_to_host().tolist() == [0, 0]
    heap.barrier()


def test_kernels_of_numba_are_told_of_mistakes(heap):
    from isthmus import numba_cuda
    from numba import cuda

    import numba_kernels
    data, words = heap.array((6, numba_kernels.COUNT), "i4"), heap.array(1, "u8")
    found = cuda.to_device(np.zeros(6, "i4"))
    numba_kernels.mistakes[1, 64](numba_cuda.team(heap), cuda.as_cuda_array(data), cuda.as_cuda_array(words), found)
    assert found.copy_to_host().tolist() == [3333332, 0, 0, 0, 0, 0]
    left = np.ones(1, "u8")
    heap.get(left, words, heap.pe)
    assert left[0] == 0
    heap.barrier()


def test_kernels_of_numba_store_where_there_are_no_atomics(heap):
    from isthmus import numba_cuda
    from numba import cuda

    import numba_kernels
    data, words, small = heap.array((2, 100), "i4"), heap.array(1, "u8"), heap.array(1, "i4")
    heap.put(data, np.stack([np.arange(100, dtype="i4"), np.zeros(100, "i4")]), heap.pe)
    heap.put(small, np.full(1, -4, "i4"), heap.pe)
    none, found = cuda.to_device(np.ones(heap.pes, "u1")), cuda.to_device(np.full(10, -1, "i8"))
    team = numba_cuda.team(heap)._replace(desk=np.uint64(none.device_ctypes_pointer.value))
    numba_kernels.without_atomics[1, 64](team, *(cuda.as_cuda_array(each) for each in (data, words, small)), found)
    misuse, ok = numba_cuda.MISUSE, numba_cuda.OK
    assert found.copy_to_host().tolist() == [misuse, ok, ok, misuse, 0, 0, 0, 0, 7, -4]
    came = np.zeros((2, 100), "i4")
    heap.get(came, data, heap.pe)
    assert came[1].tolist() == list(range(100))
    heap.barrier()
