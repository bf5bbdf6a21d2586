// The kernels that pack and unpack: pack_protocol.hpp with the threads of a device, for each width.
//
// Who calls this : cuda_kernels.cu, whose image they are part of.
// Threads        : any number.
// Ownership      : none.
// Errors         : none.
#pragma once

#include "memory/cuda/box_protocol.hpp"
#include "memory/cuda/channel_crew.hpp"
#include "memory/cuda/pack_protocol.hpp"

#define PACK_KERNEL(name, width, word, unpacks, listed, far)                                      \
  extern "C" __global__ void __launch_bounds__(256)                                               \
      isthmus_##name##_##width(const __grid_constant__ ist::packing::Work work) {                 \
    ist::packing::move<word, unpacks, listed, far>(ist::channel::DeviceCrew{0, gridDim.x}, work); \
  }
// Named as pack_kernel_name() says.
#define PACK_KERNELS(width, word)                                 \
  PACK_KERNEL(pack_strided, width, word, false, false, false)     \
  PACK_KERNEL(unpack_strided, width, word, true, false, false)    \
  PACK_KERNEL(pack_listed, width, word, false, true, false)       \
  PACK_KERNEL(unpack_listed, width, word, true, true, false)      \
  PACK_KERNEL(pack_far_strided, width, word, false, false, true)  \
  PACK_KERNEL(unpack_far_strided, width, word, true, false, true) \
  PACK_KERNEL(pack_far_listed, width, word, false, true, true)    \
  PACK_KERNEL(unpack_far_listed, width, word, true, true, true)

PACK_KERNELS(1, std::uint8_t)
PACK_KERNELS(2, std::uint16_t)
PACK_KERNELS(4, std::uint32_t)
PACK_KERNELS(8, std::uint64_t)
PACK_KERNELS(16, ist::packing::Sixteen)

#define RELAY_KERNEL(width, word)                                                       \
  extern "C" __global__ void __launch_bounds__(256)                                     \
      isthmus_relay_strided_##width(const __grid_constant__ ist::packing::Relay work) { \
    ist::packing::relay<word>(ist::channel::DeviceCrew{0, gridDim.x}, work);            \
  }                                                                                     \
  extern "C" __global__ void __launch_bounds__(256)                                     \
      isthmus_relay_any_##width(const __grid_constant__ ist::packing::Relay work) {     \
    ist::packing::relay_any<word>(ist::channel::DeviceCrew{0, gridDim.x}, work);        \
  }
RELAY_KERNEL(1, std::uint8_t)
RELAY_KERNEL(2, std::uint16_t)
RELAY_KERNEL(4, std::uint32_t)
RELAY_KERNEL(8, std::uint64_t)
RELAY_KERNEL(16, ist::packing::Sixteen)

#define BOX_KERNEL(name, unpacks)                                                     \
  extern "C" __global__ void __launch_bounds__(256)                                   \
      isthmus_##name##_boxes(const __grid_constant__ ist::packing::Boxes boxes) {     \
    ist::packing::move_boxes<unpacks>(ist::channel::DeviceCrew{0, gridDim.x}, boxes); \
  }
BOX_KERNEL(pack, false)
BOX_KERNEL(unpack, true)
