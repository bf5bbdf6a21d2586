"""Every rank passes numbers to the next, in memory of the best kind there is. Run: isthmus run -n 2 python hello.py"""
from array import array

import isthmus

COUNT = 1 << 20

with isthmus.World() as world:
    comm = world.comm
    kind = next(kind for kind in ("cuda", "opencl", "host") if world.devices(kind) > 0)
    numbers = array("i", [comm.rank + 100]) * COUNT
    out, into = (world.allocate(kind, 4 * COUNT) for _ in range(2))

    world.copy(out, numbers)
    status = comm.sendrecv(out, (comm.rank + 1) % comm.size, into, send_tag=7, recv_tag=7)
    world.copy(numbers, into)

    right = numbers.count(status.source + 100)
    print(f"rank {comm.rank}: {right} of {COUNT} numbers from rank {status.source} are right")
    del out, into
