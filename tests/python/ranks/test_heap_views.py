"""Views with gaps on either side of copies into and out of symmetric heaps, and signals that nobody waits for."""
import numpy as np
import pytest

import isthmus

KINDS = ["host", "cuda"]
# Shape, and which part of it: columns, every second row backwards, a block, all of it turned.
VIEWS = [((6, 9), np.s_[:, 2:4]), ((8, 5), np.s_[::-2, ::3]), ((5, 6, 7), np.s_[1:4, 2:3, 1:6]), ((40, 300), np.s_[1:, 1::2]),
         ((7, 3), np.s_[:, ::-1])]


@pytest.fixture(params=KINDS)
def heap(request, world, comm):
    if request.param == "cuda" and world.devices("cuda") == 0:
        pytest.skip("not covered here: heaps of CUDA memory; there is no device")
    with comm.heap(request.param, 8 << 20) as heap:
        yield heap


class OfDevice:
    """A view of an array of a CUDA heap, as CuPy would show it."""

    def __init__(self, array, address, like):
        self.array = array
        self.__cuda_array_interface__ = {"version": 3, "shape": like.shape, "strides": like.strides, "typestr": like.dtype.str,
                                         "data": (address, False), "stream": None}


def view_of(heap, array, part):
    """That part of a symmetric array, in whatever memory it is."""
    if heap.kind == "host":
        return np.asarray(array)[part]
    like = np.zeros(array.shape, array.typestr)
    inner = like[part]
    offset = inner.__array_interface__["data"][0] - like.__array_interface__["data"][0]
    return OfDevice(array, array.address + offset, inner)


def contents(heap, array):
    found = np.zeros(array.shape, array.typestr)
    heap.get(found, array, heap.pe)
    return found


def numbers(shape, typestr, pe, turn=0):
    return (np.arange(np.prod(shape)) + 1000 * pe + 100 * turn).reshape(shape).astype(typestr)


def turned(array):
    """The same elements, with gaps between them."""
    held = np.zeros(array.shape + (2,), array.dtype)
    held[..., 1] = array
    return held[..., 1]


@pytest.mark.parametrize("typestr", ["f8", "u1", "i2", "c16"])
@pytest.mark.parametrize("shape, part", VIEWS)
def test_a_put_into_a_view_changes_its_elements_alone(heap, ring, shape, part, typestr):
    after, before = ring
    array = heap.array(shape, typestr)
    sent = numbers(np.zeros(shape)[part].shape, typestr, heap.pe)
    expected = np.zeros(shape, typestr)
    expected[part] = numbers(sent.shape, typestr, before)
    for source in (sent, turned(sent)):
        for put in (heap.put, heap.put_nbi):
            heap.put(array, np.zeros(shape, typestr), heap.pe)
            heap.barrier()
            put(view_of(heap, array, part), source, after)
            heap.barrier()
            assert np.array_equal(contents(heap, array), expected)
            heap.barrier()
    array.free()


@pytest.mark.parametrize("shape, part", VIEWS)
def test_a_get_out_of_a_view_brings_its_elements(heap, ring, shape, part):
    after, _ = ring
    array = heap.array(shape, "f4")
    heap.put(array, numbers(shape, "f4", heap.pe), heap.pe)
    heap.barrier()
    expected = numbers(shape, "f4", after)[part]
    for get in (heap.get, heap.get_nbi):
        rows, gaps = np.full(expected.shape, -1, "f4"), turned(np.full(expected.shape, -1, "f4"))
        get(rows, view_of(heap, array, part), after)
        get(gaps, view_of(heap, array, part), after)
        heap.quiet()
        assert np.array_equal(rows, expected) and np.array_equal(gaps, expected)
        assert not gaps.base[..., 0].any()
    heap.barrier()


def test_a_view_goes_into_what_lies_in_a_row(heap, ring):
    after, before = ring
    array = heap.array(12, "i4")
    held = numbers((12, 3), "i4", heap.pe)
    heap.barrier()
    heap.put(array, held[:, 1], after)
    heap.barrier()
    assert np.array_equal(contents(heap, array), numbers((12, 3), "i4", before)[:, 1])
    got = np.zeros((12, 2), "i4")
    heap.get(got[:, 0], array, heap.pe)
    assert np.array_equal(got[:, 0], contents(heap, array)) and not got[:, 1].any()
    heap.barrier()


def test_a_signal_tells_of_the_elements_before_it(heap, ring):
    after, before = ring
    array, words = heap.array((64, 48), "f8"), heap.array(2, "u8")
    word = isthmus.Buffer(heap.kind, words.address + 8, 1, "u8")
    heap.barrier()
    for put_signal in (heap.put_signal, heap.put_signal_nbi):
        for turn in range(1, 11):
            sent = numbers((64, 7), "f8", heap.pe, turn)
            put_signal(view_of(heap, array, np.s_[:, 3:10]), sent, word, 1 if turn % 2 else turn, after, add=bool(turn % 2))
            heap.wait_until(word, ">=", turn)
            expected = np.zeros((64, 48))
            expected[:, 3:10] = numbers((64, 7), "f8", before, turn)
            assert np.array_equal(contents(heap, array), expected), turn
            heap.barrier()
        heap.atomic("set", word, 0, pe=heap.pe)
        heap.barrier()


@pytest.mark.parametrize("size", [0, 1, 4097, (1 << 20) + 3])
def test_a_signal_that_nobody_waits_for_comes_by_quiet(heap, ring, make_noise, size):
    after, before = ring
    room, words = heap.array(size), heap.array(3, "u8")
    word = isthmus.Buffer(heap.kind, words.address + 8, 1, "u8")
    heap.barrier()
    for turn in range(1, 5):
        sent, expected = make_noise(size, heap.pe, before)
        # Nobody else holds the source.
        heap.put_signal_nbi(room, sent.copy(), word, 3, after, add=True)
        np.full(size, 0xEE, np.uint8)
        heap.quiet()
        heap.wait_until(word, "==", 3 * turn)
        found = np.zeros(size, np.uint8)
        heap.get(found, room, heap.pe)
        assert np.array_equal(found, expected), turn
        heap.barrier()
    assert list(contents(heap, words)) == [0, 12, 0]
    heap.barrier()


def test_mistakes_with_views_are_named(comm):
    with comm.heap("host", 1 << 20) as heap:
        array, words = heap.array((4, 6), "f8"), heap.array(2, "u8")
        mine, word = np.asarray(array), np.asarray(words)[:1]
        with pytest.raises(ValueError, match="source has 64 bytes and the destination 96"):
            heap.put(mine[:, ::2], np.zeros((4, 2)), heap.pe)
        with pytest.raises(isthmus.Error, match="dest: "):
            heap.put(np.zeros((4, 6))[:, ::2], np.zeros((4, 3)), heap.pe)
        with pytest.raises(isthmus.Error, match=str(heap.pes)):
            heap.get(np.zeros((4, 3)), mine[:, ::2], heap.pes)
        with pytest.raises(BufferError, match="read-only"):
            heap.get(np.broadcast_to(np.zeros(3), (4, 3)), mine[:, ::2], heap.pe)
        # Nothing is put where the word is none of the heap.
        with pytest.raises(isthmus.Error, match="heap"):
            heap.put_signal(mine[:, ::2], np.ones((4, 3)), np.zeros(1, "u8"), 1, heap.pe)
        with pytest.raises(ValueError, match="word of 8 bytes"):
            heap.put_signal_nbi(mine[:, ::2], np.ones((4, 3)), np.asarray(heap.array(1, "u4")), 1, heap.pe)
        assert not mine.any() and not word.any()
        twice = np.lib.stride_tricks.as_strided(mine, (3, 4), (0, 8))
        with pytest.raises(isthmus.Error, match="twice"):
            heap.put(twice, np.ones((3, 4)), heap.pe)
        heap.barrier()
