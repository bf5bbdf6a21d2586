"""Worlds with settings of their own."""
import numpy as np
import pytest

import isthmus


def ring(world, values):
    comm = world.comm
    got = np.zeros_like(values)
    comm.sendrecv(values, (comm.rank + 1) % comm.size, got, (comm.rank - 1) % comm.size)
    assert np.array_equal(got, values)


def sent_ahead(world):
    """Bytes that went before their receive was known."""
    return sum(world.traffic(carrier=carrier).bytes_sent for carrier in ("slot", "cell"))


def test_settings_are_this_worlds_alone(comm):
    values = np.arange(2000, dtype=np.int64)
    with isthmus.World(eager_limit="32KiB", cells=8, progress_thread=True) as world:
        assert (world.rank, world.size) == (comm.rank, comm.size)
        ring(world, values)
        assert world.size == 1 or sent_ahead(world) >= values.nbytes
    with isthmus.World.create_with(comm.rank, comm.size, comm.allgather_object, eager_limit=0) as world:
        ring(world, values)
        assert sent_ahead(world) < values.nbytes


@pytest.mark.parametrize("settings, said", [
    ({"wroker": True}, 'no setting "wroker"; the nearest name is worker'),
    ({"worker": "perhaps"}, 'worker="perhaps" cannot be used: expected 0 or 1'),
    ({"ring_slots": 1}, "a whole number from 2 to 64"),
])
def test_what_cannot_be_used_is_said(settings, said):
    with pytest.raises(isthmus.Error, match=said):
        isthmus.World(**settings)


def test_how_to_wait_is_for_waits_in_python_too(comm):
    for wait in ("spin", "sleep", "auto"):
        with isthmus.World(wait=wait) as world:
            ring(world, np.arange(10))
            if comm.size > 1:
                got = np.zeros(3, dtype=np.int32)
                request = world.comm.irecv(got, (comm.rank - 1) % comm.size, 3)
                world.comm.barrier()
                world.comm.send(np.arange(3, dtype=np.int32), (comm.rank + 1) % comm.size, 3)
                request.wait()
                assert got.tolist() == [0, 1, 2]


def test_a_value_with_spaces_is_for_the_environment():
    with pytest.raises(ValueError, match="has spaces in it"):
        isthmus.World(trace="a file.json")
