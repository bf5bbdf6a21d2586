"""Halo exchanges of arrays: every cell says which one it is, in every order in memory, and with halos that differ on both sides."""
import itertools

import numpy as np
import pytest

import isthmus
from devices import Driver, InterfaceArray, Stream

POISON = -7


def cut(grid, inner, halo):
    """An index array for each dimension: the global numbers of all cells of this rank, halos included, and which are of whom."""
    numbers = []
    for length, coord, ranks, periodic, (minus, plus) in zip(inner, grid.coords, grid.dims, grid.periods, halo):
        own = np.arange(coord * length - minus, (coord + 1) * length + plus)
        total = ranks * length
        known = np.full(own.shape, True) if periodic else (own >= 0) & (own < total)
        numbers.append((own % total, known, (own >= coord * length) & (own < (coord + 1) * length)))
    return numbers


def pictures(numbers, dtype, what):
    """What is there before, and what has to be there afterwards."""
    cells = np.meshgrid(*(number for number, _, _ in numbers), indexing="ij")
    known = np.logical_and.reduce(np.meshgrid(*(k for _, k, _ in numbers), indexing="ij"))
    own = np.logical_and.reduce(np.meshgrid(*(o for _, _, o in numbers), indexing="ij"))
    value = np.full(known.shape, what)
    for cell in cells:
        value = value * 37 + cell
    value = value.astype(dtype)
    poison = np.array(POISON).astype(dtype)
    return np.where(own, value, poison), np.where(known, value, poison)


def arranged(array, order):
    """The same array, in memory by that layout map."""
    by_stride = np.argsort(order)
    return np.ascontiguousarray(array.transpose(by_stride)).transpose(np.argsort(by_stride))


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("packing", ["auto", "calls", "layouts", "loops"])
def test_three_dimensions_in_every_order(comm, order, packing):
    halo = [(1, 2), (0, 1), (2, 0)]
    grid = comm.halo_grid([0, 0, 1], [True, False, True], [1, 0, 2])
    numbers = cut(grid, [3, 4, 2], halo)
    arrays, expected = [], []
    for what, dtype in enumerate(["f8", "i2", "c16"]):
        before, after = pictures(numbers, dtype, what)
        arrays.append(arranged(before, order))
        expected.append(after)
    fields = [isthmus.HaloField(array, halo) for array in arrays]
    assert fields[0].layout_map == list(order)
    exchange = grid.halo(fields, packing=packing)
    exchange.update()
    for array, after in zip(arrays, expected):
        assert np.array_equal(array, after)
    assert "3 fields" in exchange.text


def test_steps_turns_and_cells_of_several_numbers(comm):
    halo = [(1, 1), (1, 1)]
    grid = comm.halo_grid([comm.size, 1], [True, True])
    numbers = cut(grid, [4, 3], halo)
    levels = [np.empty((6, 5, 3), "f4") for _ in range(2)]
    exchange = grid.halo([isthmus.HaloField(levels[0], halo)], reach=1)
    for time in range(4):
        array = levels[time % 2]
        after = np.empty_like(array)
        for part in range(3):
            array[..., part], after[..., part] = pictures(numbers, "f4", 100 * time + part)
        # Corners are beyond reach.
        for corner in itertools.product((0, -1), repeat=2):
            after[corner] = POISON
        exchange.set_fields([isthmus.HaloField(array, halo)])
        exchange.pack()
        exchange.start_exchange()
        exchange.wait()
        exchange.unpack()
        assert np.array_equal(array, after)


def test_one_sided(comm):
    halo = [(2, 1)]
    grid = comm.halo_grid([0], [True])
    before, after = pictures(cut(grid, [5], halo), "i8", 3)
    exchange = grid.halo([isthmus.HaloField(before, halo)], way="one-sided")
    exchange.update()
    assert np.array_equal(before, after)
    exchange.free()
    with pytest.raises(isthmus.Error):
        exchange.update()


def test_memory_of_every_kind(comm, world):
    halo = [(1, 1, 2, 4), (0, 1)]
    grid = comm.halo_grid([0, 1], [True, True])
    numbers = cut(grid, [3, 3], [(1, 1), (0, 1)])
    before, after = pictures(numbers, "i4", 5)
    # One row in front, and one behind, belong to nobody.
    before, after = (np.concatenate([np.full((1, 4), POISON, "i4"), part, np.full((1, 4), POISON, "i4")]) for part in (before, after))
    for kind in ("host", "cuda", "opencl"):
        if world.devices(kind) == 0:
            continue
        memory = world.allocate(kind, before.nbytes)
        world.copy(memory, before)
        exchange = grid.halo([isthmus.HaloField(memory, halo, shape=before.shape, itemsize=4)])
        exchange.update()
        found = np.empty_like(after)
        world.copy(found, memory)
        assert np.array_equal(found, after), kind
        del exchange


def test_sweeps_in_two_cover_each_inner_cell_once(comm):
    for shape, halo in (((9, 8), [(1, 2), (2, 0)]), ((5, 6, 4), [(1, 1)] * 3), ((4, 9), [(1, 2), (1, 1, 3, 4)]), ((3, 3), [(1, 2), (1, 1)])):
        field = isthmus.HaloField(np.zeros(shape), halo)
        interior, border = isthmus.halo_split(field)
        seen = np.zeros(shape, int)
        for box in border:
            seen[box] += 1
        expected, inside = np.zeros(shape, int), np.zeros(shape, int)
        expected[tuple(slice(begin, end + 1) for _, _, begin, end, _ in field.ranges)] = 1
        inside[tuple(slice(begin + minus, max(end + 1 - plus, begin + minus)) for minus, plus, begin, end, _ in field.ranges)] = 1
        assert (interior is None) == (inside.sum() == 0)
        if interior is not None:
            seen[interior] += 1
            assert np.array_equal(inside, np.isin(np.arange(inside.size).reshape(shape), np.arange(inside.size).reshape(shape)[interior]))
        assert np.array_equal(seen, expected)


def test_a_sweep_in_two_has_its_interior_before_the_halos_come_and_its_border_behind(comm):
    grid = comm.halo_grid([0], [True])
    for inner in (6, 2, 1):  # the last two have no interior
        field = np.full(inner + 2, -1.0)
        field[1:-1] = comm.rank
        given = isthmus.HaloField(field, [(1, 1)])
        boxes = []

        def sweep(box):
            boxes.append((box[0].start, box[0].stop, field[0], field[-1]))

        isthmus.halo_overlap(grid.halo([given]), given, sweep)
        before, behind = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
        border = [(1, 2, before, behind)] + ([(inner, inner + 1, before, behind)] if inner > 1 else [])
        assert boxes == ([(2, inner, -1, -1)] if inner > 2 else []) + border


@pytest.mark.parametrize("way", ["messages", "one-sided"])
@pytest.mark.parametrize("count", [2, 3])
def test_levels_take_turns_and_bring_their_halos(comm, way, count):
    """Each step adds both neighbours' cells: binomials, whichever ranks have the cells."""
    grid = comm.halo_grid([0], [True])
    cells, steps = 5 * comm.size + 1, 4
    (begin, end), = isthmus.halo_bounds(grid, [cells])
    levels = [np.full(end - begin + 2, -1, "i8") for _ in range(count)]
    levels[0][1:-1] = np.arange(begin, end) == 2
    whole = (np.arange(cells) == 2).astype("i8")
    order = []

    def sweep(box, now, then):
        order.append(next(number for number, level in enumerate(levels) if level is now))
        then[box] = now[isthmus.halo_shift(box, 0, -1)] + now[isthmus.halo_shift(box, 0, 1)]

    with isthmus.HaloLevels(grid, levels, way=way) as turns:
        for step in range(steps):
            turns.step(sweep)
            whole = np.roll(whole, 1) + np.roll(whole, -1)
            assert turns.now is levels[(step + 1) % count] and order[-1] == step % count
            assert np.array_equal(turns.now[1:-1], whole[begin:end])
        assert "rank" in turns.halo.text
    with pytest.raises(ValueError, match="at least two"):
        isthmus.HaloLevels(grid, levels[:1])


def test_bounds_share_all_cells_and_shifts_move_one_dimension(comm):
    grid = comm.halo_grid([0, 1])
    bounds = comm.allgather_object(isthmus.halo_bounds(grid, [7 * comm.size + 3, 4]))
    assert [first for (first, _), _ in bounds] == [0] + [last for (_, last), _ in bounds][:-1]
    assert bounds[-1][0][1] == 7 * comm.size + 3 and all(other == (0, 4) for _, other in bounds)
    with pytest.raises(ValueError, match="the grid has 2"):
        isthmus.halo_bounds(grid, [1])
    assert isthmus.halo_shift((slice(2, 5), slice(1, 3)), 1, -1) == (slice(2, 5), slice(0, 2))


def driver_for(what):
    try:
        return Driver()
    except OSError as why:
        pytest.skip(f"not covered here: {what} ({why})")


def test_an_array_that_names_a_stream_by_now_is_waited_for(comm):
    """It named none when the halo was made: nothing was pending then."""
    driver = driver_for("streams of CUDA")
    grid = comm.halo_grid([0, 1], [True, True])
    before, after = pictures(cut(grid, [3, 4], [(1, 1), (1, 0)]), "i4", 3)
    array = InterfaceArray(driver, np.full_like(before, POISON))
    array.named_stream = None
    exchange = grid.halo([isthmus.HaloField(array, [(1, 1), (1, 0)])])
    exchange.update()
    array.named_stream, array.staged = 1, before
    driver.late(0, 100000)
    driver.copy(array.address, before.ctypes.data, before.nbytes, 0)
    exchange.update()
    assert np.array_equal(array.get(), after)
    comm.barrier()


def test_in_a_stream(comm):
    """Behind work that comes late, without a wait of the processor; two arrays take turns, and bytes of kernels' sides are of the struct's length."""
    driver = driver_for("halos in CUDA streams")
    grid = comm.halo_grid([0, 1], [True, True])
    numbers = cut(grid, [3, 4], [(1, 1), (1, 0)])
    stream = driver.stream()
    pairs, fields = [], []
    for what in (3, 4):
        before, after = pictures(numbers, "i4", what)
        pairs.append((InterfaceArray(driver, np.full_like(before, POISON), stream), before, after))
        fields.append(isthmus.HaloField(pairs[-1][0], [(1, 1), (1, 0)]))
    exchange = grid.halo([fields[0]])
    exchange.prepare_on(Stream(stream))
    for (array, before, after), field in zip(pairs * 2, fields * 2):
        exchange.set_fields([field])
        array.fill_late(before, 20000)
        exchange.exchange_on(Stream(stream))
        driver.wait(stream)
        assert np.array_equal(array.get(), after)
    with pytest.raises(TypeError, match="a CUDA stream is wanted"):
        exchange.exchange_on("stream")
    host = np.zeros((5, 5), "i4")
    with pytest.raises(isthmus.Error, match="^exchange_on: "):
        grid.halo([isthmus.HaloField(host, [(1, 1), (1, 0)])]).exchange_on(stream)
    assert len(grid.sides(fields[0])) == len(grid.sides(fields[0], reach=1)) > 0
    assert grid.sides(fields[0]) != grid.sides(fields[0], reach=1)
    assert len(grid.all_sides(fields[0])) == 744 and grid.all_sides(fields[0]) != grid.all_sides(fields[0], reach=1)
    with pytest.raises(isthmus.Error, match="2"):
        grid.sides(isthmus.HaloField(np.zeros(7), [(1, 1)]))


def test_an_order_of_ranks(comm):
    ordered = comm.halo_order([0, 0], [True, True], np.zeros(1000))
    assert ordered.size == comm.size
    assert ordered.halo_grid([0, 0]).dims == comm.halo_grid([0, 0]).dims


def test_lists(comm):
    """Everybody's row 2 and 0 go to the next rank, into its last two rows."""
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    rows = np.full((6, 3), comm.rank, "f8") + np.arange(6)[:, None] * 100
    more = np.full(6, comm.rank, "u2")
    expected = rows.copy()
    expected[4], expected[5] = before + 200, before
    lists = {after: ([2, 0], []), before: ([], [4, 5])} if after != before else {after: ([2, 0], [4, 5])}
    exchange = comm.halo_lists(lists, [rows, more])
    exchange.update()
    assert np.array_equal(rows, expected)
    assert list(more) == [comm.rank] * 4 + [before] * 2
    with pytest.raises(isthmus.Error, match="has 6 elements, and element 6 is listed"):
        comm.halo_lists({after: ([6], [])}, [rows])
    # One rank alone has it wrong, and all are told.
    with pytest.raises(isthmus.Error, match="rank 0: field 0 has 6 elements, and element 7 is listed"):
        comm.halo_lists({after: ([7 if comm.rank == 0 else 1], []), **({before: ([], [])} if before != after else {})}, [rows])


def test_lists_of_rows_that_do_not_lie_one_behind_the_other(comm):
    """Of an array in Fortran's order element i is no row; of one column, or one row, the orders are the same."""
    for order, extents in (("F", (6, 3)), ("F", (4, 3, 2))):
        with pytest.raises(ValueError, match="where rows lie one behind the other; give an array in C's order"):
            comm.halo_lists({comm.rank: ([2], [0])}, [np.zeros(extents, order=order)])
    for extents in ((6, 1), (6,), (6, 1, 1)):
        rows = np.arange(6.0).reshape(extents).copy(order="F")
        comm.halo_lists({comm.rank: ([2, 5], [0, 1])}, [rows]).update()
        assert list(rows.ravel()) == [2, 5, 2, 3, 4, 5]
    rows = np.arange(12.0).reshape(2, 6)
    comm.halo_lists({comm.rank: ([1], [0])}, [rows]).update()
    assert np.array_equal(rows, [np.arange(6, 12)] * 2)


def test_what_cannot_be(comm):
    grid = comm.halo_grid([comm.size], [True])
    assert (grid.ndims, grid.dims, grid.periods, grid.coords) == (1, [comm.size], [True], [comm.rank])
    assert grid.neighbour([1]) == (comm.rank + 1) % comm.size
    array = np.zeros((8, 8), "f4")
    with pytest.raises(ValueError, match="would leave no gaps"):
        isthmus.HaloField(array[:, ::2], [(1, 1), (1, 1)])
    with pytest.raises(ValueError, match="3 numbers"):
        isthmus.HaloField(array, [(1, 1, 1), (1, 1)])
    with pytest.raises(ValueError, match="1 dimensions"):
        isthmus.HaloField(array[0], [(1, 1), (1, 1)])
    with pytest.raises(ValueError, match="the shape is of 1024 bytes"):
        isthmus.HaloField(array, [(1, 1)], shape=[256])
    with pytest.raises(TypeError, match=r"make an isthmus.HaloField of it.*isthmus.HaloField\(array, \[\(1, 1\), \(1, 1\)\]\)"):
        grid.halo([array])
    for shape in ([-8, -8], [2**62, 4]):
        with pytest.raises(ValueError, match="negative or larger than memory"):
            isthmus.HaloField(array, [(1, 1), (1, 1)], shape=shape)
    with pytest.raises(ValueError, match="packing is 'quick'"):
        grid.halo([], packing="quick")
    with pytest.raises(isthmus.Error, match="thinner than the halo"):
        grid.halo([isthmus.HaloField(np.zeros(4), [(1, 2)])])
    with pytest.raises(isthmus.Error, match="give as many"):
        comm.halo_grid([comm.size], [True, False])
    alone = comm.halo_grid([1])
    assert (alone is None) == (comm.rank > 0)


def test_a_field_has_as_many_ranges_as_the_grid_has_dimensions(comm):
    """The library reads one range, and one entry of the layout map, for each of them: with fewer it would read beyond, with more the wrong ones."""
    grid = comm.halo_grid([0, 1], [True, True])
    flat, solid = np.zeros((6, 6)), np.zeros((6, 6, 6))
    fits = isthmus.HaloField(flat, [(1, 1), (1, 1)])
    exchange = grid.halo([fits])
    for ranges, words in (([(1, 1)], "1 range"), ([(1, 1)] * 3, "3 ranges")):
        wrong = isthmus.HaloField(solid, ranges)
        with pytest.raises(ValueError, match=f"^field 0 has {words}, the grid has 2 dimensions"):
            grid.halo([wrong])
        with pytest.raises(ValueError, match=f"^field 1 has {words}, the grid has 2 dimensions"):
            grid.halo([fits, wrong])
        with pytest.raises(ValueError, match=f"^field 0 has {words}, the grid has 2 dimensions"):
            exchange.set_fields([wrong])
        with pytest.raises(ValueError, match=f"^field 0 has {words}, the grid has 2 dimensions"):
            isthmus.HaloLevels(grid, [solid, solid.copy()], ranges)
    for layout_map in ([], [0], [0, 1, 2]):
        with pytest.raises(ValueError, match=f"the layout map has {len(layout_map)} entries for 2 dimensions"):
            isthmus.HaloField(flat, [(1, 1), (1, 1)], layout_map=layout_map)
    listed = comm.halo_lists({comm.rank: ([1], [0])}, [flat])
    with pytest.raises(ValueError, match="^field 0 has 2 ranges, and where cells are listed a field has one"):
        listed.set_fields([fits])
    exchange.update()  # the field before


def test_one_width_is_that_of_all_sides(comm):
    field = isthmus.HaloField(np.zeros((6, 7)), 2)
    assert field.ranges == [[2, 2, 2, 3, 6], [2, 2, 2, 4, 7]]
    grid = comm.halo_grid([0, 1], [True, True])
    before, after = pictures(cut(grid, [3, 4], [(1, 1)] * 2), "f8", 1)
    grid.halo([isthmus.HaloField(before, 1)]).update()
    assert np.array_equal(before, after)
    with pytest.raises(ValueError, match="^field 0 has 3 ranges, the grid has 2 dimensions"):
        grid.halo([isthmus.HaloField(np.zeros((3, 3, 3)), 1)])


def test_a_step_out_of_order_is_named_as_it_was_called(comm):
    exchange = comm.halo_grid([0], [True]).halo([isthmus.HaloField(np.zeros(6), [(1, 1)])])
    for name in ("wait", "test", "exchange", "start_exchange", "unpack"):
        with pytest.raises(isthmus.Error, match=f"^{name}: called where pack comes next; the order is pack, exchange"):
            getattr(exchange, name)()
    exchange.update()


def test_levels_are_different_arrays(comm):
    grid = comm.halo_grid([0], [True])
    first, second = np.zeros(6), np.zeros(6)
    for arrays, which in (([first, first], "0 and 1"), ([first, second, first], "0 and 2")):
        with pytest.raises(ValueError, match=f"arrays {which} are the same one"):
            isthmus.HaloLevels(grid, arrays)
