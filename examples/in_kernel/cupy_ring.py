"""Kernels that CuPy compiles pass numbers round a ring of GPUs, with no processor between. Run: isthmus run -n 2 python cupy_ring.py"""
import sys

import numpy as np

import isthmus

try:
    import cupy
except ImportError as missing:
    sys.exit(print(f"SKIPPED: {missing}"))

COUNT, ROUNDS = 1000, 100
SOURCE = """
#include "isthmus/device.cuh"
using namespace ist::device;
constexpr unsigned long long kSecond = 1000000000;  // a deadline: with it no mistake keeps a GPU for ever

extern "C" __global__ void ring(const ist_team_view view, int* numbers, unsigned long long* word, int count, int rounds, int* ended) {
  const Block crew;
  const int right = (view.pe + 1) % view.pes;
  Status status = Status::ok;
  for (unsigned long long n = 1; n <= rounds && status == Status::ok; ++n) {
    put_signal(crew, view, numbers + count, numbers, count * sizeof(int), word, n, Signal::set, right);
    if (crew.thread == 0) status = wait_until(view, word, Compare::greater_equal, n, kSecond);
    status = agreed(crew, status);
    for (int i = crew.thread; i < count; i += crew.threads) numbers[i] = numbers[count + i] + 1;
    if (status == Status::ok) status = barrier(crew, view, kSecond);  // or the next numbers might come before these were read
  }
  if (crew.thread == 0) *ended = (int)status;
}
"""


def main(world):
    comm = world.comm
    if world.devices("cuda") < comm.size:
        return print("SKIPPED: kernels that wait for each other need a GPU for each rank")
    with cupy.cuda.Device(comm.rank), comm.heap("cuda", 1 << 20, device=comm.rank) as heap:
        array, word = heap.array((2, COUNT), "i4"), heap.array(1, "u8")
        numbers, ended = cupy.asarray(array), cupy.full(1, -1, "i4")  # the same memory as the heap's
        numbers[0] = 1000 * comm.rank
        kernel = cupy.RawKernel(SOURCE, "ring", ("-std=c++17", "-I" + isthmus.get_include()))
        kernel.compile()  # takes one rank longer than another
        cupy.cuda.Device().synchronize()
        heap.barrier()
        # A structure, by value: the team of a view for kernels, also where no atomic operations cross the links, since this stores and waits alone.
        view = np.frombuffer(heap.device_view()[:56], "V56")
        kernel((1,), (128,), (view, numbers, cupy.asarray(word), np.int32(COUNT), np.int32(ROUNDS), ended))
        right = int((numbers[0] == 1000 * ((comm.rank - ROUNDS) % comm.size) + ROUNDS).sum())
        print(f"rank {comm.rank}: {right} of {COUNT} numbers are right, status {int(ended[0])}")
        heap.barrier()


if __name__ == "__main__":
    with isthmus.World() as world:
        main(world)
