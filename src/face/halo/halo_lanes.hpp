// Where everything lies in the buffers between fields and messages: a lane for each rank, and in it the sections of all fields.
//
// Who calls this : halo_exchange.cpp, once for each set of shapes; halo_way.hpp, halo_packing.hpp and halo_streams.cpp read it.
// Threads        : pure functions.
// Ownership      : lanes look at the pattern's sections, which outlive them.
// Errors         : none.
#pragma once

#include "face/halo/halo_pattern.hpp"

namespace ist::halo {

// So much a device moves at once.
inline constexpr std::int64_t kLaneAlignment = 16;

// What goes to one rank and comes from it, in the two buffers.
struct Lane {
  int rank = 0;
  std::int64_t out_at = 0;
  std::int64_t out_bytes = 0;
  std::int64_t in_at = 0;
  std::int64_t in_bytes = 0;
};

// What lies in a row in a buffer: a section of a field, for a partner.
struct Laid {
  const Section* section = nullptr;
  std::size_t partner = 0;
  std::int64_t at = 0;
  bool own = false;  // from this rank to itself
};

struct Lanes {
  std::vector<Lane> lanes;  // ranks rise
  std::vector<Laid> out;
  std::vector<Laid> in;       // this rank's own are the first ones
  std::vector<Lane> in_turn;  // those to other ranks, in an order of pairs that is the same at all ranks
};
// Of those fields; lanes begin at multiples of `alignment`. What goes to `rank`, which is this one, is unpacked from where it was packed, and
// has no place where others' arrives.
Lanes lanes_of(const Pattern& pattern, std::span<const std::size_t> fields, int rank, std::int64_t alignment);

}  // namespace ist::halo
