"""Kernels of Numba pass numbers round a ring of GPUs, with no processor between. Run: isthmus run -n 2 python numba_ring.py"""
import sys

import numpy as np

import isthmus

try:
    from isthmus import numba_cuda as ist
    from numba import cuda
except ImportError as missing:
    sys.exit(print(f"SKIPPED: {missing}"))

COUNT, ROUNDS, SECOND = 1000, 100, 10**9  # a deadline: with it no mistake keeps a GPU for ever


@cuda.jit
def ring(team, numbers, words, rounds, ended):
    right = (team.pe + 1) % team.pes
    for n in range(1, rounds + 1):
        status = ist.put_signal(team, numbers[1], numbers[0], words, n, right)
        if status == ist.OK:
            status = ist.wait_until(team, words, ist.GE, n, SECOND)
        for i in range(cuda.threadIdx.x, COUNT, cuda.blockDim.x):
            numbers[0, i] = numbers[1, i] + 1
        if status == ist.OK:
            status = ist.barrier(team, SECOND)  # or the next numbers might come before these were read
        if status != ist.OK:
            ended[0] = status
            return


def main(world):
    comm = world.comm
    if world.devices("cuda") < comm.size:
        return print("SKIPPED: kernels that wait for each other need a GPU for each rank")
    cuda.select_device(comm.rank)
    with comm.heap("cuda", 1 << 20, device=comm.rank) as heap:
        numbers, words, ended = heap.array((2, COUNT), "i4"), heap.array(1, "u8"), cuda.to_device(np.zeros(1, "i4"))
        arrays = cuda.as_cuda_array(numbers), cuda.as_cuda_array(words)
        heap.put(numbers, np.full((2, COUNT), 1000 * comm.rank, "i4"), comm.rank)
        ring[1, 128](ist.team(heap), *arrays, 0, ended)  # compiles, which takes one rank longer than another
        heap.barrier()
        ring[1, 128](ist.team(heap), *arrays, ROUNDS, ended)
        cuda.synchronize()
        found = np.zeros((2, COUNT), "i4")
        heap.get(found, numbers, comm.rank)
        right = (found[0] == 1000 * ((comm.rank - ROUNDS) % comm.size) + ROUNDS).sum()
        print(f"rank {comm.rank}: {right} of {COUNT} numbers are right, status {ended.copy_to_host()[0]}")
        heap.barrier()


if __name__ == "__main__":
    with isthmus.World() as world:
        main(world)
