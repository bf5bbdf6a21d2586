// Which places in memory were used last, with no more than a cache holds used elsewhere since.
//
// Who calls this : protocol/ring_sender.cpp and request/engine_send.cpp, of what is sent; memory/host/handing_copy.cpp, of what is received.
// Threads        : its owner's.
// Ownership      : addresses as values; nothing is read there.
// Errors         : none.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/units.hpp"

namespace ist {

class RecentPlaces {
 public:
  // As much as a second cache has today. And no more than so many places are told apart.
  static constexpr Bytes kKept = mebibytes(1);
  static constexpr std::size_t kMost = 8;

  // So many bytes from there on are used now. Was that place before, for any number of bytes, and no more than kKept elsewhere since? Of each
  // other place its last use counts.
  bool use(const std::byte* first, Bytes size) {
    Bytes since;
    std::size_t at = 0;
    for (; at < count_ && places_[at].first != first; ++at) since = since + places_[at].size;
    const bool found = at < count_;
    if (!found) count_ = std::min(count_ + 1, kMost);
    at = std::min(at, count_ - 1);
    for (; at > 0; --at) places_[at] = places_[at - 1];
    places_[0] = {first, size};
    return found && since <= kKept;
  }

 private:
  struct Place {
    const std::byte* first = nullptr;
    Bytes size;
  };
  std::array<Place, kMost> places_{};  // the last one first
  std::size_t count_ = 0;
};

}  // namespace ist
