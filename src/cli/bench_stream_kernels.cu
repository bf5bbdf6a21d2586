// The bare pair of bench_stream_bare.hpp as kernels.
#include "cli/bench_stream_bare.hpp"

extern "C" __global__ void __launch_bounds__(512) isthmus_bare_send(ist::cli::BareWork work) {
  if (work.packets != nullptr) ist::cli::send_bare(work, threadIdx.x, blockDim.x, [] { __syncthreads(); });
}
extern "C" __global__ void __launch_bounds__(512) isthmus_bare_receive(ist::cli::BareWork work) {
  if (work.packets != nullptr) ist::cli::receive_bare(work, threadIdx.x, blockDim.x, [] { __syncthreads(); });
}
