"""The counters, and what a message would take: as a status says it."""
import pytest

import isthmus

CARRIERS = ("slot", "cell", "ring", "direct", "nccl", "device", "single copy", "block")


def numbers(traffic):
    return (traffic.messages_sent, traffic.bytes_sent, traffic.messages_received, traffic.bytes_received)


def by_carrier(world, peer):
    return {name: numbers(world.traffic(peer, name)) for name in CARRIERS}


@pytest.mark.parametrize("size", [0, 1, 216, 4097, 16385, 300001])
def test_a_message_is_counted_where_its_status_says(world, comm, ring, make_noise, size):
    sent, _ = make_noise(size, comm.rank, ring[1])
    received = bytearray(size)
    before = by_carrier(world, ring[1])
    status = comm.sendrecv(sent, ring[0], received, ring[1], send_tag=9, recv_tag=9)
    after = by_carrier(world, ring[1])
    names = {"direct": ("direct", "single copy")}.get(status.carrier, (status.carrier,))
    for name in CARRIERS:
        messages, count = (after[name][i] - before[name][i] for i in (2, 3))
        assert (messages, count) in ((0, 0), (1, size)), name
        assert messages == 0 or name in names
    assert sum(after[name][2] - before[name][2] for name in names) == 1


def test_all_is_the_sum(world, comm):
    comm.barrier()
    of_peers = [numbers(world.traffic(peer)) for peer in range(comm.size)]
    nccl = numbers(world.traffic(carrier="nccl"))
    assert numbers(world.traffic()) == tuple(map(sum, zip(*of_peers, nccl)))
    assert str(of_peers[0][0]) in repr(world.traffic(0))


def test_what_there_is_not_is_an_error(world, comm):
    with pytest.raises(ValueError, match='"pigeon" is no carrier; they are slot, cell'):
        world.traffic(carrier="pigeon")
    for peer, words in ((comm.size, "the world has ranks 0 to"), (-1, "ranks begin at 0")):
        with pytest.raises(isthmus.Error, match=words):
            world.traffic(peer)


@pytest.mark.parametrize("size", [0, 216, 16384])
def test_what_is_explained_is_what_is_taken(comm, ring, make_noise, size):
    sent, _ = make_noise(size, comm.rank, ring[1])
    text = comm.explain(sent, ring[0])
    status = comm.sendrecv(sent, ring[0], bytearray(size), ring[1])
    assert text.splitlines()[0].endswith(f": {status.carrier}")
    assert text.startswith(f"{size} x ") and f"to rank {ring[0]} " in text
    assert comm.explain(b"abcd", ring[0], count=2).startswith("2 x ")


def test_what_cannot_be_sent_is_an_error(comm):
    with pytest.raises(isthmus.Error, match="dest is"):
        comm.explain(b"x", comm.size)
    with pytest.raises(TypeError):
        comm.explain(3.5, 0)
