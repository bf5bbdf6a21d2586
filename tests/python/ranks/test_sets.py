"""Several requests at once: any, some, all of them; and letting go of one."""
import gc
import time
import weakref

import numpy as np
import pytest

import isthmus


def posted(comm, ring, tags):
    parts = [np.full(4, -1, dtype="i4") for _ in tags]
    return parts, [comm.irecv(part, ring[1], tag) for part, tag in zip(parts, tags)]


def numbers(tag):
    return np.arange(4, dtype="i4") + tag


def test_nothing_is_complete_before_it_was_sent(comm, ring):
    parts, requests = posted(comm, ring, range(50, 53))
    comm.barrier()
    assert isthmus.testany(requests) is None and isthmus.testall(requests) is None and isthmus.testsome(requests) == []
    comm.barrier()
    comm.send(numbers(51), ring[0], 51)
    index, status = isthmus.waitany(requests)
    assert (index, status.tag) == (1, 51) and np.array_equal(parts[1], numbers(51))
    assert isthmus.testall(requests) is None
    comm.barrier()
    rest = [requests[0], requests[2]]
    for tag in (50, 52):
        comm.send(numbers(tag), ring[0], tag)
    seen = []
    while len(seen) < 2:
        found = isthmus.waitsome([request for request in rest if request not in seen])
        assert found
        left = [request for request in rest if request not in seen]
        seen += [left[index] for index, _ in found]
    assert [status.tag for status in isthmus.testall(requests)] == [50, 51, 52]
    assert [(index, status.tag) for index, status in isthmus.testsome(requests)] == [(0, 50), (1, 51), (2, 52)]
    assert isthmus.testany(requests)[0] == 0
    assert all(np.array_equal(part, numbers(tag)) for part, tag in zip(parts, range(50, 53)))


def test_of_nothing(comm):
    assert isthmus.waitsome([]) == [] and isthmus.testsome([]) == [] and isthmus.testall([]) == []
    assert isthmus.testany([]) is None
    for call in (isthmus.waitsome, isthmus.testany, isthmus.testall, isthmus.testsome):
        with pytest.raises(TypeError, match="one of the requests is a int; give what isend"):
            call([7])


def test_objects_are_results_of_sets_too(comm, ring):
    receives = [comm.irecv_object(ring[1], tag) for tag in range(3)]
    for tag in range(3):
        comm.send_object(["thing", tag], ring[0], tag)
    found = {}
    while len(found) < 3:
        left = [tag for tag in range(3) if tag not in found]
        found.update({left[index]: thing for index, thing in isthmus.waitsome([receives[tag] for tag in left])})
    assert found == {tag: ["thing", tag] for tag in range(3)}
    assert isthmus.testall(receives) == [["thing", tag] for tag in range(3)]


@pytest.mark.parametrize("name", ["waitsome", "testsome", "testall", "waitall"])
def test_failures_are_told_with_the_rest(comm, ring, name):
    good, short, never = bytearray(4), bytearray(2), bytearray(1)
    requests = [comm.irecv(good, ring[1], 54), comm.irecv(short, ring[1], 55)]
    if name.endswith("some"):
        requests.append(comm.irecv(never, ring[1], 56))
    for tag in (54, 55):
        comm.send(b"four", ring[0], tag)
    deadline = time.monotonic() + 30
    with pytest.raises(isthmus.WaitallError, match=f"{name}: 1 of {len(requests)} requests failed; the first is number 1") as caught:
        while time.monotonic() < deadline:
            call = getattr(isthmus, name)
            call(requests)
    error = caught.value
    assert error.code == isthmus.Code.IN_STATUS and isinstance(error.errors[1], isthmus.TruncateError)
    assert error.errors[0] is None and error.errors[2:] == [None] * (len(requests) - 2)
    assert error.statuses[1].code == isthmus.Code.TRUNCATE and error.statuses[2:] == [None] * (len(requests) - 2)
    requests[0].wait()
    assert good == b"four" and short == b"fo"
    for request in requests[2:]:
        request.cancel()
        assert request.wait().cancelled


def test_persistent_ones_that_are_not_started_are_passed_over(comm, ring):
    parts = [np.full(4, -1, dtype="i4") for _ in range(3)]
    receives = [comm.recv_init(part, ring[1], 57 + number) for number, part in enumerate(parts)]
    assert isthmus.testany(receives) is None and isthmus.waitsome(receives) == []
    with pytest.raises(ValueError, match="no request to wait for"):
        isthmus.waitany(receives)
    for turn in range(4):
        isthmus.startall(receives)
        comm.send(numbers(turn), ring[0], 58)
        assert isthmus.waitany(receives)[0] == 1 and np.array_equal(parts[1], numbers(turn))
        comm.barrier()
        assert isthmus.testany(receives) is None  # the one that was told is inactive now
        comm.barrier()
        for number in (0, 2):
            comm.send(numbers(turn + number), ring[0], 57 + number)
        told = []
        while found := isthmus.waitsome(receives):
            told += [index for index, _ in found]
        assert sorted(told) == [0, 2]
        assert [np.array_equal(parts[number], numbers(turn + number)) for number in (0, 2)] == [True, True]
        assert [status.tag for status in isthmus.waitall(receives)] == [57, 58, 59]


def test_a_request_that_is_freed_goes_on(comm, ring):
    class Tracked(bytearray):
        pass

    into = Tracked(b"\xee" * (1 << 20))
    seen = weakref.ref(into)
    request = comm.irecv(into, ring[1], 60)
    request.free()
    request.free()  # once is enough
    del into
    gc.collect()
    assert seen() is not None
    for call in (request.wait, request.test, request.cancel, lambda: request.status, lambda: isthmus.testall([request])):
        with pytest.raises(isthmus.Error, match="the request was freed") as caught:
            call()
        assert caught.value.code == isthmus.Code.HANDLE
    copy = memoryview(seen())
    comm.barrier()
    comm.send(bytes([comm.rank]) * (1 << 20), ring[0], 60)
    comm.barrier()
    deadline = time.monotonic() + 10
    while copy[-1] == 0xee and time.monotonic() < deadline:
        comm.sendrecv(b"", comm.rank, bytearray(), comm.rank, send_tag=77, recv_tag=77)
    assert copy == bytes([ring[1]]) * (1 << 20)
    del copy
    gc.collect()
    comm.sendrecv(b"", comm.rank, bytearray(), comm.rank, send_tag=77, recv_tag=77)
    assert seen() is None
    comm.barrier()


# ---- an exchange in place ----

def test_sendrecv_replace(comm, ring, make_noise, size):
    data, expected = make_noise(size, comm.rank, ring[1])
    status = comm.sendrecv_replace(data, ring[0], ring[1], send_tag=61, recv_tag=61)
    assert np.array_equal(data, expected) and (status.source, status.tag, status.count) == (ring[1], 61, size)


def test_sendrecv_replace_of_a_part_and_with_nobody(comm, ring):
    data = np.arange(8, dtype="i2") + 100 * comm.rank
    comm.sendrecv_replace(data, ring[0], ring[1], count=3)
    assert np.array_equal(data, np.concatenate([np.arange(3) + 100 * ring[1], np.arange(3, 8) + 100 * comm.rank]))
    before = data.copy()
    assert comm.sendrecv_replace(data, isthmus.PROC_NULL, isthmus.PROC_NULL).source == isthmus.PROC_NULL
    assert np.array_equal(data, before)
    with pytest.raises(BufferError, match="read-only"):
        comm.sendrecv_replace(b"abc", ring[0])


def test_a_wrong_destination_takes_no_message_of_another_call(comm, ring):
    comm.barrier()
    with pytest.raises(isthmus.Error) as caught:
        comm.sendrecv(b"x", comm.size, bytearray(1), ring[1])
    assert caught.value.code == isthmus.Code.RANK
    comm.barrier()
    into = bytearray(4)
    comm.sendrecv(b"mine", ring[0], into, ring[1])
    assert into == b"mine"


@pytest.mark.parametrize("kind", ["cuda", "opencl"])
def test_sendrecv_replace_on_devices(world, comm, ring, make_noise, kind):
    if world.devices(kind) == 0:
        pytest.skip(f"not covered here: this machine has no {kind} device")
    sent, expected = make_noise(70001, comm.rank, ring[1])
    memory, received = world.allocate(kind, 70001), np.bitwise_not(expected)
    world.copy(memory, sent)
    comm.sendrecv_replace(memory, ring[0], ring[1])
    world.copy(received, memory)
    assert np.array_equal(received, expected)
