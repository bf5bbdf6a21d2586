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
    waves = [xp.cos(2 * math.pi / CELLS * xp.arange(begin - 1, end + 1)) for begin, end in isthmus.halo_bounds(grid, [CELLS] * 3)]
    start = waves[0][:, None, None] * waves[1][:, None] * waves[2]
    levels = isthmus.HaloLevels(grid, [start.copy(), start.copy()], halo=1, reach=1)  # the stencil reads faces alone

    def sweep(box, now, then):
        beside = sum(now[isthmus.halo_shift(box, axis, by)] for axis in range(3) for by in (-1, 1))
        then[box] = now[box] + FLOW * (beside - 6 * now[box])

    for _ in range(STEPS):
        levels.step(sweep)  # the interior hides the exchange

    shrunk = (1 + 6 * FLOW * (math.cos(2 * math.pi / CELLS) - 1)) ** STEPS
    error = abs(levels.now - shrunk * start)[1:-1, 1:-1, 1:-1]
    print(f"rank {world.comm.rank}: {error.size} cells of {xp.__name__} are {'right' if error.max() < 1e-12 else 'wrong'}")
