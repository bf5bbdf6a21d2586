"""Objects by pickle, short and long, and that they never meet buffers."""
import os
import threading

import numpy as np
import pytest

import isthmus


@pytest.mark.parametrize("length", [0, 1, 3000, 4050, 4060, 4070, 4080, 4090, 4096, 4097, 5000, 65536, 65537, 3 << 20])
def test_objects_of_any_length(comm, ring, length):
    sent = {"rank": comm.rank, "body": bytes([comm.rank]) * length, "list": [1, None, "ä"]}
    got = comm.sendrecv_object(sent, ring[0], ring[1])
    assert got == {"rank": ring[1], "body": bytes([ring[1]]) * length, "list": [1, None, "ä"]}


def test_arrays_and_classes_are_objects_too(comm, ring):
    got = comm.sendrecv_object((np.arange(1000.0), ValueError("x"), isthmus.Code.RANK), ring[0])
    assert np.array_equal(got[0], np.arange(1000.0)) and got[1].args == ("x",) and got[2] is isthmus.Code.RANK


def test_status_and_tags(comm, ring):
    request = comm.isend_object("second", ring[0], 2)
    comm.isend_object("first", ring[0], 1).wait()
    status = isthmus.Status()
    assert comm.recv_object(ring[1], 1, status=status) == "first"
    assert (status.source, status.tag) == (ring[1], 1) and status.bytes > 0
    assert comm.recv_object(status=status) == "second"
    assert (status.source, status.tag) == (ring[1], 2)
    request.wait()


def test_receives_match_in_the_order_they_were_posted(comm, ring):
    """Long and short ones mixed, waited for in the other order."""
    lengths = [10, 100000, 10, 20, 200000, 5000, 1]
    receives = [comm.irecv_object(ring[1], 7) for _ in lengths]
    assert not receives[0].test() or comm.size > 1
    sends = [comm.isend_object((number, os.urandom(length)), ring[0], 7) for number, length in enumerate(lengths)]
    for number, request in reversed(list(enumerate(receives))):
        got = request.wait()
        assert got[0] == number and len(got[1]) == lengths[number]
        assert request.wait() is got and request.test() and request.status.tag == 7
    isthmus.waitall(sends)


def test_objects_and_buffers_never_meet(comm, ring):
    into = bytearray(4)
    wild = comm.irecv(into)
    wild_object = comm.irecv_object()
    comm.send_object(["object"], ring[0])
    assert wild_object.wait() == ["object"]
    assert not wild.test()
    comm.barrier()
    comm.send(b"buff", ring[0])
    wild.wait()
    assert into == b"buff"


def test_a_posted_object_moves_on_while_something_else_is_waited_for(comm, ring):
    """The long body needs a second receive, which nobody asks for by name."""
    request = comm.irecv_object(ring[1], 3)
    into = bytearray(1)
    later = comm.irecv(into, ring[1], 4)

    def send():
        comm.send_object(b"x" * (5 << 20), ring[0], 3)
        comm.send(b"!", ring[0], 4)

    sender = threading.Thread(target=send)
    sender.start()
    later.wait()
    sender.join()
    assert request.wait() == b"x" * (5 << 20)


def test_dropped_object_sends_arrive(comm, ring):
    for length in (10, 100000):
        comm.isend_object(bytes([comm.rank]) * length, ring[0], 1)
    for length in (10, 100000):
        assert comm.recv_object(ring[1], 1) == bytes([ring[1]]) * length


def test_a_dropped_receive_takes_no_object(comm, ring):
    """Nobody could have it; once it was lost, and the receive below waited for ever."""
    for length in (10, 100000):
        comm.irecv_object(ring[1], 2)  # dropped at once
        freed = comm.irecv_object(ring[1], 2)
        freed.free()
        with pytest.raises(isthmus.Error, match="dest is"):
            comm.sendrecv_object("nobody's", comm.size, ring[1], recv_tag=2)
        comm.barrier()
        comm.isend_object(bytes([comm.rank]) * length, ring[0], 2)
        assert comm.recv_object(ring[1], 2) == bytes([ring[1]]) * length
        comm.barrier()


def test_a_receive_is_dropped_when_its_object_is_on_its_way(comm, ring):
    dropped = comm.irecv_object(ring[1], 3)
    comm.barrier()
    sent = comm.isend_object(b"x" * (5 << 20), ring[0], 3)
    for _ in range(5):
        dropped.test()
    del dropped  # it goes on if its head has come, and else the object stays for the next receive
    later = comm.irecv_object(ring[1], 3)
    comm.send_object("last", ring[0], 3)
    if later.wait() != "last":
        assert comm.recv_object(ring[1], 3) == "last"
    sent.wait()


def test_what_cannot_be_pickled_is_pythons_error_and_sends_nothing(comm, ring):
    with pytest.raises(Exception, match="pickle"):
        comm.send_object(lambda: 0, ring[0])
    assert comm.sendrecv_object("after", ring[0], ring[1]) == "after"


def test_what_cannot_be_unpickled_is_an_error_each_time(comm, ring):
    class Broken:
        def __reduce__(self):
            return int, ("no number",)

    request = comm.irecv_object(ring[1])
    comm.send_object(Broken(), ring[0])
    for _ in range(2):
        with pytest.raises(ValueError, match="no number"):
            request.wait()


def test_nobody_sends_none(comm):
    status = isthmus.Status()
    comm.send_object("lost", isthmus.PROC_NULL)
    assert comm.recv_object(isthmus.PROC_NULL, status=status) is None
    assert status.source == isthmus.PROC_NULL


def test_threads_receive_objects_at_once(comm, ring):
    got, count = [], 40

    def receive():
        for _ in range(count // 4):
            got.append(comm.recv_object(ring[1], 5))

    threads = [threading.Thread(target=receive) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(count):
        comm.send_object((number, bytes(number * 1000)), ring[0], 5)
    for thread in threads:
        thread.join()
    assert sorted(got) == [(number, bytes(number * 1000)) for number in range(count)]
