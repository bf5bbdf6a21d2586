"""What of a field a stencil may compute while its halos are under way."""
from __future__ import annotations

from ._core import HaloField

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
