#include <cuda_runtime.h>

#include "isthmus/device.cuh"
#include "isthmus/device/window.cuh"
#include "isthmus/launch.cuh"
#include "window_kernels.hpp"

namespace window_kernels {
namespace {

using namespace ist::device;

constexpr std::uint64_t kDeadline = 4000000000;  // ns

// In mapped host memory.
struct Result {
  unsigned long long wrong;
  int status;
};

__host__ __device__ constexpr std::uint64_t word(int number) { return kWords + static_cast<std::uint64_t>(number) * 8; }

__device__ std::uint64_t mixed(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15U ^ b * 0xbf58476d1ce4e5b9U ^ c * 0x94d049bb133111ebU;
  x ^= x >> 31;
  x *= 0xff51afd7ed558ccdU;
  return x ^ x >> 29;
}
__device__ unsigned char byte_of(int pe, std::uint32_t epoch, std::uint32_t at) {
  return static_cast<unsigned char>(mixed(static_cast<std::uint64_t>(pe) + 1, epoch, at));
}
// Of what PE `pe` had in that epoch, from its byte `first` on.
__device__ void compare(Result* result, const unsigned char* found, std::uint32_t bytes, std::uint32_t first, int pe,
                        std::uint32_t epoch) {
  for (std::uint32_t i = threadIdx.x; i < bytes; i += blockDim.x)
    if (const_cast<const volatile unsigned char*>(found)[i] != byte_of(pe, epoch, first + i))
      atomicAdd_system(&result->wrong, 1ULL);
}
__device__ bool fails(Result* result, Status status) {
  if (status != Status::ok && threadIdx.x == 0) result->status = static_cast<int>(status);
  return status != Status::ok;
}
// By all threads of the block.
__device__ bool comes(Result* result, const Block& crew, const ist_window_view& window, int number, std::uint64_t value) {
  Status status = Status::ok;
  if (crew.thread == 0)
    status = wait_until(window, peer_ptr<std::uint64_t>(window, word(number), window.pe), Compare::greater_equal, value,
                        kDeadline);
  return !fails(result, agreed(crew, status));
}

__global__ void exchange_kernel(const __grid_constant__ ist_window_view window, std::uint32_t epochs, Result* result) {
  const Block crew;
  const int me = window.pe, right = (me + 1) % window.pes, left = (me + window.pes - 1) % window.pes;
  auto* const own = peer_ptr<unsigned char>(window, 0, me);
  unsigned char *const source = own, *const put_here = own + kRoom, *const got = own + 2 * kRoom;
  for (std::uint32_t n = 1; n <= epochs; ++n) {
    const auto bytes = static_cast<std::uint32_t>(mixed(7, n, 0) % (kRoom - 64));
    const std::uint32_t first = n % 5 == 0 ? n % 13 : 0, shift = n % 3 == 0 ? n % 16 : 0;
    for (std::uint32_t i = crew.thread; i < kRoom; i += crew.threads) source[i] = byte_of(me, n, i);
    crew.sync();
    put_signal(crew, window, kRoom + shift, source + first, bytes, word(0), n, Signal::set, right);
    if (!comes(result, crew, window, 0, n)) return;
    compare(result, put_here + shift, bytes, first, left, n);
    get(crew, window, got + first, shift, bytes, left);
    crew.sync();
    compare(result, got + first, bytes, shift, left, n);
    crew.sync();
    // Only when all threads have read may the left neighbour write the next ones.
    if (crew.thread == 0) {
      atomic_add<std::uint64_t>(window, word(2), 3, 0);
      p<std::uint64_t>(window, word(5 + me % 8), n, left);
      signal(window, word(1), 1, Signal::add, left);
    }
    if (!comes(result, crew, window, 1, n)) return;
    // Stored before the answer; and the next one follows what this PE has not put yet.
    if (crew.thread == 0 && g<std::uint64_t>(window, word(5 + right % 8), me) != n) atomicAdd_system(&result->wrong, 1ULL);
  }
}

// All blocks put; `team` has the words where they meet.
__global__ void grid_kernel(ist_team_view team, const __grid_constant__ ist_window_view window, std::uint32_t epochs,
                            Result* result) {
  const Grid crew;
  const int me = window.pe, right = (me + 1) % window.pes, left = (me + window.pes - 1) % window.pes;
  auto* const own = peer_ptr<unsigned char>(window, 0, me);
  const auto comes = [&](int number, std::uint64_t value) {
    Status status = Status::ok;
    if (is_first(crew))
      status = wait_until(window, peer_ptr<std::uint64_t>(window, word(number), me), Compare::equal, value, kDeadline);
    return !fails(result, agreed(crew, team, status, kDeadline));
  };
  for (std::uint32_t n = 1; n <= epochs; ++n) {
    const auto bytes = static_cast<std::uint32_t>(mixed(9, n, 0) % (kRoom - 64));
    for (std::uint32_t i = thread_of(crew); i < bytes; i += threads_of(crew)) own[i] = byte_of(me, n, i);
    if (fails(result, agreed(crew, team, Status::ok, kDeadline))) return;
    if (fails(result,
              put_signal(crew, team, window, kRoom + n % 16, own, bytes, word(13), n, Signal::set, right, kDeadline)))
      return;
    if (!comes(13, n)) return;
    for (std::uint32_t i = thread_of(crew); i < bytes; i += threads_of(crew))
      if (const_cast<const volatile unsigned char*>(own)[kRoom + n % 16 + i] != byte_of(left, n, i))
        atomicAdd_system(&result->wrong, 1ULL);
    // No bytes, and a word: all have read.
    if (fails(result, agreed(crew, team, Status::ok, kDeadline))) return;
    if (fails(result, put_signal(crew, team, window, 0, own, 0, word(14), 1, Signal::add, left, kDeadline))) return;
    if (!comes(14, n)) return;
  }
}

__global__ void add_kernel(const __grid_constant__ ist_window_view window, std::uint32_t times) {
  for (std::uint32_t n = 0; n < times; ++n)
    for (int pe = 0; pe < window.pes; ++pe) atomic_add<std::uint64_t>(window, word(3), 1, pe);
}

__global__ void wait_kernel(const __grid_constant__ ist_window_view window, Result* result) {
  fails(result,
        wait_until(window, peer_ptr<std::uint64_t>(window, word(4), window.pe), Compare::not_equal, std::uint64_t{0}));
}

bool fine(cudaError_t error, const char* call, std::string& refused) {
  if (error != cudaSuccess && refused.empty()) refused = std::string(call) + ": " + cudaGetErrorString(error);
  return error == cudaSuccess;
}

template <class Starter>
Found found_by(int device, const Starter& start) {
  Found found;
  Result* result = nullptr;
  cudaStream_t stream = nullptr;
  if (!fine(cudaSetDevice(device), "cudaSetDevice", found.refused) ||
      !fine(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags", found.refused) ||
      !fine(cudaHostAlloc(&result, sizeof *result, cudaHostAllocMapped), "cudaHostAlloc", found.refused))
    return found;
  *result = {};
  start(stream, result);
  fine(cudaGetLastError(), "launch", found.refused);
  fine(cudaStreamSynchronize(stream), "cudaStreamSynchronize", found.refused);
  found.wrong = result->wrong;
  found.status = result->status;
  fine(cudaFreeHost(result), "cudaFreeHost", found.refused);
  fine(cudaStreamDestroy(stream), "cudaStreamDestroy", found.refused);
  return found;
}

}  // namespace

void* allocate(int device, std::uint64_t bytes, std::string& refused) {
  void* memory = nullptr;
  const bool made = fine(cudaSetDevice(device), "cudaSetDevice", refused) &&
                    fine(cudaMalloc(&memory, bytes), "cudaMalloc", refused) &&
                    fine(cudaMemset(memory, 0, bytes), "cudaMemset", refused) &&
                    fine(cudaDeviceSynchronize(), "cudaDeviceSynchronize", refused);
  return made ? memory : nullptr;
}

void release(void* memory) { cudaFree(memory); }

Found exchange(const ist_window_view& window, int device, std::uint32_t epochs) {
  return found_by(
      device, [&](cudaStream_t stream, Result* result) { exchange_kernel<<<1, 256, 0, stream>>>(window, epochs, result); });
}

Found exchange_as_grids(const ist_team_view& team, const ist_window_view& window, int device, std::uint32_t epochs) {
  std::string refused;
  Found found = found_by(device, [&](cudaStream_t stream, Result* result) {
    const Launch launch = launch_grid(grid_kernel, kBlocks, 128, 0, stream, 0, team, window, epochs, result);
    if (!launch.ok()) refused = launch.text;
  });
  if (found.refused.empty()) found.refused = refused;
  return found;
}

Found add_everywhere(const ist_window_view& window, int device, std::uint32_t times) {
  return found_by(device, [&](cudaStream_t stream, Result*) { add_kernel<<<1, kAdders, 0, stream>>>(window, times); });
}

Found wait_for_ever(const ist_window_view& window, int device) {
  return found_by(device, [&](cudaStream_t stream, Result* result) { wait_kernel<<<1, 32, 0, stream>>>(window, result); });
}

}  // namespace window_kernels
