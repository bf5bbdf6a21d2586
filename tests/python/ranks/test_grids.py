"""Cartesian communicators, and communicators that are freed by name."""
import math

import numpy as np
import pytest

import isthmus


def place(rank, dims):
    coords = []
    for extent in reversed(dims):
        coords.insert(0, rank % extent)
        rank //= extent
    return coords


@pytest.mark.parametrize("ndims", [1, 2, 3])
def test_coordinates_and_neighbours(comm, ndims):
    dims = isthmus.dims_create(comm.size, [0] * ndims)
    assert math.prod(dims) == comm.size and dims == sorted(dims, reverse=True)
    periods = [number % 2 == 0 for number in range(ndims)]
    grid = comm.cart_create(dims, periods)
    assert isinstance(grid, isthmus.Cart) and isinstance(grid, isthmus.Comm)
    assert (grid.ndims, grid.dims, grid.periods, grid.size, grid.rank) == (ndims, dims, periods, comm.size, comm.rank)
    assert grid.coords == place(comm.rank, dims)
    for rank in range(comm.size):
        assert grid.cart_coords(rank) == place(rank, dims) and grid.cart_rank(place(rank, dims)) == rank
    for dimension in range(ndims):
        for displacement in (-2, -1, 0, 1, 3):
            expected = []
            for step in (-displacement, displacement):
                there = list(grid.coords)
                there[dimension] += step
                inside = 0 <= there[dimension] < dims[dimension]
                there[dimension] %= dims[dimension]
                expected.append(grid.cart_rank(there) if inside or periods[dimension] else isthmus.PROC_NULL)
            assert grid.cart_shift(dimension, displacement) == tuple(expected)


@pytest.mark.parametrize("remain", [[True, False], [False, True], [True, True]])
def test_what_remains_of_a_grid(comm, remain):
    grid = comm.cart_create(isthmus.dims_create(comm.size, [0, 0]), [True, False])
    part = grid.cart_sub(remain)
    kept = [d for d in range(2) if remain[d]]
    assert isinstance(part, isthmus.Cart) and part.size == math.prod(grid.dims[d] for d in kept)
    assert (part.dims, part.periods, part.coords) == tuple([of[d] for d in kept] for of in (grid.dims, grid.periods, grid.coords))
    total = np.zeros(1, "i4")
    part.allreduce(np.full(1, grid.coords[kept[0]], "i4"), total)
    assert total[0] == sum(range(part.dims[0])) * (part.size // part.dims[0])


def test_a_grid_of_which_nothing_remains(comm):
    grid = comm.cart_create([comm.size])
    with pytest.raises(isthmus.Error, match="one must remain"):
        grid.cart_sub([False])
    with pytest.raises(isthmus.Error, match="ndims is 2; the grid has 1"):
        grid.cart_sub([True, True])


def test_a_halo_exchange(comm):
    grid = comm.cart_create([comm.size], [False])
    source, dest = grid.cart_shift(0, 1)
    mine, halo = np.full(1000, comm.rank, "i4"), np.full(1000, -7, "i4")
    grid.sendrecv(mine, dest, halo, source)
    assert np.array_equal(halo, np.full(1000, comm.rank - 1 if comm.rank > 0 else -7))
    total = np.zeros(1000, "i4")
    grid.allreduce(mine, total)
    assert np.array_equal(total, np.full(1000, sum(range(comm.size))))


def test_ranks_outside_have_none_and_periods_may_be_left_out(comm):
    grid = comm.cart_create([max(1, comm.size - 1)])
    assert (grid is None) == (comm.size > 1 and comm.rank == comm.size - 1)
    if grid is not None:
        assert grid.periods == [False] and repr(grid) == f"<isthmus.Cart, rank {comm.rank} of {grid.size}>"
        with pytest.raises(isthmus.Error, match="outside the grid") as caught:
            grid.cart_rank([grid.size])
        assert caught.value.code == isthmus.Code.RANK
        with pytest.raises(isthmus.Error, match="there are 2 coordinates; the grid has 1"):
            grid.cart_rank([0, 0])
        with pytest.raises(isthmus.Error, match="dimension is 1; the grid has 1"):
            grid.cart_shift(1, 1)
        with pytest.raises(isthmus.Error, match="ranks 0 to"):
            grid.cart_coords(grid.size)


def test_wrong_grids(comm):
    with pytest.raises(isthmus.Error, match="2 dims and 1 periods; give as many"):
        comm.cart_create([1, 1], [True])
    with pytest.raises(isthmus.Error, match="places; communicator"):
        comm.cart_create([comm.size + 1])
    with pytest.raises(isthmus.Error, match="no multiple"):
        isthmus.dims_create(7, [2, 0])
    assert isthmus.dims_create(12, [0, 2, 0]) == [3, 2, 2]


def test_a_communicator_is_freed_by_name(comm, ring):
    made = comm.dup()
    into = bytearray(4)
    request = made.irecv(into, ring[1])
    made.send(b"late", ring[0])
    made.free()
    made.free()
    assert request.wait().bytes == 4 and into == b"late"  # what was started goes on
    for call in (lambda: made.send(b"", 0), lambda: made.rank, made.barrier):
        with pytest.raises(isthmus.Error, match="the communicator was freed") as caught:
            call()
        assert caught.value.code == isthmus.Code.HANDLE
    assert repr(made) == "<isthmus.Comm, freed>"
    with pytest.raises(isthmus.Error, match="the world's own"):
        comm.free()
    comm.barrier()


def test_this_rank_alone(world, comm):
    alone = world.comm_self
    assert (alone.rank, alone.size) == (0, 1) and alone.world_rank(0) == comm.rank
    into = bytearray(4)
    alone.sendrecv(b"self", 0, into, 0)
    assert into == b"self" and alone.allgather_object("me") == ["me"]
    with pytest.raises(isthmus.Error, match="the world's own"):
        alone.free()


# ---- worlds of an exchange of the program's own ----

def test_a_world_by_somebody_elses_exchange(comm):
    calls = []

    def all_gather(mine):
        calls.append(len(mine))
        return comm.allgather_object(mine)

    with isthmus.World.create_with(comm.rank, comm.size, all_gather) as world:
        assert (world.rank, world.size) == (comm.rank, comm.size) and (calls or comm.size == 1)
        got = world.comm.sendrecv_object(("new", world.rank), (world.rank + 1) % world.size)
        assert got == ("new", (world.rank - 1) % world.size)
        into = np.full(70000, -1.0)
        world.comm.allreduce(np.arange(70000.0), into)
        assert np.array_equal(into, np.arange(70000.0) * world.size)
        world.comm.barrier()


def test_an_exchange_that_fails_raises_its_own_error(comm):
    def broken(mine):
        comm.allgather_object(mine)
        raise RuntimeError("the cable is out")

    if comm.size > 1:
        with pytest.raises(RuntimeError, match="the cable is out"):
            isthmus.World.create_with(comm.rank, comm.size, broken)
        with pytest.raises(ValueError, match="all_gather: there are 0 entries"):
            isthmus.World.create_with(comm.rank, comm.size, lambda mine: [])
        with pytest.raises(ValueError, match="all_gather: entry 0 has 1 bytes"):
            isthmus.World.create_with(comm.rank, comm.size, lambda mine: [b"x"] * comm.size)
    with pytest.raises(isthmus.Error):
        isthmus.World.create_with(comm.size, comm.size, broken)
    comm.barrier()
