// What the kernels of this folder's tests of heaps share: data that says which epoch it is of, what goes wrong, and how they are launched.
//
// Who calls this : heap_kernels.cu, host_heap_kernels.cu.
// Threads        : device code, all threads of a block where they meet; found_by() waits for its kernel.
// Ownership      : none.
// Errors         : in Found; what goes wrong in a kernel is counted in its Result.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "heap_kernels.hpp"
#include "isthmus/device/crew.cuh"

namespace heap_kernels {
namespace {

using namespace ist::device;

constexpr std::uint64_t kDeadline = 4000000000;  // ns
constexpr std::uint64_t kRoom = std::uint64_t{1} << 16;

// In mapped host memory.
struct Result {
  unsigned long long wrong;
  long long first_ns, second_ns;
  int status;
};

__host__ __device__ std::uint64_t mixed(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15U ^ b * 0xbf58476d1ce4e5b9U ^ c * 0x94d049bb133111ebU;
  x ^= x >> 31;
  x *= 0xff51afd7ed558ccdU;
  return x ^ x >> 29;
}
__device__ void fill(unsigned char* to, std::uint32_t bytes, int pe, std::uint32_t epoch) {
  for (std::uint32_t i = threadIdx.x; i < bytes; i += blockDim.x)
    to[i] = static_cast<unsigned char>(mixed(static_cast<std::uint64_t>(pe) + 1, epoch, i));
  __syncthreads();
}
__device__ void compare(Result* result, const unsigned char* found, std::uint32_t bytes, int pe, std::uint32_t epoch) {
  for (std::uint32_t i = threadIdx.x; i < bytes; i += blockDim.x)
    if (const_cast<const volatile unsigned char*>(found)[i] !=
        static_cast<unsigned char>(mixed(static_cast<std::uint64_t>(pe) + 1, epoch, i)))
      atomicAdd_system(&result->wrong, 1ULL);
}
// The same by all threads of a crew, a grid's too, which meet.
template <class Crew>
__device__ void fill(const Crew& crew, const ist_team_view& view, unsigned char* to, std::uint32_t bytes,
                     std::uint32_t epoch) {
  for (std::uint32_t i = thread_of(crew); i < bytes; i += threads_of(crew))
    to[i] = static_cast<unsigned char>(mixed(static_cast<std::uint64_t>(view.pe) + 1, epoch, i));
  (void)agreed(crew, view, Status::ok, kDeadline);
}
template <class Crew>
__device__ void compare(const Crew& crew, Result* result, const unsigned char* found, std::uint32_t bytes, int pe,
                        std::uint32_t epoch) {
  for (std::uint32_t i = threads_of(crew) - 1 - thread_of(crew); i < bytes; i += threads_of(crew))
    if (const_cast<const volatile unsigned char*>(found)[i] !=
        static_cast<unsigned char>(mixed(static_cast<std::uint64_t>(pe) + 1, epoch, i)))
      atomicAdd_system(&result->wrong, 1ULL);
}
__device__ bool fails(Result* result, Status status) {
  if (status != Status::ok) result->status = static_cast<int>(status);
  return status != Status::ok;
}
template <class Crew>
__device__ bool fails_together(const Crew& crew, Result* result, Status status) {
  return fails(result, agreed(crew, status));
}

// `launch` is given the stream and where the kernel says what it found.
template <class Starter>
Found found_by(int device, const Starter& start) {
  Found found;
  const auto fine = [&](cudaError_t error, const char* call) {
    if (error != cudaSuccess && found.refused.empty()) found.refused = std::string(call) + ": " + cudaGetErrorString(error);
    return error == cudaSuccess;
  };
  Result* result = nullptr;
  cudaStream_t stream = nullptr;
  if (!fine(cudaSetDevice(device), "cudaSetDevice") ||
      !fine(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags") ||
      !fine(cudaHostAlloc(&result, sizeof *result, cudaHostAllocMapped), "cudaHostAlloc"))
    return found;
  *result = {};
  start(stream, result, found.refused);
  fine(cudaGetLastError(), "launch");
  fine(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  found.wrong = result->wrong;
  found.status = result->status;
  found.first_ns = result->first_ns;
  found.second_ns = result->second_ns;
  fine(cudaFreeHost(result), "cudaFreeHost");
  fine(cudaStreamDestroy(stream), "cudaStreamDestroy");
  return found;
}

}  // namespace
}  // namespace heap_kernels
