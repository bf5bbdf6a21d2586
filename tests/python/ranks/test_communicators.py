"""Communicators made of others: messages, objects and barriers stay inside."""
import gc

import pytest

import isthmus


def exchange(comm, word):
    """Every rank hands a word on, as bytes and as an object."""
    into = bytearray(len(word))
    peers = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    comm.sendrecv(word, peers[0], into, peers[1])
    assert into == word
    assert comm.sendrecv_object((word, comm.rank), *peers) == (word, peers[1])
    comm.barrier()


def test_messages_of_a_duplicate_never_meet_those_of_the_original(comm, ring):
    other = comm.dup()
    assert (other.rank, other.size) == (comm.rank, comm.size) and other.name != comm.name
    first, second, thing = bytearray(3), bytearray(3), comm.irecv_object(ring[1])
    receives = [comm.irecv(first, ring[1]), other.irecv(second, ring[1])]
    other.send_object("other", ring[0])
    other.send(b"two", ring[0])
    comm.send(b"one", ring[0])
    comm.send_object("original", ring[0])
    isthmus.waitall(receives)
    assert (first, second, thing.wait(), other.recv_object(ring[1])) == (b"one", b"two", "original", "other")
    exchange(other, b"dup")


def test_split_by_color_and_key(comm):
    parts = comm.split(comm.rank % 2, -comm.rank)
    members = [rank for rank in range(comm.size) if rank % 2 == comm.rank % 2][::-1]
    assert parts.size == len(members) and members[parts.rank] == comm.rank
    assert [parts.world_rank(rank) for rank in range(parts.size)] == members
    exchange(parts, b"part")
    alone = comm.split(0 if comm.rank == 0 else None)
    assert (alone is None) == (comm.rank != 0)
    if alone is not None:
        exchange(alone, b"alone")
    local = comm.split_local()
    assert (local.rank, local.size) == (comm.local_rank, comm.local_size)
    with pytest.raises(isthmus.Error, match="color is -5") as caught:
        comm.split(-5)
    assert caught.value.code == isthmus.Code.ARGUMENT


def test_a_group_is_made_by_its_members_alone(comm):
    ranks = list(reversed(range(max(1, comm.size - 1))))
    if comm.rank in ranks:
        group = comm.create_group(ranks)
        assert group.rank == ranks.index(comm.rank) and group.size == len(ranks)
        exchange(group, b"group")


def test_errors_name_the_communicator_and_dropped_ones_are_freed(comm):
    """More than there are numbers for at a time, were they not freed."""
    for turn in range(300):
        made = comm.dup()
        if turn == 0:
            with pytest.raises(isthmus.Error, match="dup"):
                made.isend(b"", made.size)
    del made
    gc.collect()
    exchange(comm, b"still")
