"""What of a field a stencil may compute while its halos are under way, and arrays that take turns."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ._core import Halo, HaloField, HaloGrid

Slices = tuple[slice, ...]


def halo_bounds(grid: HaloGrid, cells: Sequence[int]) -> list[tuple[int, int]]:
    """Which of so many cells in each dimension are this rank's, where all ranks of the grid share them alike: the first one, and the one behind
    the last."""
    if len(cells) != grid.ndims:
        raise ValueError(f"halo_bounds: there are cells of {len(cells)} dimensions; the grid has {grid.ndims}")
    return [(all_of * place // ranks, all_of * (place + 1) // ranks) for all_of, place, ranks in zip(cells, grid.coords, grid.dims)]


def halo_shift(box: Slices, axis: int, by: int) -> Slices:
    """The same box as many cells further along one dimension: what a stencil reads beside `box`."""
    return tuple(slice(part.start + by, part.stop + by) if number == axis else part for number, part in enumerate(box))


def halo_split(field: HaloField) -> tuple[Slices | None, list[Slices]]:
    """The inner cells of a HaloField in two: index slices of those whose stencil (the halo's widths) stays among inner cells, or None
    where there are none, and a list of slices with the rest; each cell is in one of them.

    halo.pack(); halo.start_exchange()
    sweep(interior)
    halo.wait(); halo.unpack()
    for box in border: sweep(box)
    """
    rest: list[list[int]] = [[begin, end + 1] for _, _, begin, end, _ in field.ranges]
    border = []
    for dimension, (minus, plus, begin, end, _) in enumerate(field.ranges):
        low = min(begin + minus, end + 1)
        high = max(end + 1 - plus, low)
        for first, last in ((begin, low), (high, end + 1)):
            box = [*rest[:dimension], [first, last], *rest[dimension + 1:]]
            if all(start < stop for start, stop in box):
                border.append(tuple(slice(start, stop) for start, stop in box))
        rest[dimension] = [low, high]
    whole = all(start < stop for start, stop in rest)
    return tuple(slice(start, stop) for start, stop in rest) if whole else None, border


def halo_overlap(halo: Halo, field: HaloField, sweep: Callable[[Slices], object]) -> None:
    """A sweep over all inner cells of a field whose halos `halo` brings, as pack() to unpack() do: sweep(box) is called with index slices, first
    with those of halo_split()'s interior, while the exchange is under way, and behind it with those at the border. It reads the field as far as
    the halo is wide, and writes another array."""
    interior, border = halo_split(field)
    halo.pack()
    halo.start_exchange()
    if interior is not None:
        sweep(interior)
    halo.wait()
    halo.unpack()
    for box in border:
        sweep(box)


class HaloLevels:
    """Arrays of one shape that take turns, as levels of time do: each step sweeps from one into the next, behind halos that it brings itself.

    levels = isthmus.HaloLevels(grid, [first, second], halo=1)
    for _ in range(steps): levels.step(sweep)

    halo: a width for both sides of all dimensions, or what HaloField takes. options: those of HaloGrid.halo. Collective over the grid, as is
    free() of a one-sided exchange; a with statement calls it at its end, but for an error's, behind which it is freed with the world."""

    def __init__(self, grid: HaloGrid, arrays: Iterable[object], halo: int | Sequence[Sequence[int]] = 1, *, reach: int = 0,
                 packing: str = "auto", way: str = "messages") -> None:
        widths = [(halo, halo)] * grid.ndims if isinstance(halo, int) else halo
        self._fields = [HaloField(array, widths) for array in arrays]
        if len(self._fields) < 2:
            raise ValueError(f"HaloLevels: there are {len(self._fields)} arrays; give at least two, which take turns")
        seen: dict[int, int] = {}
        for number, field in enumerate(self._fields):
            first = seen.setdefault(id(field.array), number)
            if first != number:
                raise ValueError(f"HaloLevels: arrays {first} and {number} are the same one, which a step would read and overwrite at once; "
                                 "give each level an array of its own")
        self._halo = grid.halo(self._fields[:1], reach=reach, packing=packing, way=way)

    @property
    def now(self) -> object:
        """The array that the last step wrote, without the halos that the next one brings; before the first, the first one."""
        return self._fields[0].array

    @property
    def halo(self) -> Halo:
        """The exchange."""
        return self._halo

    def step(self, sweep: Callable[[Slices, object, object], object]) -> None:
        """sweep(box, now, then) for all inner cells, as halo_overlap() calls it: reads `now` as far as the halo is wide, and writes box of `then`,
        which is what `now` is afterwards."""
        now, then = self._fields[0], self._fields[1]
        self._halo.set_fields([now])
        halo_overlap(self._halo, now, lambda box: sweep(box, now.array, then.array))
        self._fields.append(self._fields.pop(0))

    def free(self) -> None:
        """Collective where the exchange is one-sided."""
        self._halo.free()

    def __enter__(self) -> HaloLevels:
        return self

    def __exit__(self, error: object, *rest: object) -> None:
        if error is None:
            self.free()
