// How many messages, and how many bytes, went each way between this rank and a peer.
//
// Who calls this : the engine adds, where a message is complete; face/ reads.
// Threads        : under the world's lock, so that an addition is a plain one.
// Ownership      : values.
// Errors         : none.
#pragma once

#include <isthmus/isthmus.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/units.hpp"

namespace ist {

// What the counters tell apart: the carriers of a status, in their order, and two that it does not know. `single_copy` is a part of
// direct, read from another process's host memory; `block` is a part of device, through a block of the receiver's.
enum class Way : std::uint8_t { slot, cell, ring, direct, nccl, device, mailbox, single_copy, block };
inline constexpr std::size_t kWays = 9;

// None: the number is no carrier, or says that there is none.
constexpr std::optional<Way> way_of(int carrier) {
  if (carrier >= IST_CARRIER_SLOT && carrier <= IST_CARRIER_MAILBOX) return static_cast<Way>(carrier - IST_CARRIER_SLOT);
  if (carrier == IST_CARRIER_SINGLE_COPY) return Way::single_copy;
  if (carrier == IST_CARRIER_BLOCK) return Way::block;
  return std::nullopt;
}

constexpr int carrier_of(Way way) {
  if (way == Way::single_copy) return IST_CARRIER_SINGLE_COPY;
  return way == Way::block ? int{IST_CARRIER_BLOCK} : IST_CARRIER_SLOT + static_cast<int>(way);
}

struct Counted {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  void add(Bytes size) { add(1, size); }
  void add(std::uint64_t several, Bytes in_all) {
    messages += several;
    bytes += in_all.value;
  }
  Counted& operator+=(const Counted& other) {
    messages += other.messages;
    bytes += other.bytes;
    return *this;
  }
};

struct PeerTraffic {
  std::array<Counted, kWays> sent{};
  std::array<Counted, kWays> received{};
  Counted& sent_by(Way way) { return sent[static_cast<std::size_t>(way)]; }
  Counted& received_by(Way way) { return received[static_cast<std::size_t>(way)]; }
  PeerTraffic& operator+=(const PeerTraffic& other) {
    for (std::size_t way = 0; way < kWays; ++way) {
      sent[way] += other.sent[way];
      received[way] += other.received[way];
    }
    return *this;
  }
};

}  // namespace ist
