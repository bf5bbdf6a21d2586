"""Host memory by every protocol: what is sent arrives, in whatever the other side receives into."""
import array
import ctypes
import sys

import numpy as np
import pytest

import isthmus


def poisoned(expected):
    """The wrong bytes, every one of them."""
    return np.bitwise_not(expected)


def test_every_byte_arrives(comm, ring, make_noise, size):
    sent, expected = make_noise(size, comm.rank, ring[1])
    received = poisoned(expected)
    status = comm.sendrecv(sent, ring[0], received, ring[1], send_tag=3, recv_tag=3)
    assert np.array_equal(received, expected)
    assert (status.source, status.tag, status.bytes, status.count, status.code) == (ring[1], 3, size, size, 0)
    assert status.carrier in ("slot", "cell", "ring", "direct")


def as_ctypes(data):
    return (ctypes.c_uint8 * len(data)).from_buffer_copy(data.tobytes())


CONTAINERS = {"bytearray": bytearray, "memoryview": lambda data: memoryview(bytearray(data)), "ctypes": as_ctypes,
              "array": lambda data: array.array("B", data.tobytes()), "numpy": np.array}


@pytest.mark.parametrize("name", CONTAINERS)
def test_anything_with_the_buffer_protocol_travels(comm, ring, make_noise, name):
    sent, expected = make_noise(1001, comm.rank, ring[1])
    received = CONTAINERS[name](poisoned(expected))
    request = comm.irecv(received, ring[1], 5)
    comm.send(CONTAINERS[name](sent), ring[0], 5)
    assert request.wait().bytes == 1001
    assert bytes(received) == expected.tobytes()


def test_read_only_memory_can_be_sent_and_not_received_into(comm, ring):
    received = bytearray(5)
    request = comm.irecv(received, ring[1])
    comm.send(b"hello", ring[0])
    request.wait()
    assert received == b"hello"
    frozen = np.zeros(4)
    frozen.flags.writeable = False
    for target in (b"hello", memoryview(b"hello"), frozen):
        with pytest.raises(BufferError, match="read-only.*writable"):
            comm.irecv(target, ring[1])
        with pytest.raises(BufferError, match="read-only"):
            comm.sendrecv(b"x", ring[0], target)


TYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "f2", "c8", "c16", "?", ">i4", ">f8", "S5", "U3", "M8[s]",
         "V7", [("x", "f8"), ("y", "i4")]]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_type_and_count_are_found_out(comm, ring, make_noise, dtype):
    dtype = np.dtype(dtype)
    sent, expected = make_noise(37 * dtype.itemsize, comm.rank, ring[1])
    received = poisoned(expected).view(dtype)
    status = comm.sendrecv(sent.view(dtype), ring[0], received, ring[1])
    assert received.tobytes() == expected.tobytes()
    assert (status.count, status.bytes) == (37, 37 * dtype.itemsize)


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_several_dimensions_without_gaps(comm, ring, order):
    sent = np.asarray(np.arange(60, dtype="i4").reshape(3, 4, 5) + comm.rank, order=order)
    received = np.full((3, 4, 5), -1, dtype="i4", order=order)
    comm.sendrecv(sent, ring[0], received, ring[1])
    assert np.array_equal(received, np.arange(60, dtype="i4").reshape(3, 4, 5) + ring[1])


VIEWS = [lambda a: a[:, ::2], lambda a: a[:, 1:3], lambda a: a.transpose(0, 2, 1), lambda a: a[::-1], lambda a: a[1:, ::-3, 2::2]]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ["f8", "i2", "V3", "c16"])
def test_views_with_gaps_travel_as_they_are(comm, ring, make_noise, view, dtype):
    size = 4 * 6 * 8 * np.dtype(dtype).itemsize
    sent, expected = (each.view(dtype).reshape(4, 6, 8) for each in make_noise(size, comm.rank, ring[1]))
    before = make_noise(size, 77, 0)[0].view(dtype).reshape(4, 6, 8)
    # A view into a view, a view into a row, and a row into a view.
    received = before.copy()
    status = comm.sendrecv(view(sent), ring[0], view(received), ring[1])
    wanted = before.copy()
    view(wanted)[...] = view(expected)
    assert received.tobytes() == wanted.tobytes() and status.count == view(sent).size
    row = np.zeros(view(sent).size, dtype)
    comm.sendrecv(view(sent), ring[0], row, ring[1])
    assert row.tobytes() == view(expected).tobytes()
    received = before.copy()
    request = comm.irecv(view(received), ring[1])
    comm.send(np.ascontiguousarray(view(sent)), ring[0])
    request.wait()
    assert received.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("view", VIEWS)
def test_gaps_are_refused_with_a_way_out_by_other_calls(comm, ring, view):
    gaps = view(np.zeros((4, 6, 8)))
    for call in (comm.issend, lambda array, _: comm.allreduce(array, array.copy()), lambda array, rank: comm.isend(array, rank, count=3)):
        with pytest.raises(BufferError, match="contiguous copy.*ascontiguousarray"):
            call(gaps, ring[0])


def test_a_view_with_one_number_many_times_is_sent_and_not_received_into(comm, ring):
    into = np.zeros((3, 4))
    comm.sendrecv(np.broadcast_to(np.float64(comm.rank), (3, 4)), ring[0], into, ring[1])
    assert (into == ring[1]).all()
    with pytest.raises(isthmus.Error, match="twice"):
        comm.irecv(np.lib.stride_tricks.as_strided(into, (3, 4), (0, 8)), ring[1])


def test_a_part_is_sent_and_received_by_count(comm, ring):
    sent = np.arange(10, dtype="f8") + 100 * comm.rank
    received = np.full(10, -1.0)
    status = comm.sendrecv(sent, ring[0], received, ring[1], send_count=4, recv_count=6)
    assert status.count == 4
    assert np.array_equal(received, [*(np.arange(4) + 100 * ring[1]), *[-1.0] * 6])
    for count in (-1, 11):
        with pytest.raises(ValueError, match="count is .*10 elements"):
            comm.isend(sent, ring[0], count=count)


def test_what_has_no_memory_is_told_the_other_calls(comm, ring):
    for thing in (7, "text", [1, 2], {"a": 1}, None, object()):
        with pytest.raises(TypeError, match="send_object"):
            comm.isend(thing, ring[0])


def test_a_buffer_named_by_hand(comm, ring, make_noise):
    sent, expected = make_noise(800, comm.rank, ring[1])
    received = poisoned(expected)
    out = isthmus.Buffer("host", sent.ctypes.data, 100, "<f8", owner=sent)
    place = isthmus.Buffer("auto", received.ctypes.data, 50, "f8", offset=400)
    status = comm.sendrecv(out, ring[0], isthmus.Buffer("host", received.ctypes.data, 100, "f8"), ring[1])
    assert status.count == 100 and np.array_equal(received, expected)
    received[400:] = 0
    comm.sendrecv(isthmus.Buffer("host", sent.ctypes.data, 50, "f8", offset=400), ring[0], place, ring[1])
    assert np.array_equal(received, expected)
    with pytest.raises(BufferError, match="read-only"):
        comm.irecv(isthmus.Buffer("host", sent.ctypes.data, 1, read_only=True), ring[1])
    with pytest.raises(ValueError, match="kinds are host, cuda, opencl"):
        isthmus.Buffer("vulkan", 0, 0)
    with pytest.raises(ValueError, match="typestr"):
        isthmus.Buffer("host", 0, 0, "f")


def test_memory_of_every_kind(world, comm, ring, make_noise, size):
    for kind in ("host", "cuda", "opencl"):
        if world.devices(kind) == 0:
            continue
        sent, expected = make_noise(size, comm.rank, ring[1])
        out, into = world.allocate(kind, max(size, 1)), world.allocate(kind, max(size, 1))
        received = poisoned(expected)
        world.copy(out, sent)
        if size:
            world.copy(into, received)
        status = comm.sendrecv(out, ring[0], into, ring[1], send_count=size, recv_count=size)
        assert status.bytes == size
        if size:
            world.copy(received, isthmus.Buffer(kind, into.address, size, queue=into.queue))
        assert np.array_equal(received, expected), kind
        with pytest.raises(ValueError, match="do not fit"):
            world.copy(out, bytes(size + 2))


def test_nobody_is_a_partner(comm):
    target = bytearray(b"untouched")
    comm.send(b"lost", isthmus.PROC_NULL)
    status = comm.recv(target, isthmus.PROC_NULL)
    assert (status.source, status.tag, status.bytes) == (isthmus.PROC_NULL, isthmus.ANY_TAG, 0)
    assert target == b"untouched"


def test_ten_thousand_messages_keep_their_order(comm, ring):
    sent = [comm.isend(np.array([number], dtype="i8"), ring[0], number % 3) for number in range(10000)]
    into = np.full(1, -1, dtype="i8")
    for tag in range(3):
        for number in range(tag, 10000, 3):
            comm.recv(into, ring[1], tag)
            assert into[0] == number
    isthmus.waitall(sent)


def test_registered_memory_is_refused_twice_and_kept_alive_until_it_is_released(world):
    numbers = np.zeros(5000)
    with world.register(numbers) as registration:
        assert repr(registration) == "<isthmus.Registration, 40000 bytes>"
        with pytest.raises(isthmus.Error, match="overlap 40000 bytes"):
            world.register(numbers[10:20])
        references = sys.getrefcount(numbers)
    assert repr(registration) == "<isthmus.Registration, released>"
    assert sys.getrefcount(numbers) == references - 1
    registration.release()
    dropped = world.register(numbers)
    del dropped
    world.register(numbers).release()


def test_what_cannot_be_registered_says_why(world):
    with pytest.raises(isthmus.Error, match="at least one byte"):
        world.register(np.zeros(0))
    with pytest.raises(TypeError):
        world.register(object())


class Pointers(ctypes.Structure):
    _fields_ = [("number", ctypes.c_int), ("text", ctypes.c_char_p)]


@pytest.mark.parametrize("holder", [np.array([{"a": 1}], object), np.zeros(2, [("x", "i4"), ("y", object)]),
                                    (ctypes.c_char_p * 2)(), (ctypes.c_wchar_p * 2)(), (ctypes.c_void_p * 2)(),
                                    (ctypes.POINTER(ctypes.c_int) * 2)(), (Pointers * 2)()],
                         ids=["objects", "record", "char_p", "wchar_p", "void_p", "POINTER", "structure"])
def test_references_to_memory_of_this_process_do_not_travel(comm, holder):
    with pytest.raises(TypeError, match=r"references to memory of this process.*send_object\(\)"):
        comm.send(holder, isthmus.PROC_NULL)
    with pytest.raises(TypeError, match="references"):
        comm.recv(holder, isthmus.PROC_NULL)


def test_strings_of_any_length_do_not_travel_as_bytes(comm):
    if not hasattr(np.dtypes, "StringDType"):
        pytest.skip("not covered here: NumPy's strings of any length; this NumPy has none")
    with pytest.raises((TypeError, ValueError, BufferError)):
        comm.send(np.array(["a", "b" * 100], np.dtypes.StringDType()), isthmus.PROC_NULL)


@pytest.mark.parametrize("array", [np.zeros(3, "c8"), np.zeros(3, "c16"), np.zeros(3, [("P", "i4"), ("O", "f4")]),
                                   np.array(["Oz", "P"]), np.zeros(2, "M8[s]")], ids=["c8", "c16", "names", "text", "dates"])
def test_what_only_looks_like_references_travels(comm, array):
    comm.send(array, isthmus.PROC_NULL)
