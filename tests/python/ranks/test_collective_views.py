"""Collective calls on arrays with gaps: on either side, another one on each rank, beside contiguous ones on others."""
import numpy as np
import pytest

import isthmus

POISON = -7


def numbers(rank, shape, salt=0):
    return np.random.default_rng([rank, salt]).integers(0, 2**40, shape)


def with_gaps(rank, values):
    """The values in an array with or without gaps, by the rank's number, and the memory around it."""
    rows, columns = values.shape
    memory = np.full((2 * rows, 3 * columns), POISON)
    view = [memory[::2, ::3], memory[:rows, 1:1 + columns], memory[rows:, columns:2 * columns]][rank % 3]
    if rank % 4 == 3:
        memory = view = np.full((rows, columns), POISON)
    view[...] = values
    return view, memory


def empty(rank, rows, columns):
    return with_gaps(rank, np.full((rows, columns), POISON))


def expect(view, memory, values):
    """What came, and that nothing else changed."""
    assert np.array_equal(view, values)
    assert np.count_nonzero(memory != POISON) == np.count_nonzero(np.asarray(values) != POISON)


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("rows, columns", [(1, 1), (4, 7), (60, 501)])
def test_arrays_with_gaps_are_sent_and_received_as_they_are(comm, rows, columns, waits):
    rank, size = comm.rank, comm.size
    root = (rows + columns) % size

    def call(name, *arguments, **named):
        if waits:
            getattr(comm, name)(*arguments, **named)
        else:
            getattr(comm, "i" + name)(*arguments, **named).wait()

    mine = numbers(rank, (rows, columns))
    view, memory = with_gaps(rank, mine if rank == root else np.full_like(mine, POISON))
    call("bcast", view, root=root)
    expect(view, memory, numbers(root, (rows, columns)))

    everybody = np.concatenate([numbers(r, (rows, columns)) for r in range(size)])
    own, _ = with_gaps(rank + 1, mine)
    whole, around = empty(rank, size * rows, columns)
    call("gather", own, whole if rank == root else None, root=root)
    if rank == root:
        expect(whole, around, everybody)
    part, around_part = empty(rank + 2, rows, columns)
    call("scatter", whole if rank == root else None, part, root=root)
    expect(part, around_part, mine)

    whole, around = empty(rank + 1, size * rows, columns)
    call("allgather", own, whole)
    expect(whole, around, everybody)
    whole[...] = POISON
    whole[rank * rows:(rank + 1) * rows] = mine
    call("allgather", isthmus.IN_PLACE, whole)
    expect(whole, around, everybody)

    given = numbers(rank, (size * rows, columns), salt=1)
    out, _ = with_gaps(rank, given)
    came, around = empty(rank + 2, size * rows, columns)
    call("alltoall", out, came)
    expect(came, around, np.concatenate([numbers(r, (size * rows, columns), salt=1)[rank * rows:(rank + 1) * rows] for r in range(size)]))


def test_rows_that_cannot_be_cut_are_refused_before_anything_is_sent(comm):
    view, _ = empty(0, 3 * comm.size + 1, 4)
    part, _ = empty(1, 3, 4)
    if comm.size > 1:
        with pytest.raises(ValueError, match="do not fit"):
            comm.allgather(part, view)
        # As many elements as fit, but not as whole rows.
        odd = np.zeros((comm.size + 1, 2 * comm.size))[:, ::2]
        own = np.zeros((odd.size // comm.size, 2))[:, 0]
        with pytest.raises(ValueError, match="rows"):
            comm.allgather(own, odd)
    with pytest.raises(BufferError):
        comm.allgather(part, view, counts=[12] * comm.size)
    with pytest.raises(BufferError):
        comm.allreduce(part, part.copy())


def test_backward_rows_are_not_cut(comm):
    backward = np.zeros((2 * comm.size, 6))[::-1, ::2]
    if comm.size > 1:
        with pytest.raises(ValueError, match="must go up"):
            comm.allgather(np.zeros((2, 3)), backward)
    data = np.arange(6.0) + 100 * comm.rank
    comm.bcast(data[::-1][::2], 0)
    assert np.array_equal(data[::-1][::2], np.array([5.0, 3.0, 1.0]))
