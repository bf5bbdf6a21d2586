// Where the bytes of a layout come together on their way from one device to another, or apart: the cheapest of what is possible, from
// values alone.
//
// Who calls this : request/engine, once for each such message; protocol/explain.
// Threads        : pure functions.
// Ownership      : none.
// Errors         : none; what is impossible has a reason.
#pragma once

#include <cstdint>
#include <vector>

#include "protocol/choose.hpp"

namespace ist {

struct PackedShape {
  MessageShape message;     // of the same bytes in one piece, from memory of a device
  std::int64_t width = 16;  // bytes that a kernel moves at once
};

enum class PackingWay : std::uint8_t {
  block,  // in a block of the library's on the same device, which is sent, or was received, as any buffer
  link    // on the way: one kernel stores them into the other rank's memory, or loads them from there
};

namespace price {
double pack_in_block(const PackedShape& shape, const MachineProfile& machine);
double pack_over_link(const PackedShape& shape, const MachineProfile& machine);
double unpack_from_block(const PackedShape& shape, const MachineProfile& machine);
double unpack_over_link(const PackedShape& shape, const MachineProfile& machine);
}  // namespace price

struct OfferedPacking {
  PackingWay way;
  Bill price;
};
// Of the side that sends; and of the side that receives what lies in one piece at its sender.
std::vector<OfferedPacking> packings(const PackedShape& shape, const MachineProfile& machine);
std::vector<OfferedPacking> unpackings(const PackedShape& shape, const MachineProfile& machine);
PackingWay choose_packing(const PackedShape& shape, const MachineProfile& machine);
// Both sides have gaps: does a kernel of the receiver's, from one layout to the other, cost less than one on each side? Asked by the sender,
// whom the receiver has cleared.
bool lends_apart(const PackedShape& shape, const MachineProfile& machine);
PackingWay choose_unpacking(const PackedShape& shape, const MachineProfile& machine);

}  // namespace ist
