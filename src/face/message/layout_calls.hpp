// What the calls that take a layout have in common: where its bytes lie, and bringing them together.
//
// Who calls this : api_pack.cpp, api_layout_message.cpp, api_persistent.cpp, laid_sides.cpp, heap/api_heap_layouts.cpp.
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
// The buffer from the first of its bytes on.
Result<ist_buffer> from_first_byte(const ist_buffer& at, const Bounds& reach);
// The bytes as they lie, if they do so next to each other.
std::optional<Piece> in_one_piece(const Laid& laid);
// Packs (or unpacks) bytes `from` up to `to`, and returns when they have arrived; moves the world's messages on meanwhile.
struct PackPart {
  std::int64_t from = 0;
  std::int64_t to = 0;
  bool unpacks = false;
};
Status pack_part(World& world, const Laid& laid, const PackPart& part, const Piece& packed);
// What there is to pack, without a block yet: in its place stands the memory, as if its first bytes were those.
PackWork work_of(const Laid& laid);
// The same with a block of the library's for all of its bytes, near them. IST_ERR_KIND where its device cannot pack.
Result<std::unique_ptr<LaidOut>> block_for(Engine& engine, const PackWork& work);
// The next two without the engine's lock. For Engine::start_send_laid(): with a block, which holds the bytes already on the host, unless a kernel is to pack them straight into
// that rank's memory.
Result<std::unique_ptr<LaidOut>> to_be_sent(Engine& engine, const PackWork& work, Rank dest, SendMode mode);
// For Engine::start_receive_laid().
Result<std::unique_ptr<LaidOut>> to_be_received(Engine& engine, const PackWork& work);
// Why the device that holds the memory cannot pack; ok if it can, and for host memory.
Status can_pack(const Kinds& kinds, const Piece& memory);

}  // namespace ist
