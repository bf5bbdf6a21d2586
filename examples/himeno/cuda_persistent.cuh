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
// Where the box is cut along i alone there are no flags: the planes travel in packets that say of which iteration they are, and the threads that need them
// look at the packets themselves, so that nobody waits for a fence. Two iterations' packets take turns. Who sends those of n has read the neighbour's of n - 1 around them, which
// were sent by the threads that had read those of n - 2 before: all who read what is overwritten.
//
// The sum over all cells does not hold up anybody: each block leaves its part of it behind, and one more block adds them up one iteration
// later and meets the other PEs.
//
// Who calls this : cuda_persistent.cu, which launches it, and a test whose processor plays it (HIMENO_PLAYED).
// Threads        : all threads of all blocks of the grid.
// Ownership      : none; the job's memory is the caller's.
// Errors         : what the job's `ended` says.
#pragma once

#include "cuda_quad.cuh"
#include "isthmus/device.cuh"

namespace himeno {

using namespace ist::device;

// What a block's threads share.
struct BlockMemory {
  double of_warp[2][kMostThreads / 32];
  unsigned next[2];
};
#ifdef HIMENO_PLAYED
#define HIMENO_BLOCK_MEMORY(NAME) BlockMemory& NAME = played::of_block<BlockMemory>()
inline float4& kept(unsigned n) { return played::dynamic_of_block<float4>()[n]; }
#else
#define HIMENO_BLOCK_MEMORY(NAME) __shared__ BlockMemory NAME
extern __shared__ float4 kept_memory[];
__device__ __forceinline__ float4& kept(unsigned n) { return kept_memory[n]; }
#endif

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

// `done`: iterations of this launch. `status`: what this thread has met so far.
__device__ __forceinline__ Status wait_for_all(const Persistent& job, unsigned done, unsigned blocks, Status status,
                                               bool flags) {
  if (threadIdx.x == 0) {
    status = wait_for_blocks(job, std::uint64_t{done} * blocks);
    if (status != Status::ok) tell_end(job, status, 0, job.view.pe, job.before + done);
  } else if (flags && threadIdx.x >= 32 && blockIdx.x < job.pushers) {
    status = wait_for_neighbours(job, job.before + done);
  }
  return agreed(Block(), status);
}

// Of side 0, what comes from below, or 1, from above, in that iteration.
__device__ __forceinline__ Pair* packets_at(const Persistent& job, int side, const Quad& quad, std::uint64_t iteration) {
  const auto plane = static_cast<int>(iteration % 2) * 2 + side;
  return reinterpret_cast<Pair*>(job.packets.base) +
         2 * ((plane * job.packets.rows + quad.j) * job.packets.quads + quad.k / kQuad);
}
__device__ __forceinline__ void send_packets(const Persistent& job, int side, const Quad& quad, const Four& four,
                                             std::uint64_t iteration) {
  const std::uint32_t number = number_of(static_cast<std::uint32_t>(iteration));
  Pair* const there = peer_ptr(job.view, packets_at(job, 1 - side, quad, iteration), job.packets.pe[side]);
  const auto bits = [&](int c) { return std::uint64_t{__float_as_uint(four.value[c])}; };
  store_relaxed(there, packed(number, bits(0) | bits(1) << 32));
  store_relaxed(there + 1, packed(number, bits(2) | bits(3) << 32));
}
__device__ __forceinline__ float first_of(const Pair& pair) { return __uint_as_float(static_cast<unsigned>(pair.low)); }
__device__ __forceinline__ float second_of(const Pair& pair) { return __uint_as_float(static_cast<unsigned>(pair.high)); }
__device__ __forceinline__ Row row_of(const Pair& one, const Pair& other) {
  return {{0, first_of(one), second_of(one), first_of(other), second_of(other), 0}};
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

// Of the plane beside the quad, on side 0 below or 1 above, what the neighbour has computed in the iteration before.
__device__ __forceinline__ Plane plane_from_packets(const Persistent& job, int side, const Quad& quad,
                                                    std::uint64_t iteration, const float* halo, Status& status) {
  const Pair* const here = packets_at(job, side, quad, iteration);
  const int line = 2 * job.packets.quads;
  // Rows and ends that never change are not sent; what is not needed is looked for where something comes. To the left of the first quad nothing is
  // needed, whose first cell never changes, and to the right of the last one where its last cell does.
  const bool before = quad.j > job.changing.first[1], behind = quad.j <= job.changing.last[1] - 1;
  const int column = quad.k / kQuad;
  const bool left = column > job.changing.first[2] / kQuad, right = column <= job.changing.last[2] / kQuad - 1;
  const Pair *const at_left = left ? here - 1 : here, *const at_right = right ? here + 2 : here,
                    *const at_before = before ? here - line : here, *const at_behind = behind ? here + line : here;
  const std::uint32_t number = number_of(static_cast<std::uint32_t>(iteration));
  Waiter waiter(job.view, job.deadline);
  Pair found[8];
  for (;;) {
    found[0] = load_relaxed(at_left), found[1] = load_relaxed(here), found[2] = load_relaxed(here + 1);
    found[3] = load_relaxed(at_right), found[4] = load_relaxed(at_before), found[5] = load_relaxed(at_before + 1);
    found[6] = load_relaxed(at_behind), found[7] = load_relaxed(at_behind + 1);
    bool all = true;
#pragma unroll
    for (const Pair& pair : found) all = all && has_come(pair, number);
    if (all || status != Status::ok) break;
    status = waiter.vain();
    if (status != Status::ok) tell_end(job, status, 1, job.packets.pe[side], iteration);
  }
  Plane plane{{row_of(found[4], found[5]), row_of(found[1], found[2]), row_of(found[6], found[7])}};
  plane.row[1].value[0] = second_of(found[0]), plane.row[1].value[kQuad + 1] = first_of(found[3]);
  if (!right && (quad.cells & 1U << (kQuad - 1)) != 0) plane.row[1].value[kQuad + 1] = halo[kQuad];
  if (!before) plane.row[0] = row_at<false>(halo - job.shape.row);
  if (!behind) plane.row[2] = row_at<false>(halo + job.shape.row);
  return plane;
}

// The quads of the border with these numbers, every `step`-th; where the first of them lies is known ahead.
template <bool kPackets>
__device__ __forceinline__ double compute_border(const Persistent& job, std::uint64_t iteration, bool fresh, Quad quad,
                                                 unsigned number, unsigned step, Status& status) {
  const unsigned quads = job.border.begin[job.border.boxes];
  const float* const from = job.p[(iteration + 1) % 2];
  float* const to = job.p[iteration % 2];
  double sum = 0;
  while (number < quads) {
    Four four;
    if constexpr (kPackets) {
      const float* const here = from + quad.at;
      const bool is_beside[2] = {job.packets.pe[0] >= 0 && quad.i == job.inner.first[0],
                                 job.packets.pe[1] >= 0 && quad.i == job.inner.last[0]};
      // All that is here is on its way before what is not is waited for.
      const Fours with = coefficients_at(job.with, quad.at);
      const Plane own = plane_at<true>(job.shape, here);
      Plane below, above;
      if (fresh || !is_beside[0]) below = plane_at<false>(job.shape, here - job.shape.plane);
      if (fresh || !is_beside[1]) above = plane_at<false>(job.shape, here + job.shape.plane);
      if (!fresh && is_beside[0]) below = plane_from_packets(job, 0, quad, iteration - 1, here - job.shape.plane, status);
      if (!fresh && is_beside[1]) above = plane_from_packets(job, 1, quad, iteration - 1, here + job.shape.plane, status);
      sum += change(with, below, own, above, quad.cells, four);
      for (int side = 0; side < 2; ++side)
        if (is_beside[side]) send_packets(job, side, quad, four, iteration);
      store(to, quad, four);
    } else {
      sum += change(job.shape, job.with, from, quad, four);
      push(job, to, quad, four);
      store(to, quad, four);
    }
    number += step;
    if (number < quads) quad = quad_of(job.shape, job.border, number);
  }
  return sum;
}
// Each thread finds its own there.
__device__ __forceinline__ void keep(const Fours& with) {
#pragma unroll
  for (int n = 0; n < kCoefficients; ++n)
    kept(static_cast<unsigned>(n) * blockDim.x + threadIdx.x) =
        make_float4(with.of[n].value[0], with.of[n].value[1], with.of[n].value[2], with.of[n].value[3]);
}
__device__ __forceinline__ Fours kept_coefficients() {
  Fours with;
#pragma unroll
  for (int n = 0; n < kCoefficients; ++n) with.of[n] = four_of(kept(static_cast<unsigned>(n) * blockDim.x + threadIdx.x));
  return with;
}

__device__ __forceinline__ double compute_interior(const Persistent& job, std::uint64_t iteration, Quad quad,
                                                   unsigned number, unsigned step) {
  const unsigned quads = job.interior.begin[job.interior.boxes];
  const float* const from = job.p[(iteration + 1) % 2];
  double sum = 0;
  while (number < quads) {
    const float* const here = from + quad.at;
    const Plane below = plane_at<false>(job.shape, here - job.shape.plane), own = plane_at<true>(job.shape, here),
                above = plane_at<false>(job.shape, here + job.shape.plane);
    const Fours with = job.keeps ? kept_coefficients() : coefficients_at(job.with, quad.at);
    Four four;
    sum += change(with, below, own, above, quad.cells, four);
    store(job.p[iteration % 2], quad, four);
    number += step;
    if (number < quads) quad = quad_of(job.shape, job.interior, number);
  }
  return sum;
}

// Where there is much to do, blocks take it in turn, in the order in which it lies: multiprocessors are not equally quick, and where each had a
// share of its own, those ahead would drive planes out of the cache that those behind still read, and all would wait for the last one. The
// first chunk of a block has its number. A block takes until there is nothing left, so all together as often as there are chunks: the
// next iteration counts on from there, and nobody has to set the counter back.
__device__ __forceinline__ double compute_in_turn(const Persistent& job, std::uint64_t iteration, unsigned done,
                                                  unsigned blocks, unsigned* next) {
  const unsigned quads = job.interior.begin[job.interior.boxes], chunk = job.rounds * blockDim.x,
                 chunks = (quads + chunk - 1) / chunk;
  const float* const from = job.p[(iteration + 1) % 2];
  float* const to = job.p[iteration % 2];
  double sum = 0;
  for (unsigned mine = blockIdx.x, turn = 0; mine < chunks; turn ^= 1) {
    // On its way meanwhile.
    unsigned following = 0;
    if (threadIdx.x == 0) following = atomicAdd(job.taken, 1U);
    for (unsigned round = 0, n = mine * chunk + threadIdx.x; round < job.rounds && n < quads; ++round, n += blockDim.x) {
      const Quad quad = quad_of(job.shape, job.interior, n);
      Four four;
      sum += change(job.shape, job.with, from, quad, four);
      store(to, quad, four);
    }
    if (threadIdx.x == 0) next[turn] = following - done * chunks + blocks;
    __syncthreads();
    mine = next[turn];
  }
  return sum;
}

// Behind the border's cells, by all threads of a block that has some.
__device__ __forceinline__ void signal_neighbours(const Persistent& job, std::uint64_t iteration) {
  __syncthreads();
  if (threadIdx.x >= static_cast<unsigned>(job.sides)) return;
  const Side& side = job.side[threadIdx.x];
  signal(job.view, job.flags + static_cast<unsigned>(side.opposite) * kMostPushers + blockIdx.x, iteration, Signal::set,
         side.pe);
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

template <bool kPackets>
__device__ __forceinline__ void compute_all(const Persistent& job, unsigned blocks) {
  HIMENO_BLOCK_MEMORY(memory);
  auto& of_warp = memory.of_warp;
  // The first blocks have the border's chunks; those of the interior begin behind them.
  const unsigned border = job.border.begin[job.border.boxes], at_border = blockDim.x - kFirstAtBorder,
                 border_chunks = (border + at_border - 1) / at_border,
                 mine = threadIdx.x < kFirstAtBorder ? border : blockIdx.x * at_border + threadIdx.x - kFirstAtBorder,
                 inner_at = (blockIdx.x + blocks - border_chunks % blocks) % blocks * blockDim.x + threadIdx.x;
  const bool pushes = blockIdx.x < job.pushers;
  Quad border_quad{}, inner_quad{};
  if (mine < border) border_quad = quad_of(job.shape, job.border, mine);
  if (inner_at < job.interior.begin[job.interior.boxes]) inner_quad = quad_of(job.shape, job.interior, inner_at);
  if (job.keeps && inner_at < job.interior.begin[job.interior.boxes]) keep(coefficients_at(job.with, inner_quad.at));
  Status status = Status::ok;
  for (unsigned done = 0; done < job.iterations; ++done) {
    if (wait_for_all(job, done, blocks, status, !kPackets) != Status::ok) return;
    const std::uint64_t iteration = job.before + done + 1;
    double sum = 0;
    if (pushes) {
      sum = compute_border<kPackets>(job, iteration, job.fresh && done == 0, border_quad, mine, blocks * at_border, status);
      if (!kPackets) signal_neighbours(job, iteration);
    }
    if (job.rounds > 0)
      sum += compute_in_turn(job, iteration, done, blocks, memory.next);
    else
      sum += compute_interior(job, iteration, inner_quad, inner_at, blocks * blockDim.x);
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

// Small blocks may have more registers.
template <bool kPackets, unsigned kThreads>
__global__ void __launch_bounds__(kThreads, 2) iterate_kernel(const __grid_constant__ Persistent job) {
  const unsigned blocks = gridDim.x - 1;
  if (*static_cast<volatile int*>(&job.ended->status) != 0) return;  // an earlier launch has ended in vain
  if (blockIdx.x < blocks)
    compute_all<kPackets>(job, blocks);
  else if (threadIdx.x < 32)
    sum_all(job, blocks);
}

#undef HIMENO_BLOCK_MEMORY

}  // namespace himeno
