"""Heat in a periodic box that is cut over all ranks; a wave keeps its shape, so that every cell is known.
Run: isthmus run -n 4 python heat3d.py, or heat3d.py cupy, which keeps the box on GPUs."""
import math
import sys

import isthmus

xp = __import__(sys.argv[1] if sys.argv[1:] else "numpy")  # numpy, or cupy
CELLS, STEPS, FLOW = 24, 50, 0.1

with isthmus.World() as world:
    if xp.__name__ == "cupy":
        xp.cuda.Device(world.comm.local_rank % world.devices("cuda")).use()
    grid = world.comm.halo_grid([0, 0, 0], [True, True, True])
    bounds = [(CELLS * c // r, CELLS * (c + 1) // r) for c, r in zip(grid.coords, grid.dims)]
    axes = [xp.cos(2 * math.pi / CELLS * xp.arange(first - 1, last + 1)) for first, last in bounds]
    start = axes[0][:, None, None] * axes[1][None, :, None] * axes[2][None, None, :]

    now, then = start.copy(), xp.zeros_like(start)
    fields = {id(level): isthmus.HaloField(level, [(1, 1)] * 3) for level in (now, then)}
    halo = grid.halo([fields[id(now)]], reach=1)      # the stencil reads faces alone

    def sweep(box):
        beside = [tuple(slice(s.start + by * (a == axis), s.stop + by * (a == axis)) for a, s in enumerate(box))
                  for axis in range(3) for by in (-1, 1)]
        then[box] = now[box] + FLOW * (sum(now[each] for each in beside) - 6 * now[box])

    for _ in range(STEPS):
        halo.set_fields([fields[id(now)]])
        isthmus.halo_overlap(halo, fields[id(now)], sweep)      # the interior hides the exchange
        now, then = then, now

    shrunk = (1 + 6 * FLOW * (math.cos(2 * math.pi / CELLS) - 1)) ** STEPS
    inner = (slice(1, -1),) * 3
    worst = abs(now - shrunk * start)[inner].max()
    print(f"rank {world.comm.rank}: {now[inner].size} cells of {xp.__name__} are {'right' if worst < 1e-12 else 'wrong'}")
