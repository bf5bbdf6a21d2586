// The kernels of channels: each is one of channel_protocol.hpp or channel_parts.hpp with the threads of a device.
#include "memory/cuda/channel_parts.hpp"

namespace ist::channel {
namespace {

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

}  // namespace
}  // namespace ist::channel

// A kernel without work only has to be there: it is run once so that its code is on the device before any kernel waits.
#define KERNEL(name) extern "C" __global__ void __launch_bounds__(512) isthmus_channel_##name

KERNEL(send_small)(ist::channel::SendWork work) {
  if (work.own != nullptr) ist::channel::send_packets(ist::channel::OneBlock{}, work);
}
KERNEL(receive_small)(ist::channel::ReceiveWork work) {
  if (work.own != nullptr) ist::channel::receive(ist::channel::OneBlock{}, work);
}
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
