// A symmetric heap: what lies at an offset of one PE's part lies there in every PE's, and all parts are in reach of this process.
//
// Who calls this : face/heap.
// Threads        : any; what changes an allocation is collective, and one at a time.
// Ownership      : owns the space with its mappings.
// Errors         : IST_ERR_ARGUMENT and IST_ERR_RANK, with the address or PE that was given and what there is.
//
// Every part begins with the synchronisation area that views (isthmus/team.h) tell of; what is allocated lies behind it.
#pragma once

#include <isthmus/team.h>

#include <atomic>
#include <memory>
#include <mutex>

#include "heap/offset_allocator.hpp"
#include "memory/piece.hpp"
#include "memory/spaces.hpp"

namespace ist {

class SymmetricHeap {
 public:
  struct Shape {
    KindId kind = KindId::host;
    int device = 0;  // of this PE
    Pe pe;
    int pes = 0;
    Bytes bytes;  // of each part, the synchronisation area included
    Bytes stride;
    SpaceReach reach = SpaceReach::processor;
  };
  SymmetricHeap(const Shape& shape, std::unique_ptr<Space> space);

  const Shape& shape() const { return shape_; }
  Space& space() { return *space_; }
  Result<Offset> allocate(Bytes size, std::uint64_t alignment) {
    const std::lock_guard lock(mutex_);
    return allocator_.allocate(size, alignment);
  }
  Status release(Offset offset) {
    const std::lock_guard lock(mutex_);
    return allocator_.release(offset).status();
  }
  // Was something allocated that begins there?
  bool begins_at(Offset offset) const {
    const std::lock_guard lock(mutex_);
    return allocator_.size_at(offset) != Bytes{};
  }
  struct Room {
    Bytes free;
    Bytes largest;
  };
  Room room() const {
    const std::lock_guard lock(mutex_);
    return {allocator_.free(), allocator_.largest()};
  }
  Bytes bytes() const { return Bytes{bytes_.load(std::memory_order_acquire)}; }
  // The space has so many bytes in every part now.
  void grow(Bytes bytes);

  std::byte* at(Pe pe, Offset offset) const {
    return space_->base() + static_cast<std::uint64_t>(pe.value) * shape_.stride.value + offset.value;
  }
  // To copy there from here, by the processor where that reaches it. Of memory that its owner alone reaches: the own part's.
  Piece piece(Pe pe, Offset offset, Bytes size) const;
  // The own part, as its kind names memory.
  ist_buffer buffer(Offset offset) const;
  // Where an address of this PE's own part is, `size` bytes of which must be there.
  Result<Offset> locate(const void* address, Bytes size) const;
  Status check(int pe) const;

  void fill(ist_team_view& view) const;

 private:
  Status outside(const void* address, Bytes size) const;
  Shape shape_;
  std::unique_ptr<Space> space_;
  std::atomic<std::uint64_t> bytes_;
  mutable std::mutex mutex_;
  OffsetAllocator allocator_;
};

}  // namespace ist
