// The threads of a device's block, as channel_protocol.hpp and meeting_protocol.hpp want them: a `Crew`.
//
// Who calls this : cuda_channel_kernels.cu, cuda_meeting_kernels.cu; compiled by nvcc alone.
// Threads        : each thread has its own.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <cstdint>

namespace ist::channel {

struct Threads {
  unsigned thread = threadIdx.x;
  unsigned threads = blockDim.x;
  __device__ __forceinline__ void barrier() const { __syncthreads(); }
  // One warp is quicker to agree by itself.
  __device__ __forceinline__ bool any(bool mine) const {
    return threads == 32 ? __any_sync(~0U, mine) != 0 : __syncthreads_or(mine) != 0;
  }
  __device__ __forceinline__ std::uint64_t first(std::uint64_t value) const {
    __shared__ std::uint64_t shared;
    if (thread == 0) shared = value;
    __syncthreads();
    value = shared;
    __syncthreads();
    return value;
  }
};

struct DeviceCrew : Threads {
  unsigned block;
  unsigned blocks;
  __device__ DeviceCrew(unsigned first, unsigned count) : block(blockIdx.x - first), blocks(count) {}
};

// Of a kernel of one block, which is known to be that: little code, since what is small is over before much code is fetched.
struct OneBlock : Threads {
  static constexpr unsigned block = 0;
  static constexpr unsigned blocks = 1;
};

}  // namespace ist::channel
