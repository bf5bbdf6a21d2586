// Isthmus in kernels: what a packet is. 8 bytes, 4 of data and 4 of its message's number, so that it says itself whether it is there; two
// of them go in one store of 16 bytes, and each is looked at by itself, because nobody promises that 16 bytes come whole over every link.
//
// Who calls this : packets.cuh; the library's own kernels (src/memory/cuda/channel_protocol.hpp and what is beside it).
// Threads        : pure functions.
// Ownership      : none.
// Errors         : none.
#ifndef ISTHMUS_DEVICE_PACKET_CUH
#define ISTHMUS_DEVICE_PACKET_CUH

#include "isthmus/device/words.cuh"

namespace ist::device {

// Two packets of that number with eight bytes of data.
IST_DEVICE_CODE Pair packed(std::uint32_t number, std::uint64_t data) {
  const std::uint64_t upper = static_cast<std::uint64_t>(number) << 32;
  return {upper | static_cast<std::uint32_t>(data), upper | data >> 32};
}
IST_DEVICE_CODE bool has_come(const Pair& packets, std::uint32_t number) {
  return static_cast<std::uint32_t>(packets.low >> 32) == number && static_cast<std::uint32_t>(packets.high >> 32) == number;
}
IST_DEVICE_CODE std::uint64_t bytes_in(const Pair& packets) {
  return static_cast<std::uint32_t>(packets.low) | packets.high << 32;
}

}  // namespace ist::device

#endif
