"""Persistent requests: made once, started often, with the bytes of each start."""
import gc
import time
import weakref

import numpy as np
import pytest

import isthmus
from devices import DeviceArray, Driver, Exporter, InterfaceArray


def test_what_was_not_started_and_what_nobody_sent_have_the_empty_status(comm, ring):
    """That of isthmus.h, which is not that of a message from nobody."""
    pair = [comm.send_init(bytearray(8), ring[0], 30), comm.recv_init(bytearray(8), ring[1], 30)]
    total = np.empty(2)
    reduced = comm.iallreduce(np.ones(2), total, isthmus.Operation(np.add))
    sent = comm.isend(b"", comm.rank, 30)
    comm.recv(bytearray(8), comm.rank, 30)
    for status in [*(request.wait() for request in pair), *isthmus.waitall(pair), reduced.wait(), sent.wait(), isthmus.Status()]:
        assert (status.source, status.tag, status.bytes, status.code) == (isthmus.ANY_SOURCE, isthmus.ANY_TAG, 0, 0)
    pair[1] = comm.recv_init(bytearray(8), isthmus.PROC_NULL)
    pair[1].start()
    assert pair[1].wait().source == isthmus.PROC_NULL


@pytest.mark.parametrize("size", [0, 1, 4097, (1 << 20) + 1])
def test_every_start_sends_what_the_buffer_then_holds(comm, ring, make_noise, size):
    out, into = np.empty(size, "u1"), np.empty(size, "u1")
    pair = [comm.send_init(out, ring[0], 30), comm.recv_init(into, ring[1], 30)]
    assert "complete" in repr(pair[0]) and pair[0].test()
    for turn in range(5):
        out[:], expected = make_noise(size, comm.rank, ring[1])
        into[:] = np.bitwise_not(expected)
        if turn % 2 == 0:
            isthmus.startall(pair)
            sent, received = isthmus.waitall(pair)
        else:
            for request in reversed(pair):
                request.start()
            sent, received = (request.wait() for request in pair)
        assert np.array_equal(into, expected)
        assert (received.source, received.tag, received.bytes, received.count) == (ring[1], 30, size, size)
        assert pair[1].status.bytes == size and pair[1].wait().tag == 30


def test_views_with_gaps_are_sent_and_received_as_they_are(comm, ring):
    sent, received = np.empty((6, 8), "i4"), np.empty((6, 12), "i4")
    out, into = sent[:, 1:7:2], received[:, 7:0:-3]
    pair = [comm.send_init(out, ring[0], 39), comm.recv_init(into, ring[1], 39)]
    sync = comm.ssend_init(out, ring[0], 40)
    for turn in range(4):
        sent[...] = np.arange(48).reshape(6, 8) + 1000 * turn + 100 * comm.rank
        received[...] = -1
        expected = (np.arange(48).reshape(6, 8) + 1000 * turn + 100 * ring[1])[:, 1:7:2]
        isthmus.startall(pair)
        status = isthmus.waitall(pair)[1]
        assert np.array_equal(into, expected) and (np.delete(received, [1, 4, 7], 1) == -1).all()
        assert (status.count, status.bytes) == (18, 72)
        row = np.zeros(18, "i4")
        sync.start()
        comm.recv(row, ring[1], 40)
        sync.wait()
        assert np.array_equal(row, expected.ravel())
    with pytest.raises(BufferError, match="ascontiguousarray"):
        comm.send_init(out, ring[0], 39, count=3)


def test_a_synchronous_one_waits_for_its_receive(comm, ring):
    request = comm.ssend_init(b"sync", ring[0], 31)
    for _ in range(3):
        request.start()
        comm.barrier()
        assert not request.test() and "under way" in repr(request)
        comm.barrier()
        into = bytearray(4)
        comm.recv(into, ring[1], 31)
        request.wait()
        assert into == b"sync"


def test_one_start_at_a_time_and_only_these_are_started(comm, ring):
    into = bytearray(3)
    request = comm.recv_init(into, ring[1], 32)
    request.start()
    with pytest.raises(isthmus.Error, match="still active; wait for it") as caught:
        request.start()
    assert caught.value.code == isthmus.Code.PENDING
    comm.send(b"abc", ring[0], 32)
    assert request.wait().bytes == 3 and into == b"abc"
    with pytest.raises(TypeError, match="a Request, which cannot be started; give what send_init"):
        isthmus.startall([request, comm.isend(b"", isthmus.PROC_NULL)])
    assert request.test()  # nothing was started
    with pytest.raises(BufferError, match="read-only"):
        comm.recv_init(b"abc", ring[1])
    with pytest.raises(isthmus.Error) as caught:
        comm.send_init(b"abc", comm.size)
    assert caught.value.code == isthmus.Code.RANK
    nobody = comm.recv_init(into, isthmus.PROC_NULL)
    nobody.start()
    assert nobody.wait().source == isthmus.PROC_NULL


def test_an_error_belongs_to_its_start(comm, ring):
    into = bytearray(b"????")
    request = comm.recv_init(into, ring[1], 33, count=2)
    request.start()
    comm.send(b"long", ring[0], 33)
    with pytest.raises(isthmus.TruncateError, match="4.*2"):
        request.wait()
    assert into == b"lo??"
    request.start()
    comm.send(b"ok", ring[0], 33)
    assert request.wait().bytes == 2 and into == b"ok??"


def test_a_start_can_be_cancelled_and_started_again(comm, ring):
    into = bytearray(b"kept")
    request = comm.recv_init(into, ring[1], 34)
    request.start()
    request.cancel()
    assert request.wait().cancelled and into == b"kept"
    comm.barrier()
    request.start()
    comm.send(b"next", ring[0], 34)
    assert not request.wait().cancelled and into == b"next"


def test_the_buffer_lives_as_long_as_request_or_start(comm, ring):
    class Tracked(bytearray):
        pass

    size = (2 << 20) + 5
    into = Tracked(size)
    seen = weakref.ref(into)
    request = comm.recv_init(into, ring[1], 35)
    del into
    gc.collect()
    assert seen() is not None
    request.start()
    del request  # while it is under way
    gc.collect()
    assert seen() is not None
    comm.barrier()
    comm.isend(bytes([7]) * size, ring[0], 35).wait()
    comm.barrier()
    deadline = time.monotonic() + 10
    while seen() is not None and time.monotonic() < deadline:
        comm.sendrecv(b"", comm.rank, bytearray(), comm.rank, send_tag=77, recv_tag=77)
    assert seen() is None
    again = Tracked(4)
    seen = weakref.ref(again)
    request = comm.send_init(again, ring[0])
    del again
    request.free()
    assert seen() is None and "freed" in repr(request)
    with pytest.raises(isthmus.Error, match="the request was freed") as caught:
        request.start()
    assert caught.value.code == isthmus.Code.HANDLE
    comm.barrier()


def test_dropped_ones_are_given_back(comm):
    """More than the library has numbers for at a time, were they not freed."""
    into = bytearray(1)
    for _ in range(70000):
        comm.recv_init(into, isthmus.PROC_NULL)


# ---- device memory ----

@pytest.fixture(scope="module")
def driver(world):
    if world.devices("cuda") == 0:
        pytest.skip("not covered here: this machine has no CUDA device")
    return Driver()


@pytest.mark.parametrize("size", [1, 4096, (1 << 20) + 1])
def test_every_start_waits_for_the_work_that_is_then_pending(driver, comm, ring, make_noise, size):
    sent, expected = make_noise(size, comm.rank, ring[1])
    out = InterfaceArray(driver, np.bitwise_not(sent))
    into = InterfaceArray(driver, np.bitwise_not(expected))
    pair = [comm.send_init(out, ring[0], 36), comm.recv_init(into, ring[1], 36)]
    for turn in range(3):
        if turn == 2:
            out.stream = driver.stream()  # as if another stream were current: it counts from now on
        sent, expected = make_noise(size, comm.rank, ring[1])
        into.fill(np.bitwise_not(expected))
        out.fill_late(sent)
        isthmus.startall(pair)
        isthmus.waitall(pair)
        assert np.array_equal(into.get(), expected)


def test_a_start_that_fails_leaves_the_request_usable(driver, comm, ring):
    """The array has moved to where there is no memory, or has become smaller: nothing is read there, nor where it was."""
    sent, into = np.arange(5000.0) + comm.rank, np.empty(5000)
    out, other = InterfaceArray(driver, sent), InterfaceArray(driver, sent + 100)
    request, place = comm.send_init(out, ring[0], 38), out.address

    def swap(expected):
        into[:] = -1
        request.start()
        comm.recv(into, ring[1], 38)
        request.wait()
        assert np.array_equal(into, expected)

    swap(np.arange(5000.0) + ring[1])
    for _ in range(2):
        out.address = 1 << 52
        for _ in range(2):
            with pytest.raises(isthmus.Error, match="^start: "):
                request.start()
        assert request.test() and request.status.tag == 38  # of the start before
        out.address, out.shape = place, (4999,)
        with pytest.raises(ValueError, match="start: .*InterfaceArray has 4999 elements by now, and the request was made for 5000"):
            request.start()
        out.shape = (5000,)
        swap(np.arange(5000.0) + ring[1])
        out.address = other.address
        swap(np.arange(5000.0) + ring[1] + 100)
        out.address, out.dtype = place, np.dtype("f4")  # the same place, and half of its bytes
        request.start()
        assert comm.recv(into, ring[1], 38).bytes == into.nbytes // 2
        request.wait()
        out.dtype = sent.dtype
    out.address = 1 << 52
    with pytest.raises(isthmus.Error):
        request.start()
    request.free()
    out.address = place
    comm.barrier()


def test_a_producer_is_asked_again_at_every_start(driver, comm, ring):
    out = DeviceArray(driver, np.zeros(5000))
    tensor = Exporter(out.address, out.shape, out.dtype, 2, owner=out, on_stream=lambda asked: driver.wait(out.stream))
    request, into = comm.send_init(tensor, ring[0], 37), np.empty(5000)
    for turn in range(3):
        into[:] = -1
        out.fill_late(np.full(5000, float(turn + comm.rank)))
        request.start()
        comm.recv(into, ring[1], 37)
        request.wait()
        assert np.array_equal(into, np.full(5000, float(turn + ring[1])))
    assert [options["stream"] for options in tensor.asked] == [1] * 4
    del request
    gc.collect()
    comm.barrier()
    comm.sendrecv(b"", comm.rank, bytearray(), comm.rank)
    assert tensor.alive == 0
