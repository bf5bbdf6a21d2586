"""Symmetric heaps: what one rank puts into another's memory, with no call there; of the host and, where there are
such, of CUDA and OpenCL."""
import numpy as np
import pytest

import isthmus

KINDS = ["host", "cuda", "opencl"]


@pytest.fixture(params=KINDS)
def heap(request, world, comm):
    if request.param != "host" and world.devices(request.param) == 0:
        pytest.skip(f"not covered here: heaps of {request.param} memory; there is no device")
    with comm.heap(request.param, 8 << 20) as heap:
        yield heap


def bytes_of(heap, array):
    """This rank's copy, by whatever can read it."""
    found = np.full(array.nbytes, 0xEE, np.uint8)
    heap.get(found, array, heap.pe)
    return found


@pytest.mark.parametrize("size", [0, 1, 7, 4097, (1 << 20) + 3])
def test_a_put_arrives_and_nothing_beside_it(heap, ring, make_noise, size):
    after, before = ring
    sent, expected = make_noise(size, heap.pe, before)
    room = heap.array(size + 128)
    heap.put(room, np.full(size + 128, 0xA5, np.uint8), heap.pe)
    part = _view(heap, room, 64, size)
    heap.barrier()
    heap.put(part, sent, after)
    heap.barrier()
    found = bytes_of(heap, room)
    assert np.array_equal(found[64:64 + size], expected)
    assert np.all(found[:64] == 0xA5) and np.all(found[64 + size:] == 0xA5)
    got = np.full(size, 0xEE, np.uint8)
    heap.get_nbi(got, part, after)
    heap.quiet()
    assert np.array_equal(got, sent)
    heap.barrier()
    room.free()


def _view(heap, array, offset, count, typestr="u1"):
    """A part of an array, named by its address: what a CuPy view would tell."""
    return isthmus.Buffer(heap.kind, array.address + offset, count, typestr)


def test_what_numpy_sees_is_the_memory(comm):
    with comm.heap("host", 1 << 20) as heap:
        array = heap.array((3, 5), "f8")
        assert array.shape == (3, 5) and array.size == 15 and array.nbytes == 120 and array.typestr == "<f8"
        mine = np.asarray(array)
        assert mine.dtype == np.float64 and np.all(mine == 0)
        mine[:] = heap.pe * 100 + np.arange(15).reshape(3, 5)
        heap.barrier()
        for pe in range(heap.pes):
            theirs = np.asarray(array.at(pe))
            assert np.array_equal(theirs, pe * 100 + np.arange(15).reshape(3, 5))
        heap.barrier()
        # A view names a part of it.
        heap.put(mine[1], np.full(5, 7.0), (heap.pe + 1) % heap.pes)
        heap.barrier()
        assert np.all(mine[1] == 7.0) and mine[0, 0] == heap.pe * 100 and mine[2, 4] == heap.pe * 100 + 14
        with pytest.raises(AttributeError):
            array.__cuda_array_interface__
        heap.barrier()


def test_a_signal_tells_of_the_bytes_before_it(heap, ring, make_noise):
    after, before = ring
    room = heap.array(3000)
    words = heap.array(2, "u8")
    word = _view(heap, words, 8, 1, "u8")
    heap.barrier()
    for turn in range(1, 21):
        sent, expected = make_noise(3000, heap.pe, before)
        heap.put_signal(room, sent, word, 1 if turn % 2 else turn, after, add=bool(turn % 2))
        heap.wait_until(word, ">=", turn)
        assert heap.test(word, "==", turn) and not heap.test(word, "<", turn)
        assert np.array_equal(bytes_of(heap, room), expected), turn
        heap.barrier()


@pytest.mark.parametrize("typestr", ["u4", "i4", "u8", "i8"])
def test_atomics_do_what_they_say_and_lose_nothing(heap, typestr):
    words = heap.array(3, typestr)
    size = int(typestr[1])
    word = _view(heap, words, size, 1, typestr)
    heap.barrier()
    if heap.pe == 0:
        last = heap.pes - 1
        assert heap.atomic("set", word, 12, pe=last) == 0
        for operation, operand, was in [("fetch", 0, 12), ("add", 5, 12), ("inc", 0, 17), ("swap", 0xFF, 18),
                                        ("and", 0x3C, 0xFF), ("or", 0x81, 0x3C), ("xor", 0xFF, 0xBD), ("fetch", 0, 0x42)]:
            assert heap.atomic(operation, word, operand, pe=last) == was, operation
        assert heap.compare_swap(word, 3, 9, last) == 0x42
        assert heap.compare_swap(word, 0x42, -1 if typestr[0] == "i" else 1, last) == 0x42
        assert heap.atomic("swap", word, 0, pe=last) == (-1 if typestr[0] == "i" else 1)
    heap.barrier()
    for _ in range(50):
        for pe in range(heap.pes):
            heap.atomic("add", word, 3, pe=pe)
    heap.barrier()
    found = bytes_of(heap, words).view(np.dtype(typestr))
    assert list(found) == [0, 150 * heap.pes, 0]
    heap.barrier()


def test_a_heap_grows_and_says_what_it_lacks(comm):
    with comm.heap("host", 64 << 10, most=1 << 20) as heap:
        free, largest = heap.room
        with pytest.raises(isthmus.Error, match="largest block has 65536"):
            heap.array(128 << 10)
        heap.grow(512 << 10)
        array = heap.array(128 << 10)
        assert heap.room[0] < free + (448 << 10)
        array.free()
        with pytest.raises(ValueError, match="freed"):
            array.free()
        assert len(heap.view()) == 56
        assert "PE %d of %d" % (heap.pe, heap.pes) in repr(heap) and heap.kind == "host" and not heap.closed
    assert heap.closed and "closed" in repr(heap)
    with pytest.raises(ValueError, match="closed"):
        heap.array(1)


def test_arrays_that_were_freed_and_heaps_that_were_closed_say_so(comm, heap):
    array, word, near = heap.array(8), heap.array(1, "u8"), np.zeros(8, np.uint8)
    calls = [lambda it: heap.put(it, near, 0), lambda it: heap.get(near, it, 0), lambda it: heap.put_nbi(it, near, 0),
             lambda it: heap.put_signal(word, near, it, 1, 0), lambda it: heap.atomic("fetch", it, 0, 0), lambda it: heap.test(it, "==", 0),
             lambda it: comm.send(it, comm.rank), lambda it: comm.bcast(it), lambda it: it.at(heap.pe), lambda it: it.free()]
    array.free()
    for call in calls:
        with pytest.raises(ValueError, match="^this array of a symmetric heap was freed$"):
            call(array)
    if heap.kind == "host":
        with pytest.raises(ValueError, match="^this array of a symmetric heap was freed$"):
            np.asarray(array)
    heap.close()
    for call in calls:
        with pytest.raises(ValueError, match="^this heap was closed$"):
            call(word)


def test_a_host_heap_has_a_view_for_kernels_where_there_is_a_device(world, comm):
    with comm.heap("host", 64 << 10) as heap:
        if world.devices("cuda") == 0:
            with pytest.raises(isthmus.Error, match="kernels need a CUDA device"):
                heap.device_view()
            return
        view = heap.device_view()
        numbers = np.frombuffer(view, np.uint64)
        assert len(view) == 80 and numbers[8] != 0 and numbers[9] != 0, "ring and desk"
        assert heap.device_view() == view
        assert np.frombuffer(view[:8], np.int32).tolist() == [heap.pe, heap.pes]
        with pytest.raises(isthmus.Error, match="device is 4096"):
            heap.device_view(4096)


def test_mistakes_are_named(comm):
    with comm.heap("host", 1 << 20) as heap:
        words = heap.array(4, "u8")
        mine = np.asarray(words)
        elsewhere = np.zeros(4, np.uint64)
        with pytest.raises(ValueError, match="32 bytes and the destination 16"):
            heap.put(mine[:2], elsewhere, 0)
        with pytest.raises(isthmus.Error, match="heap"):
            heap.put(elsewhere, mine, 0)
        with pytest.raises(isthmus.Error, match=str(heap.pes)):
            heap.put(words, elsewhere, heap.pes)
        with pytest.raises(ValueError, match="one integer of 4 or 8 bytes"):
            heap.wait_until(words, "==", 1)
        with pytest.raises(ValueError, match="'=>'; it must be ==, !=, >, >=, < or <="):
            heap.test(mine[:1], "=>", 1)
        with pytest.raises(ValueError, match="operation is 'sub'; it must be fetch"):
            heap.atomic("sub", mine[:1], 1, pe=0)
        with pytest.raises(ValueError, match="one integer of 4 or 8 bytes .*, and this has elements of type f8; give integers"):
            heap.atomic("add", np.zeros(1), 1, pe=0)
        with pytest.raises(ValueError, match="one integer of 4 or 8 bytes .*, and this has 2 of them; give a view of one"):
            heap.atomic("add", mine[:2], 1, pe=0)
        with pytest.raises(ValueError, match="extent is -1"):
            heap.array((2, -1))
        heap.barrier()


def test_arrays_of_cuda_heaps_are_arrays_of_cuda(world, comm):
    if world.devices("cuda") == 0:
        pytest.skip("not covered here: heaps of CUDA memory; there is no device")
    with comm.heap("cuda", 1 << 20) as heap:
        array = heap.array((4, 4), "f4")
        told = array.__cuda_array_interface__
        assert told["shape"] == (4, 4) and told["typestr"] == "<f4" and told["data"] == (array.address, False)
        with pytest.raises(AttributeError):
            array.__array_interface__
        heap.put(array, np.arange(16, dtype=np.float32), heap.pe)
        assert np.array_equal(bytes_of(heap, array).view(np.float32), np.arange(16, dtype=np.float32))
        heap.barrier()


def test_words_take_every_number_of_theirs_and_no_other(comm):
    with comm.heap("host", 1 << 20) as heap:
        wide, small = np.asarray(heap.array(1, "u8")), np.asarray(heap.array(1, "u4"))
        heap.barrier()
        assert heap.atomic("or", wide, 1 << 63, pe=heap.pe) == 0 and heap.atomic("set", wide, 2**64 - 1, pe=heap.pe) == 1 << 63
        assert heap.test(wide, "==", 2**64 - 1) and heap.compare_swap(wide, 2**64 - 1, 5, heap.pe) == 2**64 - 1
        heap.wait_until(wide, "==", 5)
        assert heap.atomic("set", wide, np.uint64(2**63 + 1), pe=heap.pe) == 5 and heap.test(wide, "==", np.uint64(2**63 + 1))
        assert heap.atomic("swap", small, 2**32 - 1, pe=heap.pe) == 0 and heap.test(small, "==", 2**32 - 1)
        for word, number in ((wide, 2**64), (wide, -(2**63) - 1), (small, 2**32), (small, -(2**31) - 1),
                             (small, 2**64 - 1), (small, 2**64 - 2**31)):
            with pytest.raises(ValueError, match=f"the number is {number}, which no word of"):
                heap.atomic("add", word, number, pe=heap.pe)
        with pytest.raises(TypeError):
            heap.atomic("add", wide, 1.5, pe=heap.pe)
        # An atomic operation is about bits; a comparison is not.
        for typestr, least, most in (("i4", -(2**31), 2**31 - 1), ("u4", 0, 2**32 - 1), ("i8", -(2**63), 2**63 - 1),
                                     ("u8", 0, 2**64 - 1)):
            word = np.asarray(heap.array(1, typestr))
            for number in (least, most):
                assert heap.atomic("set", word, number, pe=heap.pe) == 0 and heap.test(word, "==", number), (typestr, number)
                assert heap.atomic("swap", word, 0, pe=heap.pe) == number
            for number in (least - 1, most + 1):
                for compare in (heap.test, heap.wait_until):
                    with pytest.raises(ValueError, match=f"the number is {number}, which no"):
                        compare(word, "==", number)
        for other in (np.zeros(1, "c8"), np.zeros(1, "f8"), np.zeros(1, [("a", "i4"), ("b", "i4")])):
            with pytest.raises(ValueError, match="one integer"):
                heap.atomic("add", other, 1, pe=heap.pe)
        heap.barrier()


def test_an_array_of_an_opencl_heap_is_named_and_a_buffer_on_this_side(world, comm, ring, make_noise):
    if world.devices("opencl") == 0:
        pytest.skip("not covered here: heaps of OpenCL memory; there is no device")
    after, before = ring
    with comm.heap("opencl", 1 << 20) as heap, comm.heap("host", 1 << 20) as beside:
        array = heap.array((5, 7), "f4")
        memory, offset, queue = array.opencl
        assert memory != 0 and queue != 0 and offset % 64 == 0
        for name in ("__array_interface__", "__cuda_array_interface__"):
            with pytest.raises(AttributeError):
                getattr(array, name)
        with pytest.raises(AttributeError):
            beside.array(4).opencl
        sent, expected = make_noise(140, heap.pe, before)
        heap.put(array, sent, after)
        heap.barrier()
        # The array itself is what travels, and what a buffer by hand names, too.
        found = np.full(140, 0xEE, np.uint8)
        comm.sendrecv(array, after, found, before)
        got = np.full(140, 0xEE, np.uint8)
        heap.get(got, array, before)
        assert np.array_equal(found, got)
        named = isthmus.Buffer("opencl", memory, 140, "u1", offset=offset, queue=queue)
        room = beside.array(140)
        beside.put(room, named, beside.pe)
        assert np.array_equal(np.asarray(room), expected)
        # What it grows by is another buffer.
        heap.grow(4 << 20)
        more = heap.array(2 << 20)
        assert more.opencl[0] not in (0, memory)
        heap.put(more, np.full(2 << 20, heap.pe, np.uint8), after)
        heap.barrier()
        got = np.full(2 << 20, 0xEE, np.uint8)
        heap.get(got, more, heap.pe)
        assert np.array_equal(got, np.full(2 << 20, before, np.uint8))
        heap.barrier()


def test_what_is_put_later_is_kept_until_it_is(heap, ring):
    after, before = ring
    room = heap.array(1 << 20)
    heap.barrier()
    for turn in range(4):
        # Nobody else holds these.
        heap.put_nbi(_view(heap, room, turn << 18, 1 << 18), np.full(1 << 18, heap.pe * 10 + turn, np.uint8), after)
        np.full(1 << 18, 0xEE, np.uint8)
    heap.barrier()
    wanted = np.repeat(np.arange(4, dtype=np.uint8) + before * 10, 1 << 18)
    assert np.array_equal(bytes_of(heap, room), wanted)
    heap.barrier()
