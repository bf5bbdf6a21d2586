// Memory of the library's own in a context that may be its user's.
//
// Who calls this : scratch_pool, refused_rows, cuda_run_lists, face/halo.
// Threads        : a value.
// Ownership      : its holder releases it; the kind outlives it.
// Errors         : none.
//
// Such memory ends with a context that its user destroys, and other memory may lie at its address then, which is nobody's here to use or
// to release: the driver's number for an allocation is never used again.
#pragma once

#include "memory/memory_kind.hpp"

namespace ist {

class Allocated {
 public:
  Allocated() = default;  // none
  // What the kind has just allocated.
  Allocated(MemoryKind& kind, const Piece& piece) : kind_(&kind), piece_(piece), number_(number_there()) {}
  const Piece& piece() const { return piece_; }
  bool is_there() const { return kind_ != nullptr && number_there() == number_; }
  // Both do nothing where it is not.
  void release() const {
    if (is_there()) static_cast<void>(kind_->release(piece_));
  }
  void release_later() const {
    if (is_there()) kind_->release_later(piece_);
  }

 private:
  // 0: the kind has no numbers.
  std::uint64_t number_there() const {
    const auto known = kind_->recognise(piece_.address());
    return known ? known->buffer_id : 0;
  }
  MemoryKind* kind_ = nullptr;
  Piece piece_;
  std::uint64_t number_ = 0;
};

}  // namespace ist
