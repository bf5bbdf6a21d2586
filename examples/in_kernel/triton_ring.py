"""Kernels of Triton pass numbers round a ring of GPUs, with no processor between. Run: isthmus run -n 2 python triton_ring.py"""
import sys

import numpy as np

import isthmus

try:
    import triton
    import triton.language as tl
except ImportError as missing:
    sys.exit(print(f"SKIPPED: {missing}"))

COUNT, ROUNDS, LOOKS = 1024, 100, 1 << 22


@triton.jit
def wait(word, wanted, looks, most):
    """Until the own word has that number; `looks` counts over all waits, so that no mistake keeps a GPU for ever."""
    while (tl.atomic_add(word, 0, sem="acquire", scope="sys") < wanted) & (looks < most):
        looks += 1
    tl.debug_barrier()  # one thread has looked for all
    return looks


@triton.jit
def tell(word, number):
    tl.debug_barrier()  # all threads have stored, or loaded, before one of them says so
    tl.atomic_xchg(word, number, sem="release", scope="sys")


@triton.jit(do_not_specialize=["rounds"])
def ring(mine, at_right, words, words_at_right, words_at_left, rounds, count: tl.constexpr, most: tl.constexpr):
    """Addresses: two rows of numbers here and there; two words, `arrived` and `taken`, and a third that says whether time ran out."""
    numbers, there = mine.to(tl.pointer_type(tl.int32)), at_right.to(tl.pointer_type(tl.int32))
    own, right = words.to(tl.pointer_type(tl.int64)), words_at_right.to(tl.pointer_type(tl.int64))
    left = words_at_left.to(tl.pointer_type(tl.int64))
    at, looks = tl.arange(0, count), 0
    for n in range(1, rounds + 1):
        tl.store(there + count + at, tl.load(numbers + at))
        tell(right, n)
        looks = wait(own, n, looks, most)
        tl.store(numbers + at, tl.load(numbers + count + at, volatile=True) + 1)
        tell(left + 1, n)
        looks = wait(own + 1, n, looks, most)
    tl.store(own + 2, looks // most)


def main(world):
    comm = world.comm
    if world.devices("cuda") < comm.size:
        return print("SKIPPED: kernels that wait for each other need a GPU for each rank")
    try:
        import torch  # by which Triton finds the device
    except ImportError as missing:
        return print(f"SKIPPED: {missing}")
    torch.cuda.set_device(comm.rank)
    with comm.heap("cuda", 1 << 20, device=comm.rank) as heap:
        numbers, words = heap.array((2, COUNT), "i4"), heap.array(3, "i8")
        right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        heap.put(numbers, np.full((2, COUNT), 1000 * comm.rank, "i4"), comm.rank)
        there = [numbers.at(right).address, words.address, words.at(right).address, words.at(left).address]
        ring[(1,)](numbers.address, *there, 0, COUNT, LOOKS)  # compiles, which takes one rank longer than another
        torch.cuda.synchronize()
        heap.barrier()
        ring[(1,)](numbers.address, *there, ROUNDS, COUNT, LOOKS)
        torch.cuda.synchronize()
        found, late = np.zeros((2, COUNT), "i4"), np.zeros(3, "i8")
        heap.get(found, numbers, comm.rank)
        heap.get(late, words, comm.rank)
        right = (found[0] == 1000 * ((comm.rank - ROUNDS) % comm.size) + ROUNDS).sum()
        print(f"rank {comm.rank}: {right} of {COUNT} numbers are right, status {2 * late[2]}")
        heap.barrier()


if __name__ == "__main__":
    with isthmus.World() as world:
        main(world)
