// The kernels of channels: each is one of channel_protocol.hpp or channel_parts.hpp with the threads of a device.
#include "memory/cuda/channel_crew.hpp"
#include "memory/cuda/channel_parts.hpp"
#include "memory/cuda/note_protocol.hpp"

// A kernel without work only has to be there: it is run once so that its code is on the device before any kernel waits.
#define KERNEL(name) extern "C" __global__ void __launch_bounds__(512) isthmus_channel_##name

KERNEL(send_small)(const __grid_constant__ ist::channel::SendWork work) {
  if (work.own != nullptr) ist::channel::send_packets(ist::channel::OneBlock{}, work);
}
KERNEL(receive_small)(const __grid_constant__ ist::channel::ReceiveWork work) {
  if (work.own != nullptr) ist::channel::receive_packets(ist::channel::OneBlock{}, work);
}
KERNEL(send)(const __grid_constant__ ist::channel::SendWork work) {
  if (work.own != nullptr) ist::channel::send(ist::channel::DeviceCrew{0, gridDim.x}, work);
}
KERNEL(receive)(const __grid_constant__ ist::channel::ReceiveWork work) {
  if (work.own != nullptr) ist::channel::receive(ist::channel::DeviceCrew{0, gridDim.x}, work);
}
KERNEL(send_receive)(const __grid_constant__ ist::channel::SendReceiveWork work) {
  if (work.send.own == nullptr) return;
  const std::uint32_t receives = gridDim.x - work.send_blocks;
  const auto role = ist::channel::role_of(blockIdx.x, work.send_blocks, receives);
  const unsigned first = blockIdx.x - role.block;
  if (role.sends)
    ist::channel::send(ist::channel::DeviceCrew{first, work.send_blocks}, work.send);
  else
    ist::channel::receive(ist::channel::DeviceCrew{first, receives}, work.receive);
}
KERNEL(put)(const __grid_constant__ ist::channel::PutWork work) {
  if (work.send.own != nullptr) ist::channel::put(ist::channel::DeviceCrew{0, gridDim.x}, work);
}
KERNEL(take)(const __grid_constant__ ist::channel::TakeWork work) {
  if (work.receive.own != nullptr) ist::channel::take(ist::channel::DeviceCrew{0, gridDim.x}, work);
}
KERNEL(let_go)(const __grid_constant__ ist::channel::LetGoWork work) {
  if (work.word != nullptr) ist::channel::let_go(work);
}
KERNEL(tell)(const __grid_constant__ ist::channel::TellWork work) {
  if (work.own != nullptr && threadIdx.x == 0) ist::channel::tell(work);
}
KERNEL(compare)(const __grid_constant__ ist::channel::CompareWork work) {
  if (work.own != nullptr && threadIdx.x == 0) ist::channel::compare(work);
}
KERNEL(tell_meeting)(const __grid_constant__ ist::meeting::TellWork work) {
  if (work.own != nullptr && threadIdx.x == 0) ist::meeting::tell(work);
}
KERNEL(compare_meeting)(const __grid_constant__ ist::meeting::CompareWork work) {
  if (work.own != nullptr && threadIdx.x == 0) ist::meeting::compare(work);
}
