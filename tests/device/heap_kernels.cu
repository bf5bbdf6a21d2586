#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "heap_kernels.hpp"
#include "isthmus/device.cuh"
#include "isthmus/launch.cuh"

namespace heap_kernels {
namespace {

using namespace ist::device;

constexpr std::uint64_t kDeadline = 4000000000;  // ns
constexpr std::uint64_t kRoom = std::uint64_t{1} << 16;
constexpr unsigned kBlocks = 8;

// In mapped host memory.
struct Result {
  unsigned long long wrong;
  int status;
};

__device__ std::uint64_t mixed(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
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
__device__ bool fails(Result* result, Status status) {
  if (status != Status::ok && threadIdx.x == 0) result->status = static_cast<int>(status);
  return status != Status::ok;
}

__global__ void exchange_kernel(ist_team_view view, Places places, std::uint32_t epochs, Result* result) {
  const Block crew;
  const int right = (view.pe + 1) % view.pes, left = (view.pe + view.pes - 1) % view.pes;
  unsigned char *const source = places.data, *const put_here = places.data + kRoom,
                       *const received = places.data + 2 * kRoom;
  auto* const numbers = reinterpret_cast<std::int64_t*>(places.data + 3 * kRoom);
  Meeting<Block> meeting(crew, view);
  Channel<Block> to_right(crew, view, right, 0), from_left(crew, view, left, 0);
  for (std::uint32_t n = 1; n <= epochs; ++n) {
    const auto bytes = static_cast<std::uint32_t>(mixed(7, n, 0) % (kRoom - 16)), shift = n % 3 == 0 ? n % 16 : 0;
    const auto few = static_cast<std::uint32_t>(mixed(8, n, 0) % (n % 8 == 0 ? 16385 : 65));
    fill(source, bytes, view.pe, n);
    put_signal(crew, view, put_here + shift, source, bytes, &places.words[0], n, Signal::set, right);
    Status status = Status::ok;
    if (crew.thread == 0) status = wait_until(view, &places.words[0], Compare::greater_equal, std::uint64_t{n}, kDeadline);
    if (fails(result, agreed(crew, status))) return;
    compare(result, put_here + shift, bytes, left, n);
    __syncthreads();
    fill(source, few, view.pe, n + 1000000);
    if (fails(result, to_right.send(source, few, n, kDeadline))) return;
    if (fails(result, from_left.receive(received, few, n, kDeadline))) return;
    __syncthreads();
    compare(result, received, few, left, n + 1000000);
    if (crew.thread == 0) numbers[0] = view.pe + n;
    __syncthreads();
    if (fails(result, allreduce<Sum>(crew, view, numbers + 1, numbers, 1, kDeadline))) return;
    __syncthreads();
    if (crew.thread == 0) {
      if (numbers[1] != std::int64_t{view.pes} * n + view.pes * (view.pes - 1) / 2) atomicAdd_system(&result->wrong, 1ULL);
      atomic_add(view, &places.words[1], std::uint64_t{3}, 0);
    }
    if (fails(result, meeting.meet(kDeadline))) return;
  }
  if (crew.thread == 0 && g(view, &places.words[1], 0) != std::uint64_t{3} * epochs * static_cast<unsigned>(view.pes))
    atomicAdd_system(&result->wrong, 1ULL);
}

__global__ void grid_kernel(ist_team_view view, Places places, std::uint32_t epochs, Result* result) {
  const Grid crew;
  const int right = (view.pe + 1) % view.pes, left = (view.pe + view.pes - 1) % view.pes;
  Meeting<Grid> meeting(crew, view);
  for (std::uint32_t n = 1; n <= epochs; ++n) {
    // Two planes: the next but one is put after the next barrier, before which this one was compared.
    auto* const plane = reinterpret_cast<std::uint64_t*>(places.data + (4 + n % 2) * kRoom);
    const std::uint32_t at = crew.block * crew.threads + crew.thread;
    peer_ptr(view, plane, right)[at] = mixed(static_cast<std::uint64_t>(view.pe), n, at);
    if (fails(result, meeting.meet(kDeadline))) return;
    // What another block's neighbour put.
    const std::uint32_t other = (crew.block + 1) % crew.blocks * crew.threads + crew.thread;
    if (const_cast<const volatile std::uint64_t*>(plane)[other] != mixed(static_cast<std::uint64_t>(left), n, other))
      atomicAdd_system(&result->wrong, 1ULL);
  }
}

__global__ void add_kernel(ist_team_view view, Places places, std::uint32_t times) {
  for (std::uint32_t n = 0; n < times; ++n)
    for (int pe = 0; pe < view.pes; ++pe) atomic_add(view, &places.words[2], std::uint64_t{1}, pe);
}

__global__ void wait_kernel(ist_team_view view, Places places, Result* result) {
  fails(result, wait_until(view, &places.words[3], Compare::not_equal, std::uint64_t{0}));
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
  fine(cudaFreeHost(result), "cudaFreeHost");
  fine(cudaStreamDestroy(stream), "cudaStreamDestroy");
  return found;
}

}  // namespace

int devices() {
  const pid_t child = fork();
  if (child == 0) {
    int count = 0;
    _exit(cudaGetDeviceCount(&count) == cudaSuccess ? std::min(count, 100) : 0);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

Found exchange(const ist_team_view& view, int device, const Places& places, std::uint32_t epochs) {
  return found_by(device, [&](cudaStream_t stream, Result* result, std::string&) {
    exchange_kernel<<<1, 256, 0, stream>>>(view, places, epochs, result);
  });
}

Found meet_as_grids(const ist_team_view& view, int device, const Places& places, std::uint32_t epochs) {
  return found_by(device, [&](cudaStream_t stream, Result* result, std::string& refused) {
    const Launch launch = launch_grid(grid_kernel, kBlocks, 256, 0, stream, 0, view, places, epochs, result);
    if (!launch.ok()) refused = launch.text;
  });
}

Found add_everywhere(const ist_team_view& view, int device, const Places& places, std::uint32_t times) {
  return found_by(device, [&](cudaStream_t stream, Result*, std::string&) {
    add_kernel<<<1, kAdders, 0, stream>>>(view, places, times);
  });
}

Found wait_for_ever(const ist_team_view& view, int device, const Places& places) {
  return found_by(device, [&](cudaStream_t stream, Result* result, std::string&) {
    wait_kernel<<<1, 32, 0, stream>>>(view, places, result);
  });
}

}  // namespace heap_kernels
