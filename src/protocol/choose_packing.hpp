// Where the bytes of a layout come together on their way from one device to another or to the host, or apart, and by what: the cheapest of what
// is possible, from values alone.
//
// Who calls this : request/engine, once for each such message; face/, which packs; protocol/explain.
// Threads        : pure functions.
// Ownership      : none.
// Errors         : none; what is impossible has a reason.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/packing.hpp"
#include "protocol/choose.hpp"

namespace ist {

struct PackedShape {
  MessageShape message;                           // of the same bytes in one piece, from memory of a device
  std::int64_t width = 16;                        // bytes that a kernel moves at once
  std::int64_t rows = 0;                          // that a copy engine would copy; 0: it takes no such layout
  const char* no_rows = "the layout is no rows";  // then: why
  const char* no_slots = "the ring's slots are not mapped for the device";  // null: its kernels reach them
};

enum class PackingWay : std::uint8_t {
  block,       // in a block of the library's on the same device, which is sent, or was received, as any buffer
  link,        // on the way: one kernel stores them into the other rank's memory, or loads them from there
  slots,       // kernels store them into the page-locked slots of the pair's ring, or load them from there
  block_rows,  // both by copies of rows, which a copy engine makes
  link_rows,
  slot_rows  // by such copies between the device and the page-locked slots of the pair's ring
};
constexpr bool is_by_rows(PackingWay way) { return way >= PackingWay::block_rows; }
// With no block on the side of the layout?
constexpr bool is_on_the_way(PackingWay way) { return way != PackingWay::block && way != PackingWay::block_rows; }

namespace price {
// Of the side that sends; and of the side that receives what lies in one piece at its sender.
double packing(PackingWay way, const PackedShape& shape, const MachineProfile& machine);
double unpacking(PackingWay way, const PackedShape& shape, const MachineProfile& machine);
}  // namespace price

struct OfferedPacking {
  PackingWay way;
  Bill price;
};
std::vector<OfferedPacking> packings(const PackedShape& shape, const MachineProfile& machine);
std::vector<OfferedPacking> unpackings(const PackedShape& shape, const MachineProfile& machine);
PackingWay choose_packing(const PackedShape& shape, const MachineProfile& machine);
PackingWay choose_unpacking(const PackedShape& shape, const MachineProfile& machine);
// Both sides have gaps: does a kernel of the receiver's, from one layout to the other, cost less than one on each side? Asked by the sender,
// whom the receiver has cleared.
bool lends_apart(const PackedShape& shape, const MachineProfile& machine);
// What it compares, from when the receiver has cleared the message on.
struct OfferedApart {
  Bill one_kernel;
  Bill two_kernels;
};
OfferedApart offers_apart(const PackedShape& shape, const MachineProfile& machine);

// Of one step alone, whatever carries the message: do copies of rows cost less than a kernel?
bool rows_within_device(const PackedShape& shape, const MachineProfile& machine);
bool rows_over_link(const PackedShape& shape, const MachineProfile& machine);
// Of what goes through the ring between the layout and a buffer of the other kind: slots, slot_rows, or by a block. `unpacks`: the layout receives.
PackingWay through_slots(const PackedShape& shape, KindId other, bool unpacks, const MachineProfile& machine);
// Less than a kernel and a copy of the block? And less than the processor and a copy, where the layout is of page-locked host memory?
bool rows_over_bus(const PackedShape& shape, const MachineProfile& machine);
bool rows_of_host(const PackedShape& shape, const MachineProfile& machine);

// The shape of a work for a message that would be this one in one piece.
PackedShape packed_shape(const PackWork& work, Packing* packing, const MessageShape& message);

}  // namespace ist
