// The kernels of channels: each is one of channel_protocol.hpp or channel_parts.hpp with the threads of a device.
#include "memory/cuda/channel_parts.hpp"

namespace ist::channel {
namespace {

struct DeviceCrew {
  unsigned thread;
  unsigned threads;
  unsigned block;
  unsigned blocks;
  __device__ DeviceCrew(unsigned first, unsigned count)
      : thread(threadIdx.x), threads(blockDim.x), block(blockIdx.x - first), blocks(count) {}
  __device__ __forceinline__ void barrier() const { __syncthreads(); }
  __device__ __forceinline__ bool any(bool mine) const { return __syncthreads_or(mine) != 0; }
  __device__ __forceinline__ std::uint64_t first(std::uint64_t value) const {
    __shared__ std::uint64_t shared;
    if (thread == 0) shared = value;
    __syncthreads();
    value = shared;
    __syncthreads();
    return value;
  }
};

}  // namespace
}  // namespace ist::channel

// A kernel without work only has to be there: it is run once so that its code is on the device before any kernel waits.
#define KERNEL(name) extern "C" __global__ void __launch_bounds__(512) isthmus_channel_##name

KERNEL(send)(ist::channel::SendWork work) {
  if (work.own != nullptr) ist::channel::send(ist::channel::DeviceCrew{0, gridDim.x}, work);
}
KERNEL(receive)(ist::channel::ReceiveWork work) {
  if (work.own != nullptr) ist::channel::receive(ist::channel::DeviceCrew{0, gridDim.x}, work);
}
KERNEL(send_receive)(ist::channel::SendReceiveWork work) {
  if (work.send.own == nullptr) return;
  if (blockIdx.x < work.send_blocks)
    ist::channel::send(ist::channel::DeviceCrew{0, work.send_blocks}, work.send);
  else
    ist::channel::receive(ist::channel::DeviceCrew{work.send_blocks, gridDim.x - work.send_blocks}, work.receive);
}
KERNEL(put)(ist::channel::PutWork work) {
  if (work.send.own != nullptr) ist::channel::put(ist::channel::DeviceCrew{0, gridDim.x}, work);
}
KERNEL(take)(ist::channel::TakeWork work) {
  if (work.receive.own != nullptr) ist::channel::take(ist::channel::DeviceCrew{0, gridDim.x}, work);
}
KERNEL(let_go)(ist::channel::LetGoWork work) {
  if (work.word != nullptr) ist::channel::let_go(work);
}
