"""Probes that set a message aside."""
import threading

import numpy as np
import pytest

import isthmus


@pytest.mark.parametrize("blocking", [True, False])
def test_a_message_set_aside_is_received_by_its_holder_alone(comm, ring, make_noise, size, blocking):
    sent, expected = make_noise(size, comm.rank, ring[1])
    request = comm.isend(sent, ring[0], 40)
    message = comm.mprobe(ring[1], 40)
    assert (message.status.source, message.status.tag, message.status.bytes) == (ring[1], 40, size)
    assert comm.improbe(ring[1], 40) is None and comm.iprobe(ring[1], 40) is None
    comm.barrier()
    behind = comm.isend(b"behind", ring[0], 40)
    other = bytearray(6)
    comm.recv(other, ring[1], 40)  # the one behind it: the first is no longer in the queue
    received = np.bitwise_not(expected)
    status = message.recv(received) if blocking else message.irecv(received).wait()
    assert np.array_equal(received, expected) and other == b"behind"
    assert (status.source, status.tag, status.bytes, status.count) == (ring[1], 40, size, size)
    isthmus.waitall([request, behind])
    with pytest.raises(isthmus.Error, match="received already") as caught:
        message.recv(received)
    assert caught.value.code == isthmus.Code.HANDLE and "received" in repr(message)


def test_wildcards_and_nobody(comm, ring):
    assert comm.improbe() is None
    comm.barrier()
    comm.send(np.arange(3, dtype="i4"), ring[0], 41)
    message = comm.mprobe()
    assert message.status.source == ring[1] and message.status.get_count("i4") == 3
    assert message.status.get_count("f8") is None and message.status.get_count("<u1") == 12
    with pytest.raises(ValueError, match="typestr is 'x'"):
        message.status.get_count("x")
    into = np.full(3, -1, dtype="i4")
    with pytest.raises(BufferError, match="read-only"):
        message.recv(b"abc")
    assert message.recv(into).count == 3 and np.array_equal(into, np.arange(3))
    assert comm.mprobe(isthmus.PROC_NULL).recv(into).source == isthmus.PROC_NULL
    with pytest.raises(isthmus.Error) as caught:
        comm.improbe(comm.size)
    assert caught.value.code == isthmus.Code.RANK


def test_a_longer_message_is_an_error(comm, ring):
    request = comm.isend(b"too long", ring[0], 42)
    into = bytearray(b"????")
    with pytest.raises(isthmus.TruncateError, match="8.*4"):
        comm.mprobe(ring[1], 42).recv(into)
    assert into == b"too "
    request.wait()


def test_a_message_that_is_dropped_does_not_keep_its_sender(comm, ring):
    size = (4 << 20) + 1
    request = comm.isend(bytes(size), ring[0], 43)
    message = comm.mprobe(ring[1], 43)
    del message
    request.wait()
    comm.barrier()


def test_threads_share_a_queue_without_taking_each_others_messages(comm, ring):
    lengths = [1, 5000, 17, 300000] * 10
    got = []

    def receive():
        for _ in range(len(lengths) // 4):
            message = comm.mprobe(ring[1], 44)
            into = bytearray(message.status.bytes)
            message.recv(into)
            got.append(bytes(into))

    threads = [threading.Thread(target=receive) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number, length in enumerate(lengths):
        comm.send(bytes([number]) * length, ring[0], 44)
    for thread in threads:
        thread.join()
    assert sorted(got) == sorted(bytes([number]) * length for number, length in enumerate(lengths))
