"""Requests: completion, errors, and who keeps the buffers alive."""
import gc
import threading
import time
import weakref

import numpy as np
import pytest

import isthmus


class Tracked(bytearray):
    """A buffer whose end can be seen."""


def test_wait_test_and_status(comm, ring):
    into = bytearray(8)
    request = comm.irecv(into, ring[1], 4)
    assert request.status is None and "under way" in repr(request)
    comm.barrier()
    assert not request.test()
    comm.barrier()
    comm.send(b"12345678", ring[0], 4)
    first = request.wait()
    assert (first.source, first.tag, first.bytes) == (ring[1], 4, 8)
    assert request.test() and request.wait().bytes == 8 and request.status.source == ring[1]
    assert "complete" in repr(request) and "source=" in repr(first)


def test_waitall_gives_each_result_in_order(comm, ring):
    parts = [np.full(5, -1, dtype="i4") for _ in range(20)]
    receives = [comm.irecv(part, ring[1], tag) for tag, part in enumerate(parts)]
    objects = comm.irecv_object(ring[1], 99)
    sends = [comm.isend(np.full(5, tag, dtype="i4"), ring[0], tag) for tag in reversed(range(20))]
    sends.append(comm.isend_object({"from": comm.rank}, ring[0], 99))
    results = isthmus.waitall([*receives, objects, *sends])
    assert [status.tag for status in results[:20]] == list(range(20))
    assert results[20] == {"from": ring[1]}
    assert all(np.array_equal(part, np.full(5, tag)) for tag, part in enumerate(parts))
    assert isthmus.waitall([]) == []
    with pytest.raises(TypeError):
        isthmus.waitall([None])


def test_a_longer_message_is_an_error_that_says_so(comm, ring):
    into = bytearray(b"?" * 6)
    request = comm.irecv(into, ring[1], 1, count=4)
    behind = bytearray(4)
    after = comm.irecv(behind, ring[1], 1)
    comm.send(b"abcdefgh", ring[0], 1)
    comm.send(b"next", ring[0], 1)
    with pytest.raises(isthmus.TruncateError, match="8.*4") as caught:
        request.wait()
    error = caught.value
    assert isinstance(error, isthmus.Error)
    assert (error.code, error.code_name, error.status.source) == (isthmus.Code.TRUNCATE, "IST_ERR_TRUNCATE", ring[1])
    assert into == b"abcd??"
    with pytest.raises(isthmus.TruncateError):
        request.test()
    after.wait()
    assert behind == b"next"


def test_waitall_waits_for_all_although_some_fail(comm, ring):
    short, right = bytearray(2), bytearray(4)
    receives = [comm.irecv(right, ring[1], 2), comm.irecv(short, ring[1], 1)]
    comm.send(b"long", ring[0], 1)
    comm.send(b"good", ring[0], 2)
    with pytest.raises(isthmus.WaitallError, match="1 of 2 requests failed; the first is number 1") as caught:
        isthmus.waitall(receives)
    assert caught.value.code == isthmus.Code.IN_STATUS
    assert caught.value.errors[0] is None and isinstance(caught.value.errors[1], isthmus.TruncateError)
    assert caught.value.__cause__ is caught.value.errors[1]
    assert [status.code for status in caught.value.statuses] == [0, isthmus.Code.TRUNCATE]
    assert right == b"good"


def test_wrong_arguments_are_errors_of_the_library(comm):
    for call, code in ((lambda: comm.isend(b"", comm.size), "RANK"), (lambda: comm.irecv(bytearray(1), -7), "RANK"),
                       (lambda: comm.isend(b"", 0, -5), "ARGUMENT"), (lambda: comm.send_object(1, comm.size), "RANK")):
        with pytest.raises(isthmus.Error) as caught:
            call()
        assert caught.value.code == isthmus.Code[code] and caught.value.code_name == f"IST_ERR_{code}"
        assert str(caught.value)


def test_a_dropped_receive_keeps_its_buffer_until_the_bytes_are_there(comm, ring):
    for size in (100, 1 << 20):
        into = Tracked(size)
        seen = weakref.ref(into)
        comm.irecv(into, ring[1], 8)  # the request is dropped at once
        del into
        gc.collect()
        assert seen() is not None
        comm.barrier()
        sent = comm.isend(bytes(size), ring[0], 8)
        sent.wait()
        comm.barrier()
        deadline = time.monotonic() + 10
        while seen() is not None and time.monotonic() < deadline:
            comm.barrier() if comm.size == 1 else comm.sendrecv(b"", comm.rank, bytearray(), comm.rank, send_tag=77, recv_tag=77)
        assert seen() is None


def test_a_dropped_send_keeps_its_buffer_until_it_was_read(comm, ring):
    size = (2 << 20) + 5
    out = Tracked(np.full(size, comm.rank + 1, dtype="u1"))
    seen = weakref.ref(out)
    comm.isend(out, ring[0], 9)
    del out
    gc.collect()
    assert seen() is not None
    # What takes the memory if it was given away: wrong bytes.
    others = [bytearray(b"\xee" * size) for _ in range(4)]
    into = bytearray(size)
    comm.recv(into, ring[1], 9)
    assert into == bytes([ring[1] + 1]) * size
    del others
    comm.barrier()
    comm.sendrecv(b"", comm.rank, bytearray(), comm.rank)
    assert seen() is None


def test_a_request_keeps_a_bytearray_from_being_resized(comm, ring):
    into = bytearray(4)
    request = comm.irecv(into, ring[1], 2)
    with pytest.raises(BufferError):
        into.extend(b"more")
    comm.send(b"four", ring[0], 2)
    request.wait()
    assert into == b"four"


def test_other_threads_run_while_one_waits(comm, ring):
    counted = [0]
    stop = threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1

    into = bytearray(1)
    request = comm.irecv(into, ring[1], 6)
    counter = threading.Thread(target=count)
    later = threading.Timer(0.3, lambda: comm.send(b"!", ring[0], 6))
    counter.start()
    later.start()
    before = counted[0]
    request.wait()
    during = counted[0] - before
    stop.set()
    counter.join()
    later.join()
    assert into == b"!" and during > 1000


def test_threads_wait_for_one_request_and_for_many(comm, ring):
    into = np.zeros(4, dtype="i4")
    shared = comm.irecv(into, ring[1], 50)
    errors = []

    def work(number):
        try:
            for turn in range(50):
                mine = np.full(3000, number * 1000 + turn, dtype="i4")
                there = np.zeros(3000, dtype="i4")
                comm.sendrecv(mine, ring[0], there, ring[1], send_tag=number, recv_tag=number)
                assert np.array_equal(there, mine)
            shared.wait()
        except BaseException as error:  # told below, in the thread that pytest watches
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    comm.send(np.arange(4, dtype="i4"), ring[0], 50)
    for thread in threads:
        thread.join()
    assert not errors
    assert np.array_equal(into, np.arange(4))


def test_wildcards_tell_who_it_was(comm):
    if comm.rank == 0:
        senders = set()
        for _ in range(comm.size - 1):
            into = np.zeros(1, dtype="i4")
            status = comm.recv(into)
            assert into[0] == status.source and status.tag == 10 + status.source
            senders.add(status.source)
        assert senders == set(range(1, comm.size))
    else:
        comm.send(np.array([comm.rank], dtype="i4"), 0, 10 + comm.rank)


def test_waitany_gives_the_first_that_is_complete(comm, ring):
    never, into = comm.irecv(bytearray(1), ring[1], 60), bytearray(3)
    pending = [never, comm.irecv(into, ring[1], 61), comm.irecv_object(ring[1], 62)]
    comm.send(b"abc", ring[0], 61)
    index, status = isthmus.waitany(pending)
    assert (index, status.tag, into) == (1, 61, b"abc")
    comm.barrier()
    comm.send_object("object", ring[0], 62)
    assert isthmus.waitany([pending[0], pending[2]]) == (1, "object")
    comm.barrier()
    comm.send(b"!", ring[0], 60)
    assert isthmus.waitany([never])[0] == 0
    with pytest.raises(ValueError, match="no request"):
        isthmus.waitany([])
    with pytest.raises(TypeError, match="one of the requests is a int"):
        isthmus.waitany([7])


def test_a_send_that_nobody_asked_for_can_be_cancelled(comm, ring):
    data = np.ones(4 << 20, np.uint8)
    request = comm.isend(data, ring[0], tag=77)
    request.cancel()
    request.wait()
    assert request.status.cancelled and request.status.code == isthmus.Code.CANCELLED
    comm.barrier()
    assert comm.iprobe(tag=77) is None
    comm.barrier()
    sent = comm.isend(data[:100], ring[0], tag=77)
    into = np.zeros(100, np.uint8)
    comm.recv(into, ring[1], tag=77)
    sent.wait()
    assert np.all(into == 1)


def test_a_receive_that_nothing_matched_can_be_cancelled(comm, ring):
    into = bytearray(b"kept")
    for request in (comm.irecv(into, ring[1], 70), comm.irecv_object(ring[1], 70)):
        request.cancel()
        result = request.wait()
        assert request.status.cancelled and request.status.code == isthmus.Code.CANCELLED
        assert result is None or result.cancelled
    comm.barrier()
    after = comm.irecv(into, ring[1], 70)
    comm.send(b"next", ring[0], 70)
    assert not after.wait().cancelled and into == b"next"
    after.cancel()
    assert not after.status.cancelled


def test_memory_is_opened_ahead_with_any_ranks_in_any_order(comm, ring):
    # Of the host there is nothing to open, and both come to the call all the same.
    ahead = [comm.iprepare(bytearray(100), ring[0]), comm.iprepare(b"read only", ring[1], count=3), comm.iprepare(b"", comm.rank)]
    for request in ahead:
        request.wait()
    comm.prepare(bytearray(1), comm.rank)
    with pytest.raises(isthmus.Error, match="peer is") as caught:
        comm.prepare(bytearray(1), comm.size)
    assert caught.value.code == isthmus.Code.RANK


def test_a_synchronous_send_waits_for_its_receive(comm, ring):
    sent = comm.issend(b"sync", ring[0], 71)
    comm.barrier()
    assert not sent.test()
    comm.barrier()
    into = bytearray(4)
    comm.recv(into, ring[1], 71)
    sent.wait()
    assert into == b"sync"
    if comm.size > 1 and comm.rank < 2:
        other = 1 - comm.rank
        if comm.rank == 0:
            comm.ssend(b"?", other, 72)
        else:
            comm.recv(into, other, 72)


def test_probes_leave_the_message_there(comm, ring):
    assert comm.iprobe(ring[1], 80) is None
    comm.barrier()
    comm.send(b"12345", ring[0], 80)
    status = comm.probe(tag=80)
    assert (status.source, status.tag, status.bytes) == (ring[1], 80, 5)
    assert comm.iprobe(ring[1], 80).bytes == 5
    into = bytearray(status.bytes)
    comm.recv(into, status.source, status.tag)
    assert into == b"12345" and comm.iprobe(ring[1], 80) is None
    comm.barrier()  # nobody leaves before
    with pytest.raises(isthmus.Error) as caught:
        comm.iprobe(comm.size)
    assert caught.value.code == isthmus.Code.RANK
