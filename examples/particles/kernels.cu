// Launches the kernels of a step.
#include "kernels.cuh"

#include "common/cuda.hpp"

namespace particles {
namespace {

void must_be_launched(const char* kernel) { example::cuda::check(cudaGetLastError(), kernel); }

unsigned blocks_for(std::int64_t threads) { return static_cast<unsigned>(blocks_of(threads)); }

}  // namespace

void launch_move(const Span& particles, const Cut& cut, const Search& search, cudaStream_t stream) {
  const std::int64_t blocks = blocks_of(particles.count);
  if (particles.particle == words)
    move_kernel<words, 1><<<blocks_for(particles.count), kThreads, 0, stream>>>(particles, cut, search);
  else
    move_kernel<1, 0><<<blocks_for(particles.count), kThreads, 0, stream>>>(particles, cut, search);
  must_be_launched("the launch of move_kernel");
  add_up_kernel<<<1, kScanThreads, 0, stream>>>(blocks, search);
  must_be_launched("the launch of add_up_kernel");
}

void launch_list(std::int64_t count, const Search& search, cudaStream_t stream) {
  list_kernel<<<blocks_for(count), kThreads, 0, stream>>>(count, search);
  must_be_launched("the launch of list_kernel");
}

void launch_fill(const Span& particles, const Fill* fills, std::int64_t count, cudaStream_t stream) {
  fill_kernel<<<blocks_for(count * words), kThreads, 0, stream>>>(particles, fills, count);
  must_be_launched("the launch of fill_kernel");
}

}  // namespace particles
