// The kernel of the resident worker: worker_protocol.hpp with the threads of a device.
#include "memory/cuda/worker_protocol.hpp"

namespace ist::worker {
namespace {

struct DeviceCrew {
  unsigned thread = threadIdx.x;
  unsigned threads = blockDim.x;
  __device__ __forceinline__ void barrier() const { __syncthreads(); }
  __device__ __forceinline__ bool any(bool value) const { return __syncthreads_or(value ? 1 : 0) != 0; }
  template <class T>
  __device__ __forceinline__ T first(const T& value) const {
    __shared__ T shared;
    if (thread == 0) shared = value;
    __syncthreads();
    const T found = shared;
    __syncthreads();
    return found;
  }
  __device__ __forceinline__ std::byte* reach(std::uint64_t address, std::uint32_t) const {
    return reinterpret_cast<std::byte*>(address);
  }
};

}  // namespace
}  // namespace ist::worker

// Without a board it only has to be there: it is run once so that its code is on the device before anything waits.
extern "C" __global__ void __launch_bounds__(256) isthmus_worker(ist::worker::Work work) {
  if (work.board != nullptr) ist::worker::run(ist::worker::DeviceCrew{}, work);
}
