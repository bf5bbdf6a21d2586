#include "face/message/layout_calls.hpp"

#include <algorithm>
#include <mutex>

#include "layout/form.hpp"
#include "protocol/choose_packing.hpp"
#include "request/wait.hpp"

namespace ist {
namespace {

constexpr Bytes kHostChunk = mebibytes(1);
constexpr Bytes kDeviceChunk = mebibytes(64);

void move_on_host(const Laid& laid, const PackPart& part, std::byte* packed) {
  std::byte* const base = laid.memory.address() + laid.origin;
  if (part.unpacks)
    unpack(laid.shape->form, base, part.from, part.to, packed);
  else
    pack(laid.shape->form, base, part.from, part.to, packed);
}

// Part after part through a block: `move` between the layout and the block, a copy between the block and the packed bytes.
template <class Move>
Status in_chunks(World& world, const PackPart& part, const Piece& packed, const Piece& block, const Move& move) {
  const auto chunk = static_cast<std::int64_t>(block.size.value);
  for (std::int64_t from = part.from; from < part.to; from += chunk) {
    const PackPart now{from, std::min(part.to, from + chunk), part.unpacks};
    const Bytes length{static_cast<std::uint64_t>(now.to - now.from)};
    const Piece here = block.part(Offset{}, length);
    const Piece there = packed.part(Offset{static_cast<std::uint64_t>(from - part.from)}, length);
    if (part.unpacks) IST_TRY(copy_pieces(world, here, there));
    IST_TRY(move(now, here));
    if (!part.unpacks) IST_TRY(copy_pieces(world, there, here));
  }
  return {};
}

PackWork work_for(const Laid& laid, const PackPart& part, const Piece& packed) {
  return {form_of(laid.shape), laid.memory, laid.origin, packed, part.from, part.to, part.unpacks};
}

using Pays = bool (*)(const PackedShape& shape, const MachineProfile& machine);
// In rows, where the kind makes such copies of that work and they cost less than what else does it.
bool in_rows(World& world, const PackWork& work, Packing& packing, Pays pay) {
  MessageShape message;
  message.bytes = work.packed.size;
  return pay(packed_shape(work, &packing, message), world.engine().parts().machine);
}

// What is pending on the layout's memory, or on the packed bytes where that is the host's, the device waits for; the other side is ready.
Status by_device(World& world, const PackWork& work, Packing& packing) {
  auto before = world.kinds().ready(work.memory.kind != KindId::host ? work.memory : work.packed);
  if (!before.ok()) return before.status();
  auto ticket = packing.pack_bytes(work, *before);
  if (!ticket.ok()) return ticket.status();
  IST_TRY(wait_for_ticket(world.engine(), *ticket));
  return wait_for_ticket(world.engine(), *before);
}

Status through_host_block(World& world, const Laid& laid, const PackPart& part, const Piece& packed) {
  if (Packing* const packing = world.kinds().find(packed.kind)->packing()) {
    PackWork work = work_for(laid, part, packed);
    work.rows = in_rows(world, work, *packing, rows_of_host);
    if (work.rows && by_device(world, work, *packing).ok()) return {};  // the processor can do what a driver refuses
  }
  const Bytes chunk = smaller(kHostChunk, packed.size);
  auto block = world.pool().take(chunk);
  if (!block.ok()) block = world.pool().take_pageable(chunk);
  if (!block.ok()) return block.status();
  return in_chunks(world, part, packed, host_piece(block->data(), chunk), [&](const PackPart& now, const Piece& here) {
    move_on_host(laid, now, here.address());
    return Status{};
  });
}

Status by_kernel(World& world, const Laid& laid, const PackPart& part, const Piece& packed) {
  Packing& packing = *world.kinds().find(laid.memory.kind)->packing();
  PackWork work = work_for(laid, part, packed);
  work.rows = in_rows(world, work, packing, rows_within_device);
  return by_device(world, work, packing);
}

Status on_device(World& world, const Laid& laid, const PackPart& part, const Piece& packed) {
  IST_TRY(can_pack(world.kinds(), laid.memory));
  MemoryKind& kind = *world.kinds().find(laid.memory.kind);
  if (packed.kind == laid.memory.kind && kind.together(packed, laid.memory)) {
    auto ready = world.kinds().ready(packed);
    if (!ready.ok()) return ready.status();
    IST_TRY(wait_for_ticket(world.engine(), *ready));
    return by_kernel(world, laid, part, packed);
  }
  const Bytes chunk = smaller(kDeviceChunk, packed.size);
  if (packed.kind == KindId::host) {
    PackWork work = work_for(laid, part, packed);
    work.rows = in_rows(world, work, *kind.packing(), rows_over_bus);
    if (work.rows) return by_device(world, work, *kind.packing());
  }
  const auto block = world.engine().scratch().take(laid.memory, chunk);
  if (!block.ok()) return block.status();
  // Nothing is pending on the library's own memory, whatever queue it came with.
  Piece scratch = block->piece().part(Offset{}, chunk);
  scratch.ready = true;
  return in_chunks(world, part, packed, scratch,
                   [&](const PackPart& now, const Piece& here) { return by_kernel(world, laid, now, here); });
}

}  // namespace

SharedLayout types_of(const LaidData& data) {
  const auto found = layout_of(data.layout);
  return found.ok() ? types_of(data.count, found->layout) : nullptr;
}

Result<Laid> lay(World& world, const LaidData& data, bool written) {
  auto shape = shape_of(data.count, data.layout, written);
  if (!shape.ok()) return shape.status();
  return lay(world, data.buffer, std::move(*shape));
}

Result<ist_buffer> from_first_byte(const ist_buffer& at, const Bounds& reach) {
  ist_buffer buffer = at;
  const auto begin = static_cast<std::int64_t>(buffer.offset) + reach.lower;
  if (begin >= 0 || buffer.object == 0) {
    buffer.offset = static_cast<std::uint64_t>(std::max<std::int64_t>(begin, 0));
  } else if (buffer.kind == IST_KIND_OPENCL) {
    return Status{IST_ERR_ARGUMENT, "the layout begins " + std::to_string(-reach.lower) +
                                        " bytes before the buffer, which is " + std::to_string(buffer.offset) +
                                        " bytes from the beginning of its cl_mem; give a buffer further inside"};
  } else {
    buffer.object += static_cast<std::uint64_t>(begin);
    buffer.offset = 0;
  }
  return buffer;
}

Result<Laid> lay(World& world, const ist_buffer& at, SharedShape shape) {
  const Bounds reach = shape->reach;
  const bool empty = shape->form.size == 0;
  Laid laid{std::move(shape), host_piece(nullptr, Bytes{}), -reach.lower};
  if (empty) return laid;
  const auto buffer = from_first_byte(at, reach);
  if (!buffer.ok()) return buffer.status();
  auto piece = world.kinds().resolve(*buffer, Bytes{static_cast<std::uint64_t>(reach.extent())});
  if (!piece.ok()) return piece.status();
  laid.memory = *piece;
  return laid;
}

std::optional<Piece> in_one_piece(const Laid& laid) {
  if (!laid.shape->form.in_one_piece()) return {};
  return laid.memory.part(Offset{static_cast<std::uint64_t>(laid.origin + laid.shape->form.offset)}, laid.size());
}

Status can_pack(const Kinds& kinds, const Piece& memory) {
  if (memory.kind == KindId::host) return {};
  MemoryKind& kind = *kinds.find(memory.kind);
  if (kind.packing() == nullptr)
    return {IST_ERR_KIND, "the " + std::string{kind.name()} +
                              " driver of this machine has not what kernels that pack need; pack from host memory"};
  return kind.packing()->can_pack(std::max(memory.device, 0));
}

PackWork work_of(const Laid& laid) {
  PackWork work{form_of(laid.shape), laid.memory, laid.origin, laid.memory, 0, laid.shape->form.size, false};
  work.packed.size = laid.size();
  return work;
}

// A receive may wait for long, and a send for its receive: of what others need for their copies only little is taken.
Result<std::unique_ptr<LaidOut>> block_for(Engine& engine, const PackWork& work) {
  IST_TRY(can_pack(engine.parts().kinds, work.memory));
  auto made = std::make_unique<LaidOut>();
  made->work = work;
  if (work.memory.kind == KindId::host) {
    const Bytes size = work.packed.size;
    auto block = size > kHostChunk ? engine.parts().pool.take_pageable(size) : engine.parts().pool.take(size);
    if (!block.ok()) block = engine.parts().pool.take_pageable(size);
    if (!block.ok()) return block.status();
    made->host = std::move(*block);
    made->work.packed = host_piece(made->host.data(), size);
    return made;
  }
  IST_TRY(take_block(*made, engine.scratch()));
  return made;
}

Result<std::unique_ptr<LaidOut>> to_be_sent(Engine& engine, const PackWork& work, Rank dest, SendMode mode) {
  if (work.memory.kind == KindId::host) {
    auto block = block_for(engine, work);
    if (block.ok()) pack(*work.form, work.memory.address() + work.origin, 0, work.to, (*block)->work.packed.address());
    return block;
  }
  IST_TRY(can_pack(engine.parts().kinds, work.memory));
  auto made = std::make_unique<LaidOut>();
  made->work = work;
  {
    const std::lock_guard lock(engine.lock());
    made->waits = engine.packs_late(made->work, dest, mode);
  }
  if (!made->waits) IST_TRY(take_block(*made, engine.scratch()));
  return made;
}

Result<std::unique_ptr<LaidOut>> to_be_received(Engine& engine, const PackWork& work) {
  auto block = block_for(engine, work);
  if (block.ok()) (*block)->work.unpacks = true;
  return block;
}

Status pack_part(World& world, const Laid& laid, const PackPart& part, const Piece& packed) {
  if (part.from >= part.to) return {};
  if (const auto whole = in_one_piece(laid)) {
    const Piece there = whole->part(Offset{static_cast<std::uint64_t>(part.from)}, packed.size);
    return part.unpacks ? copy_pieces(world, there, packed) : copy_pieces(world, packed, there);
  }
  if (laid.memory.kind != KindId::host) return on_device(world, laid, part, packed);
  if (packed.kind != KindId::host) return through_host_block(world, laid, part, packed);
  move_on_host(laid, part, packed.address());
  return {};
}

}  // namespace ist
