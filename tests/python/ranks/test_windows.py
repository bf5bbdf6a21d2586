"""Windows: memory that ranks already have, reached by offset; of the host and, where there is one, of CUDA."""
import mmap
import os

import numpy as np
import pytest

import isthmus

KINDS = ["host", "cuda"]
SIZE = 300001


@pytest.fixture(params=KINDS)
def memory(request, world):
    if request.param == "cuda" and world.devices("cuda") == 0:
        pytest.skip("not covered here: windows of CUDA memory; there is no device")
    return world.allocate(request.param, SIZE + 1000)


def bytes_of(window, pe):
    found = np.full(window.nbytes[pe], 0xEE, np.uint8)
    window.get(found, 0, pe)
    return found


def test_puts_and_gets_reach_every_byte(memory, comm, ring, make_noise):
    after, before = ring
    with comm.window(memory) as window:
        assert window.nbytes == (SIZE + 1000,) * window.pes and (window.pe, window.pes) == (comm.rank, comm.size)
        window.put(0, np.full(SIZE + 1000, 0xA5, np.uint8), window.pe)
        window.quiet()
        comm.barrier()
        sent, expected = make_noise(SIZE, window.pe, before)
        window.put_nbi(77, sent, after)
        window.quiet()
        comm.barrier()
        found = bytes_of(window, window.pe)
        assert np.array_equal(found[77:77 + SIZE], expected)
        assert np.all(found[:77] == 0xA5) and np.all(found[77 + SIZE:] == 0xA5)
        got = np.zeros(SIZE, np.uint8)
        window.get_nbi(got, 77, after)
        window.quiet()
        assert np.array_equal(got, sent)
        comm.barrier()
    assert window.closed and "closed" in repr(window)
    with pytest.raises(ValueError, match="was closed"):
        window.quiet()


def test_words_are_signalled_waited_for_and_counted(memory, comm, ring):
    after, _ = ring
    with comm.window(memory) as window:
        window.put(0, np.zeros(64, np.uint8), window.pe)
        comm.barrier()
        for step in range(1, 20):
            window.put_signal(1000, np.full(333, step, np.uint8), 8, step, after)
            window.wait_until(8, ">=", step)
            assert window.test(8, "==", step) and not window.test(8, "<", step)
            assert np.all(bytes_of(window, window.pe)[1000:1333] == step)
            window.atomic("add", 16, 3, pe=0)
            window.atomic("inc", 24, pe=0, typestr="i4")
            comm.barrier()
        assert window.atomic("fetch", 16, pe=0) == 3 * 19 * window.pes
        assert window.atomic("fetch", 24, pe=0, typestr="i4") == 19 * window.pes
        comm.barrier()
        assert window.compare_swap(32, 0, 7, window.pe) == 0
        assert window.compare_swap(32, 0, 8, window.pe, "u4") == 7
        with pytest.raises(ValueError, match="'i4', 'u4', 'i8' or 'u8'"):
            window.atomic("add", 16, pe=0, typestr="f8")
        comm.barrier()


def test_views_and_addresses_are_of_this_process(memory, comm):
    with comm.window(memory) as window:
        view = window.view()
        assert len(view) == 1040 and np.frombuffer(view, "i4", 2).tolist() == [window.pe, window.pes]
        bases = np.frombuffer(view, "u8", offset=528)
        assert [window.peer_ptr(5, pe) for pe in range(window.pes)] == [base + 5 for base in bases[:window.pes].tolist()]
        with pytest.raises(isthmus.Error, match="which has registered"):
            window.peer_ptr(SIZE + 1000, 0)
        comm.barrier()


def test_some_ranks_may_have_nothing(world, comm):
    own = world.allocate("host", 70000) if comm.rank == 0 else None
    with comm.window(own) as window:
        assert window.nbytes == (70000,) + (0,) * (window.pes - 1)
        window.put(comm.rank * 10, np.full(10, comm.rank + 1, np.uint8), 0)
        window.quiet()
        comm.barrier()
        wanted = np.repeat(np.arange(1, comm.size + 1, dtype=np.uint8), 10)
        assert np.array_equal(bytes_of(window, 0)[:len(wanted)], wanted)
        comm.barrier()


def test_a_shared_mapping_is_registered_and_ordinary_arrays_are_not(comm, ring):
    after, before = ring
    with pytest.raises(isthmus.Error, match="private"):
        comm.window(np.zeros(1 << 20, np.uint8))
    file = os.memfd_create("numpy")
    os.ftruncate(file, 8192)
    array = np.frombuffer(mmap.mmap(file, 8192), np.uint8)
    with comm.window(array) as window:
        window.put(100, np.full(50, comm.rank + 1, np.uint8), after)
        window.quiet()
        comm.barrier()
        wanted = np.zeros(8192, np.uint8)
        wanted[100:150] = before + 1
        assert np.array_equal(array, wanted)
        comm.barrier()
    os.close(file)
