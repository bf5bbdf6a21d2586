// What the calls that take a layout have in common: where its bytes lie, and bringing them together.
//
// Who calls this : api_pack.cpp, api_layout_message.cpp, laid_sides.cpp, heap/api_heap_layouts.cpp.
// Threads        : any.
// Ownership      : what is found shares the layout's form.
// Errors         : returned without the call's name; in_call() adds it.
#pragma once

#include "face/message/calls.hpp"
#include "face/message/layouts.hpp"

namespace ist {

// So many layouts at a buffer, as the user gave them.
struct LaidData {
  const ist_buffer& buffer;
  std::int64_t count;
  ist_layout layout;
};

// The same, checked.
struct Laid {
  SharedShape shape;
  Piece memory;             // from the first of its bytes to the last
  std::int64_t origin = 0;  // where in it the layout's byte 0 lies
  Bytes size() const { return Bytes{static_cast<std::uint64_t>(shape->form.size)}; }
};

// What it is made of, of a layout that has been found before.
SharedLayout types_of(const LaidData& data);
Result<Laid> lay(World& world, const LaidData& data, bool written);
Result<Laid> lay(World& world, const ist_buffer& at, SharedShape shape);
// The bytes as they lie, if they do so next to each other.
std::optional<Piece> in_one_piece(const Laid& laid);
// Packs (or unpacks) bytes `from` up to `to`, and returns when they have arrived; moves the world's messages on meanwhile.
struct PackPart {
  std::int64_t from = 0;
  std::int64_t to = 0;
  bool unpacks = false;
};
Status pack_part(World& world, const Laid& laid, const PackPart& part, const Piece& packed);
// What there is to pack, without a block yet: in its place stands the memory, as if its first bytes were those. IST_ERR_KIND where its
// device cannot pack.
Result<std::unique_ptr<LaidOut>> laid_out(World& world, const Laid& laid);
// The same with a block of the library's for all of its bytes, near them.
Result<std::unique_ptr<LaidOut>> block_for(World& world, const Laid& laid);
// Why the device that holds the memory cannot pack; ok if it can, and for host memory.
Status can_pack(World& world, const Piece& memory);

}  // namespace ist
