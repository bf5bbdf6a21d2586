// Rows between a device and the host that its driver refuses to copy: they go by a block beside the device's side, a kernel and one copy.
//
// Who calls this : kinds whose drivers copy rows.
// Threads        : any.
// Ownership      : owns the blocks, which go when the device has done with them and somebody asks again, or by clear().
// Errors         : of what was refused, where the block cannot be made or moved either.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "memory/allocated.hpp"
#include "memory/packing.hpp"

namespace ist {

class RefusedRows {
 public:
  // Since the first refusal, for Packing::refuses_rows(); null: none yet.
  const char* why();
  // Of rows that were refused just now, which is said once. Rows of the host's memory are not moved: their processor can do that.
  Result<Ticket> instead(MemoryKind& kind, const PackWork& work, const Ticket& after, const Status& refused);
  // The same without a word: by a block, one side of the work being the host's packed bytes. As Packing::pack_bytes().
  Result<Ticket> by_block(MemoryKind& kind, const PackWork& work, const Ticket& after);
  // Before its kind ends.
  void clear();

 private:
  struct Block {
    Allocated memory;
    Ticket used;
  };
  void let_go_of_blocks();
  void keep(MemoryKind& kind, const Piece& memory, const PackWork& work, Ticket& last);
  std::atomic<bool> refused_{false};
  std::mutex mutex_;
  std::vector<Block> blocks_;
};

}  // namespace ist
