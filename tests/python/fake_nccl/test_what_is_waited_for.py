"""Three ranks with a device each, of the invented driver, and the invented NCCL: what Python waits for, which looks again and again, the library
takes for waited for, and what was only tested not. Whether NCCL has a reduction whose order shows follows from that."""
import pytest

import isthmus

ELEMENTS = 1 << 17


class Doubles:
    """Memory of a device, as its producers give it."""

    def __init__(self, memory):
        self.memory = memory
        self.__cuda_array_interface__ = {"version": 3, "data": (memory.address, False), "typestr": "<f8", "shape": (ELEMENTS,)}


@pytest.fixture
def doubles(world, comm):
    return Doubles(world.allocate("cuda", 8 * ELEMENTS, comm.rank))


def least(comm, doubles):
    return comm.iallreduce(isthmus.IN_PLACE, doubles, isthmus.MIN)


def nccl_messages(world):
    return world.traffic(carrier="nccl").messages_sent


def test_the_first_call_leaves_it_to_the_next(comm, doubles):
    other = comm.dup()
    assert [least(other, doubles).wait().carrier for _ in range(3)] == ["none", "nccl", "nccl"]


def test_blocking_calls_and_waitall_wait_too(world, comm, doubles):
    other = comm.dup()
    before = nccl_messages(world)
    other.allreduce(isthmus.IN_PLACE, doubles, isthmus.MIN)
    assert nccl_messages(world) == before
    other.allreduce(isthmus.IN_PLACE, doubles, isthmus.MIN)
    assert nccl_messages(world) == before + 1
    third = comm.dup()
    assert [status.carrier for status in isthmus.waitall([least(third, doubles)])] == ["none"]
    assert least(third, doubles).wait().carrier == "nccl"


def test_what_was_tested_counts_when_it_is_waited_for(comm, doubles):
    other = comm.dup()
    tested = least(other, doubles)
    while not tested.test():
        pass
    assert least(other, doubles).wait().carrier == "none"
    third = comm.dup()
    tested = least(third, doubles)
    while not tested.test():
        pass
    tested.wait()  # which finds it over
    assert least(third, doubles).wait().carrier == "nccl"
