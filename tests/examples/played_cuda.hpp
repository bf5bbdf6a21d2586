// The words of CUDA's C++ for code of kernels that threads of the processor run. A block whose threads share what is static is a process
// (play_block); those of a grid (play_grid) share a process, and each has its of_block().
//
// Who calls this : jacobi_kernels_test.cpp, particles_kernels_test.cpp and himeno_played.cpp, ahead of the kernels' headers.
// Threads        : play_block() and play_grid() make a block's.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <cuda_runtime.h>
#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#undef __device__
#undef __global__
#undef __host__
#undef __forceinline__
#undef __shared__
#undef __grid_constant__
#undef __launch_bounds__
#define __device__
#define __global__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __grid_constant__
#define __launch_bounds__(...)

namespace played {

inline constexpr unsigned kThreads = 64;  // of a block, unless told otherwise

inline thread_local uint3 thread, block;
inline thread_local dim3 threads, blocks;

// What a block's threads share, beside what is static.
class Shared {
 public:
  explicit Shared(unsigned count) : lanes(count), votes(count), warps_(count / 32) {
    pthread_barrier_init(&block_, nullptr, count);
    for (pthread_barrier_t& warp : warps_) pthread_barrier_init(&warp, nullptr, 32);
  }
  void meet_block() { pthread_barrier_wait(&block_); }
  void meet_warp() { pthread_barrier_wait(&warps_[thread.x / 32]); }

  std::vector<double> lanes;
  std::vector<int> votes;
  alignas(16) unsigned char memory[4096];
  alignas(16) unsigned char dynamic[65536];

 private:
  pthread_barrier_t block_;
  std::vector<pthread_barrier_t> warps_;
};
inline thread_local Shared* shared;

// Of this thread's block, for blocks that share a process.
template <class Memory>
Memory& of_block() {
  static_assert(sizeof(Memory) <= sizeof shared->memory);
  return *reinterpret_cast<Memory*>(shared->memory);
}
template <class T>
T* dynamic_of_block() {
  return reinterpret_cast<T*>(shared->dynamic);
}

template <class Number>
Number of_lane(Number mine, unsigned lane) {
  shared->lanes[thread.x] = static_cast<double>(mine);
  shared->meet_warp();
  const auto found = static_cast<Number>(shared->lanes[thread.x / 32 * 32 + lane]);
  shared->meet_warp();
  return found;
}

// The threads of one block; when they are joined, `with` may go.
template <class Kernel>
std::vector<std::thread> begin_block(unsigned number, unsigned all, unsigned count, Shared& with, const Kernel& kernel) {
  std::vector<std::thread> crew;
  for (unsigned n = 0; n < count; ++n)
    crew.emplace_back([=, &with, &kernel] {
      thread = {n, 0, 0};
      block = {number, 0, 0};
      threads = dim3(count);
      blocks = dim3(all);
      shared = &with;
      kernel();
    });
  return crew;
}
// In a process that plays nothing else.
template <class Kernel>
void play_block(unsigned number, unsigned all, const Kernel& kernel) {
  const auto with = std::make_unique<Shared>(kThreads);
  for (std::thread& one : begin_block(number, all, kThreads, *with, kernel)) one.join();
}
// All blocks at once, of a kernel without static memory.
template <class Kernel>
void play_grid(unsigned all, unsigned count, const Kernel& kernel) {
  std::vector<std::unique_ptr<Shared>> memory;
  std::vector<std::thread> crew;
  for (unsigned number = 0; number < all; ++number) {
    memory.push_back(std::make_unique<Shared>(count));
    for (std::thread& one : begin_block(number, all, count, *memory.back(), kernel)) crew.push_back(std::move(one));
  }
  for (std::thread& one : crew) one.join();
}

}  // namespace played

#define threadIdx played::thread
#define blockIdx played::block
#define blockDim played::threads
#define gridDim played::blocks

using std::min;

inline void __syncthreads() { played::shared->meet_block(); }
inline int __syncthreads_or(int mine) {
  played::shared->votes[threadIdx.x] = mine;
  __syncthreads();
  int any = 0;
  for (const int vote : played::shared->votes) any |= vote;
  __syncthreads();
  return any;
}
inline float __shfl_up_sync(unsigned, float mine, unsigned by) {
  const unsigned lane = threadIdx.x % 32;
  return played::of_lane(mine, lane < by ? lane : lane - by);
}
inline float __shfl_down_sync(unsigned, float mine, unsigned by) {
  const unsigned lane = threadIdx.x % 32;
  return played::of_lane(mine, lane + by > 31 ? lane : lane + by);
}
template <class Number>
Number __shfl_xor_sync(unsigned, Number mine, unsigned with) {
  return played::of_lane(mine, threadIdx.x % 32 ^ with);
}

inline unsigned __ballot_sync(unsigned, int mine) {
  const unsigned warp = threadIdx.x / 32;
  played::shared->votes[threadIdx.x] = mine;
  played::shared->meet_warp();
  unsigned all = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (played::shared->votes[warp * 32 + lane] != 0) all |= 1U << lane;
  played::shared->meet_warp();
  return all;
}
inline int __popc(unsigned bits) { return std::popcount(bits); }

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline std::uint32_t __float_as_uint(float value) { return std::bit_cast<std::uint32_t>(value); }
inline float __uint_as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline void __stcs(float4* to, float4 value) { *to = value; }
inline float4 __ldcs(const float4* from) { return *from; }
inline double __ldcg(const double* from) { return *from; }

template <class Word>
Word atomicCAS(Word* at, Word expected, Word wanted) {
  __atomic_compare_exchange_n(at, &expected, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}
template <class Word>
Word atomicAdd(Word* at, Word value) {
  return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);
}
inline float atomicAdd(float* at, float value) {
  auto* const word = reinterpret_cast<std::uint32_t*>(at);
  std::uint32_t before = __atomic_load_n(word, __ATOMIC_SEQ_CST);
  while (!__atomic_compare_exchange_n(word, &before, std::bit_cast<std::uint32_t>(std::bit_cast<float>(before) + value),
                                      false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
  return std::bit_cast<float>(before);
}

#include <isthmus/device.cuh>

namespace ist::device {

struct Warp {
  static constexpr unsigned threads = 32, block = 0, blocks = 1;
  unsigned thread = threadIdx.x % 32;
  void sync() const { played::shared->meet_warp(); }
  bool any(bool mine) const { return __ballot_sync(~0U, mine ? 1 : 0) != 0; }
};

struct Block {
  static constexpr unsigned block = 0, blocks = 1;
  unsigned thread = threadIdx.x, threads = blockDim.x;
  void sync() const { __syncthreads(); }
  bool any(bool mine) const { return __syncthreads_or(mine) != 0; }
};

}  // namespace ist::device
