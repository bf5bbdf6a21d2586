// The launch of the kernel that does all iterations: cuda_persistent.cuh has it.
#include <stdexcept>

#include "common/cuda.hpp"
#include "cuda_persistent.cuh"
#include "isthmus/launch.cuh"

namespace himeno {
namespace {

auto kernel_for(bool packets, unsigned threads) {
  constexpr unsigned kFew = kMostThreads / 2;
  if (threads <= kFew) return packets ? iterate_kernel<true, kFew> : iterate_kernel<false, kFew>;
  return packets ? iterate_kernel<true, kMostThreads> : iterate_kernel<false, kMostThreads>;
}

std::size_t kept_bytes(bool keeps, unsigned threads) { return keeps ? threads * sizeof(Fours) : 0; }
// More than 48 KiB has to be asked for; and where blocks keep something, as much of a multiprocessor's memory as they can share.
template <class Kernel>
void must_allow(Kernel kernel, std::size_t bytes) {
  using example::cuda::check;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
        "cudaFuncSetAttribute");
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                             bytes > 0 ? cudaSharedmemCarveoutMaxShared : cudaSharedmemCarveoutDefault),
        "cudaFuncSetAttribute");
}

void must(const Launch& launch) {
  if (!launch.ok()) throw std::runtime_error("--exchange kernel: " + launch.text);
}

}  // namespace

unsigned most_threads() { return kMostThreads; }

unsigned most_blocks(bool packets, bool keeps, unsigned threads) {
  Room room;
  const auto kernel = kernel_for(packets, threads);
  must_allow(kernel, kept_bytes(keeps, threads));
  // It waits for its own blocks and its neighbours', and the host starts nothing meanwhile: all of the GPU may be its.
  must(room_for(kernel, threads, kept_bytes(keeps, threads), kReserveNone, &room));
  return static_cast<unsigned>(room.blocks());
}

void iterate(cudaStream_t stream, const Persistent& job, unsigned blocks, unsigned threads) {
  const auto kernel = kernel_for(job.packets.base != nullptr, threads);
  must(launch_grid(kernel, blocks + 1, threads, kept_bytes(job.keeps, threads), stream, kReserveNone, job));
}

}  // namespace himeno
