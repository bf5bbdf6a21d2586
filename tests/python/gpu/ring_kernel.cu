// Compiled by NVRTC: what tests of kernels in Python run, one block of each PE. Each epoch: a put with a signal to the right, packets both
// ways, a sum over all PEs, an addition at PE 0, and a barrier.
#include "isthmus/device.cuh"

using namespace ist::device;

constexpr unsigned long long kDeadline = 4000000000ull;  // ns
constexpr unsigned kBytes = 4096;
constexpr unsigned kFew = 64;

__device__ unsigned char value_of(int pe, int epoch, unsigned at) { return (unsigned char)(pe * 37 + epoch * 11 + at * 7); }

// `data`: four times kBytes of the heap; `words`: two of its words, zero; `wrong`: counts, in memory of this device.
extern "C" __global__ void ring(const ist_team_view view, unsigned char* data, unsigned long long* words, int epochs,
                                unsigned long long* wrong) {
  const Block crew;
  const int right = (view.pe + 1) % view.pes;
  const int left = (view.pe + view.pes - 1) % view.pes;
  long long* const sums = (long long*)(data + 3 * kBytes);
  Meeting<Block> meeting(crew, view);
  Channel<Block> to(crew, view, right, 0);
  Channel<Block> from(crew, view, left, 0);
  for (int n = 1; n <= epochs; ++n) {
    for (unsigned i = crew.thread; i < kBytes; i += crew.threads) data[i] = value_of(view.pe, n, i);
    __syncthreads();
    put_signal(crew, view, data + kBytes, data, kBytes, words, (unsigned long long)n, Signal::set, right);
    Status status = Status::ok;
    if (crew.thread == 0) status = wait_until(view, words, Compare::greater_equal, (unsigned long long)n, kDeadline);
    if (agreed(crew, status) != Status::ok) return (void)atomicAdd(wrong, 1000000ull);
    const volatile unsigned char* const come = data + kBytes;
    for (unsigned i = crew.thread; i < kBytes; i += crew.threads)
      if (come[i] != value_of(left, n, i)) atomicAdd(wrong, 1ull);
    if (to.send(data, kFew, n, kDeadline) != Status::ok) return (void)atomicAdd(wrong, 1000000ull);
    if (from.receive(data + 2 * kBytes, kFew, n, kDeadline) != Status::ok) return (void)atomicAdd(wrong, 1000000ull);
    __syncthreads();
    for (unsigned i = crew.thread; i < kFew; i += crew.threads)
      if (((const volatile unsigned char*)data)[2 * kBytes + i] != value_of(left, n, i)) atomicAdd(wrong, 1ull);
    if (crew.thread == 0) sums[0] = view.pe + n;
    __syncthreads();
    if (allreduce<Sum>(crew, view, sums + 1, sums, 1, kDeadline) != Status::ok) return (void)atomicAdd(wrong, 1000000ull);
    __syncthreads();
    if (crew.thread == 0 && sums[1] != (long long)view.pes * n + view.pes * (view.pes - 1) / 2) atomicAdd(wrong, 1ull);
    if (crew.thread == 0) atomic_add(view, words + 1, 3ull, 0);
    if (meeting.meet(kDeadline) != Status::ok) return (void)atomicAdd(wrong, 1000000ull);
  }
}
