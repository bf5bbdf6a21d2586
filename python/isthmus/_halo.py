"""What of a field a stencil may compute while its halos are under way."""
from __future__ import annotations

from collections.abc import Callable

from ._core import Halo, HaloField

Slices = tuple[slice, ...]


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
