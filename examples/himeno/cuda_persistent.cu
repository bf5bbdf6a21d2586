// All iterations in one kernel for each PE, without the processor: each block computes its cells, stores those of the border straight into
// the neighbours' halos as it computes them, and says so by a flag of its own at each neighbour. Iteration n reads one level, which n - 1
// wrote, and writes the other.
//
// One meeting in an iteration. Before it computes iteration n a block waits until all own blocks have come to the end of n - 1, and blocks of
// the border also until the neighbours' blocks have set their flags to n - 1. That is enough:
// - What it reads, own cells and halos of the level that n - 1 wrote, is there.
// - What it overwrites, own cells and neighbours' halos of the other level, nobody reads any more: that was read in n - 1, own cells by own blocks, which have ended
//   it, and the neighbour's halo by the cells beside it, which are those that the neighbour sent from here: by blocks whose flags say n - 1.
// The border comes first, so that its way over the link is hidden behind the other cells.
//
// The sum over all cells does not hold up anybody: each block leaves its part of it behind, and one more block adds them up one iteration
// later and meets the other PEs.
#include <stdexcept>

#include "common/cuda.hpp"
#include "cuda_quad.cuh"
#include "isthmus/device.cuh"
#include "isthmus/launch.cuh"

namespace himeno {
namespace {

using namespace ist::device;

// Keeps the first one.
__device__ void tell_end(const Persistent& job, Status status, unsigned what, int pe, std::uint64_t iteration) {
  if (atomicCAS(&job.ended->status, 0, static_cast<int>(status)) != 0) return;
  job.ended->block = blockIdx.x;
  job.ended->what = what;
  job.ended->pe = pe;
  job.ended->iteration = iteration;
}

__device__ __forceinline__ Status wait_for_blocks(const Persistent& job, std::uint64_t wanted) {
  Waiter waiter(job.view, job.deadline);
  while (load_acquire_here(job.arrived) < wanted)
    if (const Status status = waiter.vain(); status != Status::ok) return status;
  return Status::ok;
}

// Each thread from the second warp on asks for some of the neighbours' flags.
__device__ __forceinline__ Status wait_for_neighbours(const Persistent& job, std::uint64_t iteration) {
  for (int s = 0; s < job.sides; ++s)
    for (unsigned n = threadIdx.x - 32; n < job.side[s].pushers; n += blockDim.x - 32) {
      const std::uint64_t* const flag = job.flags + static_cast<unsigned>(job.side[s].number) * kMostPushers + n;
      const Status status = wait_until(job.view, flag, Compare::greater_equal, iteration, job.deadline);
      if (status == Status::ok) continue;
      tell_end(job, status, 1, job.side[s].pe, iteration);
      return status;
    }
  return Status::ok;
}

// `done`: iterations of this launch.
__device__ __forceinline__ Status wait_for_all(const Persistent& job, unsigned done, unsigned blocks) {
  Status status = Status::ok;
  if (threadIdx.x == 0) {
    status = wait_for_blocks(job, std::uint64_t{done} * blocks);
    if (status != Status::ok) tell_end(job, status, 0, job.view.pe, job.before + done);
  } else if (threadIdx.x >= 32 && blockIdx.x < job.pushers) {
    status = wait_for_neighbours(job, job.before + done);
  }
  return agreed(Block(), status);
}

// Those of the four cells that lie at a side, into the halo of the neighbour there.
__device__ __forceinline__ void push(const Persistent& job, float* to, const Quad& quad, const Four& four) {
  for (int s = 0; s < job.sides; ++s) {
    const Side& side = job.side[s];
    const auto beside = [&](int d, int at) {
      return side.direction[d] == 0 || at == (side.direction[d] < 0 ? job.inner.first[d] : job.inner.last[d]);
    };
    if (!beside(0, quad.i) || !beside(1, quad.j)) continue;
    Quad there = quad;
    there.at += side.shift;
    if (side.direction[2] != 0) {
      const int at = (side.direction[2] < 0 ? job.inner.first[2] : job.inner.last[2]) - quad.k;
      there.cells &= at >= 0 && at < kQuad ? 1U << at : 0U;
    }
    store(peer_ptr(job.view, to, side.pe), there, four);
  }
}

// The quads with these numbers, every `step`-th; where the first of them lies is known ahead.
template <bool kPushes>
__device__ __forceinline__ double compute(const Persistent& job, const Work& work, const float* from, float* to, Quad quad,
                                          unsigned number, unsigned step) {
  const unsigned quads = work.begin[work.boxes];
  double sum = 0;
  while (number < quads) {
    Four four;
    sum += change(job.shape, job.with, from, quad, four);
    store(to, quad, four);
    if (kPushes) push(job, to, quad, four);
    number += step;
    if (number < quads) quad = quad_of(job.shape, work, number);
  }
  return sum;
}

// By one thread, of what the warps of its block have left.
__device__ __forceinline__ void leave_sum(const Persistent& job, unsigned iteration, unsigned blocks,
                                          const double* of_warp) {
  double sum = 0;
  for (unsigned w = 0; w < blockDim.x / 32; ++w) sum += of_warp[w];
  job.partial[std::uint64_t{iteration} * blocks + blockIdx.x] = sum;
}

__device__ __forceinline__ void arrive(const Persistent& job) {
  fence_here();
  only_sum(job.arrived, std::uint64_t{1});
}

__device__ __forceinline__ void compute_all(const Persistent& job, unsigned blocks) {
  __shared__ double of_warp[2][kMostThreads / 32];
  const unsigned step = blocks * blockDim.x, mine = blockIdx.x * blockDim.x + threadIdx.x;
  // The first blocks have the border's chunks; those of the interior begin behind them.
  const unsigned border_chunks = (job.border.begin[job.border.boxes] + blockDim.x - 1) / blockDim.x,
                 inner_at = (blockIdx.x + blocks - border_chunks % blocks) % blocks * blockDim.x + threadIdx.x;
  const bool pushes = blockIdx.x < job.pushers;
  Quad border_quad{}, inner_quad{};
  if (mine < job.border.begin[job.border.boxes]) border_quad = quad_of(job.shape, job.border, mine);
  if (inner_at < job.interior.begin[job.interior.boxes]) inner_quad = quad_of(job.shape, job.interior, inner_at);
  for (unsigned done = 0; done < job.iterations; ++done) {
    if (wait_for_all(job, done, blocks) != Status::ok) return;
    const std::uint64_t iteration = job.before + done + 1;
    const float* const from = job.p[(iteration + 1) % 2];
    float* const to = job.p[iteration % 2];
    double sum = 0;
    if (pushes) {
      sum = compute<true>(job, job.border, from, to, border_quad, mine, step);
      __syncthreads();
      if (threadIdx.x < static_cast<unsigned>(job.sides)) {
        const Side& side = job.side[threadIdx.x];
        signal(job.view, job.flags + static_cast<unsigned>(side.opposite) * kMostPushers + blockIdx.x, iteration,
               Signal::set, side.pe);
      }
    }
    sum += compute<false>(job, job.interior, from, to, inner_quad, inner_at, step);
    __syncthreads();
    if (threadIdx.x == 0) arrive(job);
    // While the others are on their way: the sum of the iteration before goes out with the next arrival, this one waits.
    if (threadIdx.x == 32 && done > 0) leave_sum(job, done - 1, blocks, of_warp[(done + 1) % 2]);
    sum = sum_of_warp(sum);
    if (threadIdx.x % 32 == 0) of_warp[done % 2][threadIdx.x / 32] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 32) leave_sum(job, job.iterations - 1, blocks, of_warp[(job.iterations - 1) % 2]);
  __syncthreads();
  if (threadIdx.x == 0) arrive(job);
}

// By one warp.
__device__ __forceinline__ void sum_all(const Persistent& job, unsigned blocks) {
  const Warp crew;
  Calls<Warp> calls(crew, job.view);
  for (unsigned n = 0; n < job.iterations; ++n) {
    // What belongs to iteration n went out with the arrival after the next; after the last one there is one more.
    const std::uint64_t arrivals = n + 3 < job.iterations + 1 ? n + 3 : job.iterations + 1;
    Status status = Status::ok;
    if (crew.thread == 0) status = wait_for_blocks(job, arrivals * blocks);
    status = agreed(crew, status);
    double sum = 0;
    if (status == Status::ok)
      for (unsigned b = crew.thread; b < blocks; b += crew.threads)
        sum += __ldcg(job.partial + std::uint64_t{n} * blocks + b);
    sum = sum_of_warp(sum);
    if (crew.thread == 0) job.sums[n] = sum;
    crew.sync();
    if (status == Status::ok) status = calls.allreduce<Sum>(job.sums + n, job.sums + n, 1, job.deadline);
    if (status == Status::ok) continue;
    if (crew.thread == 0) tell_end(job, status, 2, job.view.pe, job.before + n + 1);
    return;
  }
}

__global__ void __launch_bounds__(kMostThreads, 2) iterate_kernel(const __grid_constant__ Persistent job) {
  const unsigned blocks = gridDim.x - 1;
  if (*static_cast<volatile int*>(&job.ended->status) != 0) return;  // an earlier launch has ended in vain
  if (blockIdx.x < blocks)
    compute_all(job, blocks);
  else if (threadIdx.x < 32)
    sum_all(job, blocks);
}

void must(const Launch& launch) {
  if (!launch.ok()) throw std::runtime_error("--exchange kernel: " + launch.text);
}

}  // namespace

unsigned most_blocks(unsigned threads) {
  Room room;
  must(room_for(iterate_kernel, threads, 0, 0, &room));
  return static_cast<unsigned>(room.blocks());
}

void iterate(cudaStream_t stream, const Persistent& job, unsigned blocks, unsigned threads) {
  must(launch_grid(iterate_kernel, blocks + 1, threads, 0, stream, 0, job));
}

}  // namespace himeno
