// What both ends of a ring do with the copies of its slots.
//
// Who calls this : protocol/ring_sender.cpp and ring_receiver.cpp.
// Threads        : under the world's lock.
// Ownership      : views.
// Errors         : a copy for which memory runs out has failed.
#pragma once

#include <chrono>
#include <cstdint>
#include <new>
#include <thread>
#include <utility>

#include "memory/kinds.hpp"
#include "memory/packing.hpp"
#include "protocol/eager.hpp"

namespace ist {

// Longer slots may be copied by several threads.
inline constexpr std::uint32_t kMostOfOneThread = 256 << 10;

// Copies already running touch the user's buffer: they end before the operation does. They are short, and depend on no peer.
inline void wait_for_copy(Ticket& ticket) {
  for (;;) {
    const auto finished = is_finished(ticket);
    if (!finished.ok() || *finished) return;
    std::this_thread::yield();
  }
}

// As many bytes as the slot has, of those from `first` on: by copies of rows, or a kernel.
inline Result<Ticket> between_slot(const Kinds& kinds, const PackWork& work, std::uint64_t first, const Piece& slot) {
  Packing* const packing = kinds.find(work.memory.kind)->packing();
  return packing->pack_bytes(work.part(static_cast<std::int64_t>(first), slot.size).in(slot), Ticket{});
}

// Of a slot that is taken: where memory runs out the copy has failed, which is told in the slot's turn.
template <class Copy>
Result<Ticket> begin_copy(const Copy& copy, const Status& no_memory) {
  try {
    return copy();
  } catch (const std::bad_alloc&) {
    return no_memory;
  }
}

}  // namespace ist
