// What in_kernel.cu measures Isthmus's calls in kernels beside: the same exchanges by loops of a few lines, with nothing of a library.
//
// Who calls this : in_kernel.cu, in_kernel_team.cu.
// Threads        : all of a block.
// Ownership      : none.
// Errors         : false after so many vain polls that the other side has gone: nothing here may hang a GPU.
#pragma once

#include <cstdint>

namespace bare {

constexpr unsigned kPolls = 1U << 25;

__device__ __forceinline__ std::uint64_t load(const std::uint64_t* from) {
  std::uint64_t value;
  asm volatile("ld.volatile.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
}
__device__ __forceinline__ void store(std::uint64_t* to, std::uint64_t value) {
  asm volatile("st.volatile.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}
__device__ __forceinline__ std::uint64_t acquire(const std::uint64_t* from) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
}
__device__ __forceinline__ void release(std::uint64_t* to, std::uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}

// Flag in data, 8 bytes a store, as the bare limit that the targets speak of; it loads its source and stores its destination.
__device__ __forceinline__ bool send_ll(std::uint64_t* remote, const std::uint32_t* source, int words,
                                        std::uint32_t number) {
  for (int i = threadIdx.x; i < words; i += blockDim.x)
    store(&remote[i], static_cast<std::uint64_t>(number) << 32 | source[i]);
  __syncthreads();
  return true;
}
__device__ __forceinline__ bool receive_ll(const std::uint64_t* local, std::uint32_t* destination, int words,
                                           std::uint32_t number) {
  for (int i = threadIdx.x; i < words; i += blockDim.x) {
    std::uint64_t found;
    unsigned left = kPolls;
    while ((found = load(&local[i])) >> 32 != number)
      if (--left == 0) return __syncthreads(), false;
    destination[i] = static_cast<std::uint32_t>(found);
  }
  __syncthreads();
  return true;
}

// Two such packets in one store of 16 bytes.
__device__ __forceinline__ bool send_ll2(ulonglong2* remote, const std::uint64_t* source, int words, std::uint32_t number) {
  const std::uint64_t upper = static_cast<std::uint64_t>(number) << 32;
  for (int i = threadIdx.x; i < words; i += blockDim.x) {
    const std::uint64_t data = source[i];
    asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(&remote[i]),
                 "l"(upper | static_cast<std::uint32_t>(data)), "l"(upper | data >> 32)
                 : "memory");
  }
  __syncthreads();
  return true;
}
__device__ __forceinline__ bool receive_ll2(const ulonglong2* local, std::uint64_t* destination, int words,
                                            std::uint32_t number) {
  for (int i = threadIdx.x; i < words; i += blockDim.x) {
    std::uint64_t low, high;
    unsigned left = kPolls;
    do {
      asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(low), "=l"(high) : "l"(&local[i]) : "memory");
      if (--left == 0) return __syncthreads(), false;
    } while (low >> 32 != number || high >> 32 != number);
    destination[i] = static_cast<std::uint32_t>(low) | high << 32;
  }
  __syncthreads();
  return true;
}

// Store, fence, flag.
__device__ __forceinline__ bool put_flag(unsigned char* remote, const unsigned char* source, int bytes, std::uint64_t* flag,
                                         std::uint64_t value) {
  if (bytes < 16)
    for (int i = threadIdx.x; i < bytes / 8; i += blockDim.x)
      reinterpret_cast<std::uint64_t*>(remote)[i] = reinterpret_cast<const std::uint64_t*>(source)[i];
  else
#pragma unroll 4
    for (int i = threadIdx.x; i < bytes / 16; i += blockDim.x)
      reinterpret_cast<uint4*>(remote)[i] = reinterpret_cast<const uint4*>(source)[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("fence.acq_rel.sys;" ::: "memory");
    store(flag, value);
  }
  return true;
}
__device__ __forceinline__ bool wait_flag(const std::uint64_t* flag, std::uint64_t value) {
  bool come = true;
  if (threadIdx.x == 0) {
    unsigned left = kPolls;
    while (acquire(flag) < value && come) come = --left != 0;
  }
  return __syncthreads_and(come) != 0;
}

// A push barrier of two, by one block.
__device__ __forceinline__ bool meet(std::uint64_t* remote, const std::uint64_t* local, std::uint64_t value) {
  bool come = true;
  __syncthreads();
  if (threadIdx.x == 0) {
    release(remote, value);
    unsigned left = kPolls;
    while (acquire(local) < value && come) come = --left != 0;
  }
  return __syncthreads_and(come) != 0;
}

// The same of any number of PEs, by a thread for each other one: `remote` is null in all others.
__device__ __forceinline__ bool meet_all(std::uint64_t* remote, const std::uint64_t* local, std::uint64_t value) {
  bool come = true;
  __syncthreads();
  if (remote != nullptr) {
    release(remote, value);
    unsigned left = kPolls;
    while (acquire(local) < value && come) come = --left != 0;
  }
  return __syncthreads_and(come) != 0;
}

}  // namespace bare
