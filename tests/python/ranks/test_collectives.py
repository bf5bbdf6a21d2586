"""Collective calls on buffers and objects, against a serial result."""
import functools
import operator
import os
import signal
import threading

import numpy as np
import pytest

import isthmus
from devices import Driver, InterfaceArray

COUNTS = [0, 1, 7, 4097, 16385, 70001]


@pytest.fixture(params=COUNTS)
def count(request):
    return request.param


def numbers(count, rank, salt=0):
    """A rank's numbers; every rank knows those of all."""
    return np.random.default_rng([count, rank, salt, int(os.environ.get("TEST_SEED", "20"))]).integers(-2**40, 2**40, count)


def everybody(comm, count, salt=0):
    return [numbers(count, rank, salt) for rank in range(comm.size)]


def wrong(count, dtype=np.int64):
    return np.full(count, -1).astype(dtype)


def test_broadcast_gives_the_roots_numbers(comm, count):
    root = count % comm.size
    data = numbers(count, root) if comm.rank == root else wrong(count)
    comm.bcast(data, root)
    assert np.array_equal(data, numbers(count, root))
    data = data if comm.rank == root else wrong(count)
    comm.ibcast(data, root=root).wait()
    assert np.array_equal(data, numbers(count, root))


def test_root_may_send_what_cannot_be_written(comm):
    data = b"hello" if comm.rank == 0 else bytearray(5)
    comm.bcast(data)
    assert data == b"hello"


OPERATIONS = {isthmus.SUM: np.add, isthmus.MIN: np.minimum, isthmus.MAX: np.maximum, isthmus.BAND: np.bitwise_and,
              isthmus.BOR: np.bitwise_or, isthmus.BXOR: np.bitwise_xor, isthmus.PROD: np.multiply}


@pytest.mark.parametrize("op", OPERATIONS, ids=repr)
def test_operations(comm, op):
    got = wrong(1001)
    comm.allreduce(numbers(1001, comm.rank), got, op)
    assert np.array_equal(got, OPERATIONS[op].reduce(everybody(comm, 1001)))


@pytest.mark.parametrize("op, function", [(isthmus.LAND, np.logical_and), (isthmus.LOR, np.logical_or),
                                          (isthmus.LXOR, np.logical_xor)], ids=repr)
def test_logical_operations(comm, op, function):
    mine = [numbers(1001, rank) % 2 for rank in range(comm.size)]
    got = wrong(1001)
    comm.allreduce(mine[comm.rank], got, op)
    assert np.array_equal(got, function.reduce(mine))


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16"])
def test_the_arrays_dtype_gives_the_type(comm, dtype):
    got = wrong(100, dtype)
    comm.allreduce((np.arange(100) % 30).astype(dtype), got)
    assert np.array_equal(got, (np.arange(100) % 30 * comm.size).astype(dtype))


def test_reductions(comm, count):
    mine, all_numbers = numbers(count, comm.rank), everybody(comm, count)
    total, root = np.add.reduce(all_numbers), comm.size - 1
    got = wrong(count)
    comm.allreduce(mine, got)
    assert np.array_equal(got, total)
    got = mine.copy()
    comm.iallreduce(isthmus.IN_PLACE, got).wait()
    assert np.array_equal(got, total)
    got = wrong(count) if comm.rank == root else None
    comm.reduce(mine, got, root=root)
    assert comm.rank != root or np.array_equal(got, total)
    got = wrong(count) if comm.rank == root else None
    comm.ireduce(mine, got, root=root).wait()
    assert comm.rank != root or np.array_equal(got, total)
    largest = np.maximum.reduce(all_numbers[:comm.rank + 1])
    before = np.add.reduce(all_numbers[:comm.rank]) if comm.rank > 0 else wrong(count)
    for wait in (False, True):
        got = wrong(count)
        if wait:
            comm.iscan(mine, got, isthmus.MAX).wait()
        else:
            comm.scan(mine, got, isthmus.MAX)
        assert np.array_equal(got, largest)
        got = wrong(count)
        if wait:
            comm.iexscan(mine, got).wait()
        else:
            comm.exscan(mine, got)
        assert np.array_equal(got, before)


def test_reduce_scatter(comm, count):
    mine, total = numbers(count * comm.size, comm.rank), np.add.reduce(everybody(comm, count * comm.size))
    got = wrong(count)
    comm.reduce_scatter(mine, got)
    assert np.array_equal(got, total[comm.rank * count:(comm.rank + 1) * count])
    counts = [0] * (comm.size - 1) + [count * comm.size]  # the last rank gets all
    got = wrong(counts[comm.rank])
    comm.ireduce_scatter(mine, got, counts=counts).wait()
    assert np.array_equal(got, total if comm.rank == comm.size - 1 else [])
    both = mine.copy()
    comm.reduce_scatter(isthmus.IN_PLACE, both)
    assert np.array_equal(both[:count], total[comm.rank * count:(comm.rank + 1) * count])


def test_equal_parts(comm, count):
    parts, root = everybody(comm, count), comm.size // 2
    whole, is_root = np.concatenate(parts), comm.rank == root
    got = wrong(count * comm.size) if is_root else None
    comm.gather(parts[comm.rank], got, root)
    assert not is_root or np.array_equal(got, whole)
    back = wrong(count)
    comm.scatter(got, back, root)
    assert np.array_equal(back, parts[comm.rank])
    comm.scatter(got, isthmus.IN_PLACE if is_root else back, root)
    got = wrong(count * comm.size)
    comm.allgather(parts[comm.rank], got)
    assert np.array_equal(got, whole)
    sent = everybody(comm, count * comm.size, salt=1)
    expected = np.concatenate([theirs[comm.rank * count:(comm.rank + 1) * count] for theirs in sent])
    comm.alltoall(sent[comm.rank], got)
    assert np.array_equal(got, expected)
    got = sent[comm.rank].copy()
    comm.ialltoall(isthmus.IN_PLACE, got).wait()
    assert np.array_equal(got, expected)


def test_parts_of_different_lengths(comm, count):
    counts = [count * (rank + 1) // 2 for rank in range(comm.size)]
    displs = [sum(counts[:rank]) + 2 * rank + 2 for rank in range(comm.size)]  # a hole before each
    whole = wrong(displs[-1] + counts[-1])
    for rank, (number, place) in enumerate(zip(counts, displs)):
        whole[place:place + number] = numbers(number, rank)
    mine = numbers(counts[comm.rank], comm.rank)
    got = wrong(len(whole))
    comm.allgather(mine, got, counts=counts, displs=displs)
    assert np.array_equal(got, whole)
    got = wrong(len(whole))
    comm.gather(mine, got, counts=counts, displs=displs)
    assert np.array_equal(got, whole if comm.rank == 0 else wrong(len(whole)))
    back = wrong(len(mine))
    comm.scatter(got, back, counts=counts, displs=displs)
    assert np.array_equal(back, mine)
    exchanged = wrong(len(mine) * comm.size)
    comm.alltoall(whole, exchanged, send_counts=counts, send_displs=displs, recv_counts=[len(mine)] * comm.size)
    assert np.array_equal(exchanged, np.tile(mine, comm.size))


def test_several_under_way_keep_their_buffers(comm):
    results = [wrong(5000) for _ in range(3)]
    requests = [comm.iallreduce(numbers(5000, comm.rank, salt), result) for salt, result in enumerate(results)]
    requests.append(comm.ibarrier())
    isthmus.waitall(requests)
    for salt, result in enumerate(results):
        assert np.array_equal(result, np.add.reduce(everybody(comm, 5000, salt)))


def test_nobody_passes_a_barrier_before_all_have_come(comm):
    request = comm.ibarrier()
    if comm.rank == 0 and comm.size > 1:
        comm.recv(bytearray(1), comm.size - 1, 9)
    elif comm.rank == comm.size - 1 and comm.size > 1:
        comm.send(b"x", 0, 9)
    request.wait()


def test_device_arrays(world, comm, count):
    if world.devices("cuda") == 0:
        pytest.skip("not covered here: this machine has no CUDA device")
    driver = Driver()
    # The input comes into being 0.1 s from now; every second rank's result goes to the host.
    mine = InterfaceArray(driver, wrong(count))
    if count:
        mine.fill_late(numbers(count, comm.rank))
    got = InterfaceArray(driver, wrong(count)) if comm.rank % 2 == 0 else wrong(count)
    comm.allreduce(mine, got)
    assert np.array_equal(got.get() if comm.rank % 2 == 0 else got, np.add.reduce(everybody(comm, count)))


OBJECTS = [None, {"a": [1, 2]}, "x" * 100000]


@pytest.mark.parametrize("thing", OBJECTS, ids=["none", "small", "long"])
def test_objects(comm, thing):
    root = comm.size - 1
    assert comm.bcast_object(thing if comm.rank == root else 5, root) == thing
    mine = (comm.rank, thing)
    everyone = [(rank, thing) for rank in range(comm.size)]
    assert comm.gather_object(mine, root) == (everyone if comm.rank == root else None)
    assert comm.allgather_object(mine) == everyone
    assert comm.scatter_object(everyone if comm.rank == root else None, root) == mine
    assert comm.alltoall_object([(comm.rank, to, thing) for to in range(comm.size)]) == [(rank, comm.rank, thing) for rank in range(comm.size)]


def test_reductions_of_objects(comm):
    root, me, size = comm.size - 1, comm.rank, comm.size
    words = [f"{rank} " for rank in range(size)]
    assert comm.reduce_object(words[me], root=root) == ("".join(words) if me == root else None)
    assert comm.allreduce_object(words[me]) == "".join(words)
    assert comm.scan_object(words[me]) == "".join(words[:me + 1])
    assert comm.exscan_object(words[me]) == ("".join(words[:me]) if me else None)
    # Neither commutes: from the left to the right.
    assert comm.allreduce_object([me], lambda lower, higher: lower + [10 * rank for rank in higher]) == [0] + [10 * rank for rank in range(1, size)]
    numbers_of = [3 + 7 * rank % 5 for rank in range(size)]
    mine = numbers_of[me]
    expected = {"SUM": sum(numbers_of), "PROD": functools.reduce(operator.mul, numbers_of), "MIN": min(numbers_of), "MAX": max(numbers_of),
                "BAND": functools.reduce(operator.and_, numbers_of), "BOR": functools.reduce(operator.or_, numbers_of),
                "BXOR": functools.reduce(operator.xor, numbers_of)}
    for name, wanted in expected.items():
        assert comm.allreduce_object(mine, getattr(isthmus, name)) == wanted, name
    truths = [rank == 0 for rank in range(size)]
    for name, wanted in (("LAND", all(truths)), ("LOR", True), ("LXOR", True)):
        assert comm.allreduce_object(truths[me], getattr(isthmus, name)) is wanted, name
    assert comm.allreduce_object((mine, me), isthmus.MINLOC) == min((number, rank) for rank, number in enumerate(numbers_of))
    assert comm.allreduce_object((mine, me), isthmus.MAXLOC) == (max(numbers_of), numbers_of.index(max(numbers_of)))
    # All of the same value: the lowest place.
    assert comm.allreduce_object((1.5, size - me), isthmus.MAXLOC) == (1.5, 1)


def test_what_combines_objects_raises_where_it_was_called(comm):
    with pytest.raises(TypeError, match="cannot be called; give isthmus.SUM"):
        comm.allreduce_object(1, "SUM")
    with pytest.raises(TypeError, match="of objects, give the function itself"):
        comm.scan_object(1, isthmus.Operation(lambda lower, higher: lower))
    with pytest.raises(ValueError, match="alltoall_object: rank [0-9]+ has 0 objects for [0-9]+ ranks; give one for each"):
        comm.alltoall_object([])
    def refuse(lower, higher):
        raise KeyError(higher)
    if comm.size > 1:
        with pytest.raises(KeyError):
            comm.allreduce_object(comm.rank, refuse)
        if comm.rank == 0:
            with pytest.raises(KeyError):
                comm.reduce_object(comm.rank, refuse)
        else:
            assert comm.reduce_object(comm.rank, refuse) is None
    assert comm.allreduce_object(1) == comm.size


def test_synchronous_objects_and_probes_of_them(comm):
    if comm.size == 1:
        assert comm.iprobe_object() is None
        return
    if comm.rank == 0:
        sent = comm.issend_object({"long": "x" * 100000}, 1, 4)
        assert not sent.test()
        comm.barrier()
        assert sent.wait().code == 0
        comm.ssend_object("short", 1, 5)
    elif comm.rank == 1:
        assert comm.iprobe_object(0, 3) is None
        status = comm.probe_object()
        assert (status.source, status.tag) == (0, 4)
        assert comm.iprobe(0, 4) is None, "no call for buffers finds an object"
        comm.barrier()
        assert comm.recv_object(0, 4) == {"long": "x" * 100000}
        assert comm.probe_object(0).tag == 5 and comm.recv_object(0, 5) == "short"
    else:
        comm.barrier()


def test_wrong_arguments_are_told_before_anything_is_sent(comm):
    mine = np.zeros(10)
    with pytest.raises(TypeError, match="numpy.ndarray of f8, and the receive buffer, a numpy.ndarray of f4, have elements of different types; convert"):
        comm.allreduce(mine, np.zeros(10, np.float32))
    with pytest.raises(TypeError, match="of bool, and the receive buffer, a numpy.ndarray of '<M8.s.', have"):
        comm.allgather(np.zeros(1, "?"), np.zeros(comm.size, "M8[s]"))
    with pytest.raises(ValueError, match="10 elements to send in 1 equal part.s., and room for 9 in 1"):
        comm.allreduce(mine, np.zeros(9))
    with pytest.raises(ValueError, match="give one for each"):
        comm.allgather(mine, mine.copy(), counts=[1] * (comm.size + 1))
    with pytest.raises(ValueError, match="is not inside of a buffer of 10"):
        comm.allgather(mine, mine.copy(), counts=[11] * comm.size)
    with pytest.raises(TypeError):
        comm.allreduce(mine, mine.copy(), "sum")
    with pytest.raises(BufferError, match="read-only"):
        comm.allreduce(bytes(8), bytes(8))
    with pytest.raises(isthmus.Error) as caught:
        comm.bcast(mine, comm.size)
    assert caught.value.code == isthmus.Code.RANK
    with pytest.raises(isthmus.Error):
        comm.allreduce(mine, mine.copy(), isthmus.BAND)
    if comm.rank == 0:
        with pytest.raises(ValueError, match="give one for each"):
            comm.scatter_object([1] * (comm.size + 1))
    total = np.ones(1)
    comm.allreduce(isthmus.IN_PLACE, total)
    assert total[0] == comm.size


class Interrupted(Exception):
    pass


def test_a_signal_ends_the_wait_and_the_call_goes_on(comm):
    if comm.size == 1:
        pytest.skip("needs two ranks")
    got = wrong(1000)
    if comm.rank == 0:
        def interrupt(*_):
            raise Interrupted

        before = signal.signal(signal.SIGUSR1, interrupt)
        timer = threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGUSR1])
        timer.start()
        with pytest.raises(Interrupted):
            comm.allreduce(numbers(1000, 0), got)
        timer.join()
        signal.signal(signal.SIGUSR1, before)
        for rank in range(1, comm.size):
            comm.send(b"", rank, 11)
    else:
        comm.recv(bytearray(), 0, 11)
        comm.allreduce(numbers(1000, comm.rank), got)
        assert np.array_equal(got, np.add.reduce(everybody(comm, 1000)))
    comm.barrier()
    # Collectives are done in order: rank 0's is complete when the next one is.
    assert comm.allgather_object(comm.rank) == list(range(comm.size))


@pytest.mark.parametrize("op, wanted", [("LAND", np.logical_and), ("LOR", np.logical_or), ("LXOR", np.logical_xor),
                                        ("BAND", np.logical_and), ("MAX", np.logical_or), ("MIN", np.logical_and)])
def test_truth_values_are_reduced_to_truth_values(comm, op, wanted):
    values = [np.random.default_rng([3, rank]).integers(0, 2, 1001).astype(bool) for rank in range(comm.size)]
    out = np.full(1001, True)
    comm.allreduce(values[comm.rank], out, getattr(isthmus, op))
    assert out.dtype == bool and np.array_equal(out, functools.reduce(wanted, values))
    comm.allreduce(isthmus.IN_PLACE, values[comm.rank], getattr(isthmus, op))
    assert np.array_equal(values[comm.rank], out)
    with pytest.raises(TypeError, match="SUM of truth values gives none; take LAND"):
        comm.allreduce(np.ones(2, bool), np.ones(2, bool), isthmus.SUM)


@pytest.mark.parametrize("typestr", [">i4", "M8[s]", "g", [("a", "f4"), ("b", "i2")]])
def test_elements_that_cannot_be_computed_with_are_named(comm, typestr):
    array = np.zeros(3, typestr)
    with pytest.raises(TypeError, match="SUM does not apply to elements of type '.*', which the library knows as bytes alone"):
        comm.allreduce(array, array.copy(), isthmus.SUM)
