// The kernels of a step.
//
// Who calls this : kernels.cu; a test, whose threads play those of a GPU.
// Threads        : blocks in any order; all of a block come to every meeting.
// Ownership      : none.
// Errors         : none.
#pragma once

#include "kernels.hpp"

namespace particles {
namespace {

// How many threads of the block before this one say yes, and how many of all do.
struct Yes {
  int before, all;
};
__device__ __forceinline__ Yes count_yes(bool mine) {
  __shared__ int of_warps[kThreads / 32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const unsigned votes = __ballot_sync(~0U, mine);
  if (lane == 0) of_warps[warp] = __popc(votes);
  __syncthreads();
  Yes yes{__popc(votes & ((1U << lane) - 1U)), 0};
  for (unsigned other = 0; other < kThreads / 32; ++other) {
    if (other < warp) yes.before += of_warps[other];
    yes.all += of_warps[other];
  }
  return yes;
}

__device__ __forceinline__ std::int64_t number_of_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * kThreads + static_cast<std::int64_t>(threadIdx.x);
}

// kWord: between the words of a particle; 0: known at the launch alone.
template <int kParticle, int kWord>
__global__ void __launch_bounds__(kThreads)
    move_kernel(const __grid_constant__ Span of, const __grid_constant__ Cut cut, const __grid_constant__ Search search) {
  const std::int64_t i = number_of_thread(), word = kWord != 0 ? kWord : of.word;
  bool leaves = false;
  if (i < of.count) {
    double* const now = of.first + i * kParticle;
    double at[3];
    for (int d = 0; d < 3; ++d)
      now[(position + d) * word] = at[d] = moved(now[(position + d) * word], now[(velocity + d) * word]);
    const int part = part_at(cut.parts, at);
    leaves = part != cut.own;
    search.part[i] = leaves ? part : kStays;
  }
  const Yes yes = count_yes(leaves);
  if (threadIdx.x == 0) search.before[blockIdx.x] = yes.all;
}

// By one block: each count becomes the sum of those before it.
__global__ void __launch_bounds__(kScanThreads) add_up_kernel(std::int64_t blocks, const __grid_constant__ Search search) {
  __shared__ std::int32_t sums[kScanThreads];
  const int mine = static_cast<int>(threadIdx.x);
  std::int32_t before = 0;
  for (std::int64_t first = 0; first < blocks; first += kScanThreads) {
    const std::int64_t block = first + mine;
    const std::int32_t own = block < blocks ? search.before[block] : 0;
    sums[mine] = own;
    __syncthreads();
    for (int distance = 1; distance < kScanThreads; distance *= 2) {
      const std::int32_t other = mine >= distance ? sums[mine - distance] : 0;
      __syncthreads();
      sums[mine] += other;
      __syncthreads();
    }
    if (block < blocks) search.before[block] = before + sums[mine] - own;
    before += sums[kScanThreads - 1];
    __syncthreads();  // ahead of the next round's sums
  }
  if (mine == 0) *search.found = before;
}

__global__ void __launch_bounds__(kThreads) list_kernel(std::int64_t count, const __grid_constant__ Search search) {
  const std::int64_t i = number_of_thread();
  const std::int32_t part = i < count ? search.part[i] : kStays;
  const bool leaves = part != kStays;
  const std::int64_t place = static_cast<std::int64_t>(search.before[blockIdx.x]) + count_yes(leaves).before;
  if (leaves && place < search.limit) search.list[place] = {static_cast<std::int32_t>(i), part};
}

// A thread for each word. What is written to is nowhere read.
__global__ void __launch_bounds__(kThreads)
    fill_kernel(const __grid_constant__ Span of, const Fill* fills, std::int64_t count) {
  const std::int64_t i = number_of_thread();
  if (i >= count * words) return;
  // Neighbouring threads have neighbouring words of structs, and neighbouring particles of arrays.
  const bool structs = of.particle == words;
  const std::int64_t which = structs ? i / words : i % count, word = structs ? i % words : i / count;
  const Fill fill = fills[which];
  of.first[fill.to * of.particle + word * of.word] = of.first[fill.from * of.particle + word * of.word];
}

}  // namespace
}  // namespace particles
