// The packings of one exchange: which layouts of which fields go where in a buffer, and the three ways to have them packed.
//
// Who calls this : halo_exchange.cpp, halo_binding.cpp, halo_streams.cpp.
// Threads        : one at a time per exchange.
// Ownership      : tasks share forms; buffers and fields are others'.
// Errors         : returned; nothing touches fields or buffers any more then.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "face/halo/halo_lanes.hpp"
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

// What is between fields and buffers, one way. `packing` is not IST_HALO_AUTO.
struct Packer {
  ist_halo_packing packing = IST_HALO_CALLS;
  bool unpacks = false;
  bool has_lists = false;   // of runs, which a device keeps as long as their forms are there
  std::vector<Task> tasks;  // this rank's own are the first ones
  // The buffers: of this rank's own cells, and of others', which come to one of several places.
  Piece own;
  std::vector<Piece> others;
  std::vector<std::vector<PackWork>> works;  // for each of these places, where the kind is one that packs
};
Result<Packer> packer_of(std::span<const Laid> laid, std::span<const Placed> fields, ist_halo_packing packing, bool unpacks,
                         MemoryKind& kind);
// Between the fields and these buffers from here on.
void connect(Packer& packer, const Piece& own, const std::vector<Piece>& others);

// Of a packer that is connected. Returns when the bytes have arrived, and moves the world's messages on meanwhile.
Status run(World& world, const Packer& packer, std::size_t place);

// What measuring a packing came to.
struct Trial {
  ist_halo_packing packing;
  Result<double> took;  // microseconds
};
struct Choice {
  ist_halo_packing packing;
  std::string text;  // what each took, or why it was left out
};
// The quickest of those that can be; an error where none can.
Result<Choice> quickest(std::span<const Trial> trials);
const char* name_of(ist_halo_packing packing);

}  // namespace ist::halo
