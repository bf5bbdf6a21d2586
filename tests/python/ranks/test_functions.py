"""Reductions by functions of Python's: results, exceptions, threads, and who may call what."""
import gc
import math
import os
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import isthmus
from devices import Driver, InterfaceArray

COUNTS = [0, 1, 7, 4097, 300001]


@pytest.fixture(params=COUNTS)
def count(request):
    return request.param


def numbers(count, rank, salt=0):
    seed = [count, rank, salt, int(os.environ.get("TEST_SEED", "20"))]
    return np.random.default_rng(seed).integers(-2**20, 2**20, count).astype("f8")


def everybody(comm, count, salt=0):
    return [numbers(count, rank, salt) for rank in range(comm.size)]


LARGER = isthmus.Operation(np.maximum)


def left(lower, higher):
    """Associative, and not commutative."""
    return lower


def in_place(lower, higher):
    np.minimum(lower, higher, out=higher)


def test_results_by_return_and_in_place(comm, count):
    mine, all_of_them = numbers(count, comm.rank), everybody(comm, count)
    got = np.full(count, np.nan)
    comm.allreduce(mine, got, LARGER)
    assert np.array_equal(got, np.maximum.reduce(all_of_them))
    got = np.full(count, np.nan)
    comm.iallreduce(mine, got, isthmus.Operation(in_place)).wait()
    assert np.array_equal(got, np.minimum.reduce(all_of_them))
    got = np.full(count, np.nan) if comm.rank == comm.size - 1 else None
    comm.reduce(mine, got, LARGER, comm.size - 1)
    assert got is None or np.array_equal(got, np.maximum.reduce(all_of_them))
    got = np.full(count, np.nan)
    comm.scan(mine, got, LARGER)
    assert np.array_equal(got, np.maximum.reduce(all_of_them[:comm.rank + 1]))
    got = np.full(count, 5.0)
    comm.exscan(mine, got, LARGER)
    assert np.array_equal(got, np.maximum.reduce(all_of_them[:comm.rank]) if comm.rank else np.full(count, 5.0))
    inout = mine.copy()
    comm.allreduce(isthmus.IN_PLACE, inout, LARGER)
    assert np.array_equal(inout, np.maximum.reduce(all_of_them))


def test_reduce_scatter(comm, count):
    total = np.maximum.reduce(everybody(comm, count * comm.size))
    got = np.full(count, np.nan)
    comm.reduce_scatter(numbers(count * comm.size, comm.rank), got, LARGER)
    assert np.array_equal(got, total[comm.rank * count:(comm.rank + 1) * count])


def test_what_is_not_commutative_keeps_the_order_of_ranks(comm, count):
    got = np.full(count, np.nan)
    first = isthmus.Operation(left, commutative=False)
    comm.allreduce(numbers(count, comm.rank), got, first)
    assert np.array_equal(got, numbers(count, 0))
    last = isthmus.Operation(lambda lower, higher: None, False)  # leaves the second as it is
    comm.allreduce(numbers(count, comm.rank), got, last)
    assert np.array_equal(got, numbers(count, comm.size - 1))
    assert repr(last).startswith("isthmus.Operation(<function") and repr(last).endswith(", commutative=False)")
    assert repr(LARGER) == f"isthmus.Operation({np.maximum!r})"


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16", "u1"])
def test_arrays_have_the_buffers_type(comm, dtype):
    seen = set()

    def add(lower, higher):
        seen.add((lower.dtype, higher.dtype, lower.flags.writeable, higher.flags.writeable))
        return lower + higher

    got = np.zeros(100, dtype)
    comm.allreduce((np.arange(100) % 20).astype(dtype), got, isthmus.Operation(add))
    assert np.array_equal(got, (np.arange(100) % 20 * comm.size).astype(dtype))
    assert seen <= {(np.dtype(dtype), np.dtype(dtype), False, True)}


PAIRS = {"f4,i4": 8, "f8,i4": 16, "i8,i4": 16, "i4,i4": 8, "i2,i4": 8, "i8,i8": 16}


@pytest.mark.parametrize("pair", PAIRS)
def test_places_of_extremes(comm, pair):
    value, index = pair.split(",")
    dtype = np.dtype([("value", value), ("index", index)], align=True)
    assert dtype.itemsize == PAIRS[pair]

    def mine(rank):
        made = np.zeros(500, dtype)
        made["value"] = np.random.default_rng([rank, 3]).integers(-5, 5, 500)
        made["index"] = rank
        return made

    values = np.array([mine(rank)["value"] for rank in range(comm.size)])
    for op, best, place in ((isthmus.MINLOC, values.min(0), values.argmin(0)), (isthmus.MAXLOC, values.max(0), values.argmax(0))):
        got = np.full(500, -1, dtype)
        comm.allreduce(mine(comm.rank), got, op)
        assert np.array_equal(got["value"], best) and np.array_equal(got["index"], place)
    seen = []
    got = np.full(500, -1, dtype)
    comm.allreduce(mine(comm.rank), got, isthmus.Operation(lambda lower, higher: seen.append(lower.dtype)))
    assert all(each == dtype for each in seen)


def test_an_exception_is_raised_where_it_was_and_told_elsewhere(comm, count):
    if count == 0 or comm.size == 1:
        pytest.skip("nothing is combined")

    def broken(lower, higher):
        raise ZeroDivisionError("no such number")

    ours, failed = np.full(count, np.nan), []
    for call in (comm.allreduce, lambda *arguments: comm.iallreduce(*arguments).wait(), comm.scan):
        try:
            call(numbers(count, comm.rank), ours, isthmus.Operation(broken))
        except ZeroDivisionError as error:
            assert str(error) == "no such number" and error.__traceback__ is not None
            failed.append("own")
        except isthmus.Error as error:
            assert error.code == isthmus.Code.ARGUMENT
            assert "the reduction's function raised ZeroDivisionError: no such number" in str(error)
            assert str(error).startswith("rank ")
            failed.append("told")
    assert len(failed) == 3
    words = comm.allgather_object(failed)
    assert all(any(each[turn] == "own" for each in words) for turn in range(3))
    # The communicator is as good as before.
    comm.allreduce(numbers(count, comm.rank), ours, LARGER)
    assert np.array_equal(ours, np.maximum.reduce(everybody(comm, count)))


def test_one_rank_that_fails_is_named_on_all_others(comm):
    if comm.size == 1:
        pytest.skip("nothing is combined")

    def picky(lower, higher):
        if comm.rank == guilty:
            raise ValueError("ä" * 400)  # longer than what is told of it
        return lower + higher

    for guilty in range(comm.size):
        request = comm.iscan(np.arange(10.0), np.zeros(10), isthmus.Operation(picky))
        combines = guilty > 0  # in a scan rank 0 has nothing to combine
        if not combines:
            request.wait()
        elif comm.rank == guilty:
            for _ in range(2):
                with pytest.raises(ValueError, match="ääää"):
                    request.wait()
            with pytest.raises(isthmus.WaitallError, match="waitall: 1 of 1 requests failed.*ää") as caught:
                isthmus.waitall([request])
            assert isinstance(caught.value.errors[0], ValueError)
        else:
            with pytest.raises(isthmus.Error, match=f"rank {guilty}: the reduction's function raised ValueError"):
                request.wait()


def test_results_of_the_wrong_shape_or_type(comm):
    if comm.size == 1:
        pytest.skip("nothing is combined")
    whole = np.zeros(10, "i4")
    for result, kind, text in ((lambda a, b: a[1:], ValueError, r"shape .\d+,. for two of .\d+,.; it must combine"),
                               (lambda a, b: a + 0.5, TypeError, "Cannot cast"),
                               (lambda a, b: 7, ValueError, "element by element")):
        with pytest.raises((kind, isthmus.Error), match=text):
            comm.allreduce(np.arange(10, dtype="i4"), whole, isthmus.Operation(result))


def test_wrong_operations_are_told_before_anything_is_sent(comm):
    with pytest.raises(TypeError, match="a str cannot be called; give a function of two arrays"):
        isthmus.Operation("sum")
    dates = np.zeros(4, "M8[s]")
    with pytest.raises(TypeError, match="elements of 8 bytes of a type that the library does not know"):
        comm.allreduce(dates, dates.copy(), LARGER)
    total = np.zeros(1)
    comm.allreduce(np.ones(1), total, LARGER)
    assert total[0] == 1


def test_the_function_may_not_call_the_library(comm, world):
    if comm.size == 1:
        pytest.skip("nothing is combined")
    kept = [comm.irecv(bytearray(1), comm.rank, 99)]
    texts = []

    def curious(lower, higher):
        for call in (lambda: comm.send(b"", comm.rank), kept[0].test if kept else comm.barrier, comm.dup, world.close,
                     lambda: world.allocate("host", 1), comm.iprobe, lambda: kept[0].cancel() if kept else comm.barrier()):
            try:
                call()
            except isthmus.Error as error:
                texts.append(str(error))
        return lower + higher

    got = np.zeros(5)
    comm.allreduce(np.ones(5), got, isthmus.Operation(curious))
    assert np.array_equal(got, np.full(5, comm.size))
    assert all("must not call the library" in text for text in texts) and len(texts) % 7 == 0
    kept[0].cancel()
    kept[0].wait()


def test_what_is_dropped_inside_the_function_is_freed_later(comm, ring):
    if comm.size == 1:
        pytest.skip("nothing is combined")
    dropped = [comm.dup(), comm.recv_init(bytearray(1), isthmus.PROC_NULL), comm.isend(b"", isthmus.PROC_NULL)]
    comm.send(b"lost", ring[0], 98)
    dropped.append(comm.mprobe(ring[1], 98))

    def drops(lower, higher):
        dropped.clear()
        gc.collect()
        return lower + higher

    got = np.zeros(3)
    comm.allreduce(np.ones(3), got, isthmus.Operation(drops))
    assert np.array_equal(got, np.full(3, comm.size))


def test_arrays_may_be_kept_and_the_function_goes_with_the_operation(comm):
    kept = []

    def keeps(lower, higher):
        kept.append((lower, higher, lower.copy(), higher.copy()))
        return lower + higher

    seen = weakref.ref(keeps)
    got = np.zeros(2000)
    comm.allreduce(np.ones(2000), got, isthmus.Operation(keeps))
    del keeps
    gc.collect()
    comm.barrier()
    assert seen() is None and np.array_equal(got, np.full(2000, comm.size))
    assert all(np.array_equal(lower, before) for lower, _, before, _ in kept)


def test_an_exception_whose_text_is_no_utf8_is_told_all_the_same(comm):
    if comm.size == 1:
        pytest.skip("nothing is combined")

    def broken(lower, higher):
        raise ValueError("a file's name, \udc80")

    ours = np.full(5, np.nan)
    with pytest.raises((ValueError, isthmus.Error)):
        comm.allreduce(numbers(5, comm.rank), ours, isthmus.Operation(broken))
    comm.barrier()  # by the same thread


def test_threads_run_python_while_functions_do(world, comm):
    """Every thread takes library and interpreter in its own order; nothing may wait for the one with the other."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    stop, errors = threading.Event(), []
    others = [comm.dup() for _ in range(2)]

    def slowly(lower, higher):
        return [sum(pair) for pair in zip(lower.tolist(), higher.tolist())]

    def reduce(on, salt):
        try:
            for turn in range(6):
                got = np.zeros(500)
                on.allreduce(numbers(500, comm.rank, salt + turn), got, isthmus.Operation(slowly))
                assert np.array_equal(got, np.add.reduce(everybody(comm, 500, salt + turn)))
        except BaseException as error:  # told below, in the thread that pytest watches
            errors.append(error)

    def chat():
        try:
            while not stop.is_set():
                comm.isend(b"x" * 10, comm.rank, 97)
                request = comm.irecv(bytearray(10), comm.rank, 97)
                comm.iprobe(comm.rank, 96)
                del request
                world_rank = comm.world_rank(0)
                assert world_rank == 0 and comm.local_size > 0
                assert world.traffic().messages_sent >= 0
                time.sleep(0.001)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=reduce, args=(on, 100 * number)) for number, on in enumerate(others)]
    chats = [threading.Thread(target=chat)]
    for thread in threads + chats:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    for thread in chats:
        thread.join()
    sys.setswitchinterval(before)
    assert not errors


def test_several_under_way_and_dropped(comm):
    results = [np.full(5000, np.nan) for _ in range(4)]
    requests = [comm.iallreduce(numbers(5000, comm.rank, salt), result, LARGER) for salt, result in enumerate(results[:3])]
    comm.iallreduce(numbers(5000, comm.rank, 3), results[3], LARGER)  # its request is dropped at once
    for request in reversed(requests):
        request.wait()
    deadline = time.monotonic() + 20
    while np.isnan(results[3]).any() and time.monotonic() < deadline:
        comm.sendrecv(b"", comm.rank, bytearray(), comm.rank, send_tag=95, recv_tag=95)
    comm.barrier()
    for salt, result in enumerate(results):
        assert np.array_equal(result, np.maximum.reduce(everybody(comm, 5000, salt)))


def test_device_arrays(world, comm, count):
    if world.devices("cuda") == 0:
        pytest.skip("not covered here: this machine has no CUDA device")
    driver = Driver()
    mine = InterfaceArray(driver, np.full(count, -1.0))
    if count:
        mine.fill_late(numbers(count, comm.rank))
    got = InterfaceArray(driver, np.full(count, -1.0))
    comm.allreduce(mine, got, LARGER)
    assert np.array_equal(got.get(), np.maximum.reduce(everybody(comm, count)))


def test_hypotenuse_of_everybody(comm):
    """The shortest use."""
    got = np.zeros(3)
    comm.allreduce(np.array([3.0, 4.0, 1.0]), got, isthmus.Operation(np.hypot))
    assert np.allclose(got, np.array([3.0, 4.0, 1.0]) * math.sqrt(comm.size))
    comm.barrier()
