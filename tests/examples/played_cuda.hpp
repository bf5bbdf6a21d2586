// The words of CUDA's C++ for code of kernels that threads of the processor run: each block is a process, so that what its threads share is static.
//
// Who calls this : jacobi_kernels_test.cpp and particles_kernels_test.cpp, ahead of the kernels' headers.
// Threads        : play_block() makes a block's.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <cuda_runtime.h>
#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <thread>
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

inline constexpr unsigned kThreads = 64;

inline thread_local uint3 thread, block;
inline thread_local dim3 threads, blocks;

inline pthread_barrier_t block_meets;
inline pthread_barrier_t warps_meet[kThreads / 32];
inline float lanes[kThreads];
inline int votes[kThreads];

inline float of_lane(float mine, unsigned lane) {
  const unsigned warp = thread.x / 32;
  lanes[thread.x] = mine;
  pthread_barrier_wait(&warps_meet[warp]);
  const float found = lanes[warp * 32 + lane];
  pthread_barrier_wait(&warps_meet[warp]);
  return found;
}

// In a process that plays nothing else.
template <class Kernel>
void play_block(unsigned number, unsigned all, const Kernel& kernel) {
  pthread_barrier_init(&block_meets, nullptr, kThreads);
  for (pthread_barrier_t& warp : warps_meet) pthread_barrier_init(&warp, nullptr, 32);
  std::vector<std::thread> crew;
  for (unsigned n = 0; n < kThreads; ++n)
    crew.emplace_back([=] {
      thread = {n, 0, 0};
      block = {number, 0, 0};
      threads = dim3(kThreads);
      blocks = dim3(all);
      kernel();
    });
  for (std::thread& one : crew) one.join();
}

}  // namespace played

#define threadIdx played::thread
#define blockIdx played::block
#define blockDim played::threads
#define gridDim played::blocks

using std::min;

inline void __syncthreads() { pthread_barrier_wait(&played::block_meets); }
inline int __syncthreads_or(int mine) {
  played::votes[threadIdx.x] = mine;
  __syncthreads();
  int any = 0;
  for (const int vote : played::votes) any |= vote;
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
inline float __shfl_xor_sync(unsigned, float mine, unsigned with) { return played::of_lane(mine, threadIdx.x % 32 ^ with); }

inline unsigned __ballot_sync(unsigned, int mine) {
  const unsigned warp = threadIdx.x / 32;
  played::votes[threadIdx.x] = mine;
  pthread_barrier_wait(&played::warps_meet[warp]);
  unsigned all = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (played::votes[warp * 32 + lane] != 0) all |= 1U << lane;
  pthread_barrier_wait(&played::warps_meet[warp]);
  return all;
}
inline int __popc(unsigned bits) { return std::popcount(bits); }

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline std::uint32_t __float_as_uint(float value) { return std::bit_cast<std::uint32_t>(value); }
inline float __uint_as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline void __stcs(float4* to, float4 value) { *to = value; }

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

struct Block {
  static constexpr unsigned block = 0, blocks = 1;
  unsigned thread = threadIdx.x, threads = blockDim.x;
  void sync() const { __syncthreads(); }
  bool any(bool mine) const { return __syncthreads_or(mine) != 0; }
};

}  // namespace ist::device
