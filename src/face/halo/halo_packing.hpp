// The packings of one exchange: which layouts of which fields go where in a buffer, and the three ways to have them packed.
//
// Who calls this : halo_exchange.cpp, halo_binding.cpp, halo_streams.cpp.
// Threads        : one at a time per exchange.
// Ownership      : tasks share forms; buffers and fields are others'.
// Errors         : returned; nothing touches fields or buffers any more then.
#pragma once

#include <span>
#include <vector>

#include "face/halo/halo_pattern.hpp"
#include "face/message/calls.hpp"
#include "memory/packing.hpp"

namespace ist::halo {

// Where a field lies.
struct Placed {
  Piece memory;
  std::uint64_t allocation = 0;  // fields with the same one can be reached by one layout
};

struct Task {
  SharedForm form;
  Piece memory;
  std::int64_t origin = 0;
  std::int64_t at = 0;  // in the buffer
  bool own = false;     // from this rank to itself
};

// What lies in a row in a buffer: a section of a field, for a partner.
struct Laid {
  const Section* section = nullptr;
  std::size_t partner = 0;
  std::int64_t at = 0;
  bool own = false;
};

// What is between fields and a buffer, one way. `packing` is not IST_HALO_AUTO.
struct Packer {
  ist_halo_packing packing = IST_HALO_CALLS;
  bool unpacks = false;
  std::vector<Task> tasks;  // this rank's own are the first ones
};
Result<Packer> packer_of(std::span<const Laid> laid, std::span<const Placed> fields, ist_halo_packing packing, bool unpacks,
                         MemoryKind& kind);

// Between the fields and two buffers: of this rank's own cells, and of others'. Returns when the bytes have arrived, and moves the
// world's messages on meanwhile.
Status run(World& world, const Packer& packer, const Piece& own, const Piece& others);

// The tasks as works for a kind that packs.
std::vector<PackWork> works_of(const Packer& packer, const Piece& own, const Piece& others);

}  // namespace ist::halo
