#include "heap/symmetric_heap.hpp"

#include <string>

#include "base/hexadecimal.hpp"

namespace ist {
namespace {

std::uint64_t number_of(const void* address) { return reinterpret_cast<std::uint64_t>(address); }

}  // namespace

SymmetricHeap::SymmetricHeap(const Shape& shape, std::unique_ptr<Space> space)
    : shape_(shape),
      space_(std::move(space)),
      bytes_(shape.bytes.value),
      allocator_(Offset{IST_TEAM_SYNC_BYTES(static_cast<std::uint64_t>(shape.pes))}, Offset{shape.bytes.value}) {}

void SymmetricHeap::grow(Bytes bytes) {
  const std::lock_guard lock(mutex_);
  allocator_.grow(Offset{bytes.value}, space_->in_objects());
  bytes_.store(bytes.value, std::memory_order_release);
}

Piece SymmetricHeap::piece(Pe pe, Offset offset, Bytes size) const {
  Piece piece = host_piece(at(pe, offset), size);
  piece.ready = true;  // whoever has streams write there orders them himself
  if (shape_.reach == SpaceReach::processor) {
    piece.device = 0;
    return piece;
  }
  piece.kind = shape_.kind;
  piece.device = pe == shape_.pe ? shape_.device : -1;
  if (shape_.reach == SpaceReach::owner) {
    // What is where in another PE's part that PE knows.
    const Space::Named own = space_->named(offset);
    piece.object = own.object;
    piece.offset = pe == shape_.pe ? own.offset : offset;
  }
  return piece;
}

ist_buffer SymmetricHeap::buffer(Offset offset) const {
  ist_buffer buffer{};
  buffer.kind = static_cast<std::uint32_t>(shape_.kind);
  buffer.device = shape_.kind == KindId::host ? 0 : shape_.device;
  const Space::Named own = space_->named(offset);
  buffer.object = own.object;
  buffer.offset = own.offset.value;
  buffer.queue = space_->queue();
  if (buffer.object == 0) {
    buffer.object = number_of(at(shape_.pe, offset));
    buffer.offset = 0;
  }
  return buffer;
}

Result<Offset> SymmetricHeap::locate(const void* address, Bytes size) const {
  const std::uint64_t offset = number_of(address) - number_of(at(shape_.pe, Offset{}));
  const std::uint64_t there = bytes().value;
  if (offset >= there || size.value > there - offset) return outside(address, size);
  if (space_->in_objects())
    if (const Space::Named own = space_->named(Offset{offset}); size > own.left)
      return Status{IST_ERR_ARGUMENT,
                    std::to_string(size.value) + " bytes at " + hexadecimal(number_of(address)) +
                        " were named, and the buffer that they begin in has " + std::to_string(own.left.value) +
                        " from there on; this heap has grown by further buffers, and what ist_heap_alloc gave lies in one"};
  return Offset{offset};
}

Status SymmetricHeap::outside(const void* address, Bytes size) const {
  const std::uint64_t first = number_of(at(shape_.pe, Offset{}));
  std::string text = std::to_string(size.value) + " bytes at " + hexadecimal(number_of(address)) +
                     " were named; the part of PE " + std::to_string(shape_.pe.value) + ", which calls, goes from " +
                     hexadecimal(first) + " to " + hexadecimal(first + bytes().value);
  const std::uint64_t from_all = number_of(address) - number_of(space_->base());
  const std::uint64_t other = from_all / shape_.stride.value;
  if (other < static_cast<std::uint64_t>(shape_.pes) && other != static_cast<std::uint64_t>(shape_.pe.value))
    text += ", and that is in the part of PE " + std::to_string(other);
  return {IST_ERR_ARGUMENT, text + "; name memory of the own part, as ist_heap_alloc gave it, and the PE beside it"};
}

Status SymmetricHeap::check(int pe) const {
  if (pe >= 0 && pe < shape_.pes) return {};
  return {IST_ERR_RANK, "pe is " + std::to_string(pe) + "; this heap has PEs 0 to " + std::to_string(shape_.pes - 1)};
}

void SymmetricHeap::fill(ist_team_view& view) const {
  view.pe = shape_.pe.value;
  view.pes = shape_.pes;
  view.base = reinterpret_cast<unsigned char*>(space_->base());
  view.stride = shape_.stride.value;
  view.bytes = bytes().value;
  view.sync = 0;
  view.sync_bytes = IST_TEAM_SYNC_BYTES(static_cast<std::uint64_t>(shape_.pes));
}

}  // namespace ist
