// One copy between any two pieces of this process, started and then stepped: directly where one kind can do it, otherwise in
// chunks through page-locked host memory with both directions in flight.
//
// Who calls this : protocol/direct, face (ist_memory_copy), match (late delivery of an unexpected message).
// Threads        : one at a time.
// Ownership      : owns its staging blocks; not the pieces.
// Errors         : returned by step(); after an error the transfer is finished.
#pragma once

#include <array>
#include <cstdint>

#include "memory/pinned_pool.hpp"

namespace ist {

class Transfer {
 public:
  // to.size == from.size. The copy begins after `after_from` (work pending on the source) and `after_to`.
  Transfer(const Kinds& kinds, PinnedPool& pool, const Piece& to, const Piece& from);
  Transfer(Transfer&&) = default;
  Transfer& operator=(Transfer&&) = default;
  // Does what can be done without waiting; true when every byte has arrived.
  Result<bool> step();

 private:
  static constexpr int kStages = 2;
  struct Stage {
    PinnedPool::Block block;
    Ticket inward;     // source to block
    Ticket outward;    // block to destination
    Bytes length;
    Offset at;
    enum class State : std::uint8_t { idle, filling, draining } state = State::idle;
  };
  Result<bool> step_direct();
  Result<bool> step_staged();
  Status start_ready();

  const Kinds* kinds_;
  PinnedPool* pool_;
  Piece to_;
  Piece from_;
  MemoryKind* copier_ = nullptr;
  bool ready_asked_ = false;
  bool started_ = false;
  Ticket from_ready_;
  Ticket to_ready_;
  Ticket ticket_;
  std::array<Stage, kStages> stages_;
  Offset next_;       // first byte not yet taken from the source
  Bytes delivered_;
};

}  // namespace ist
