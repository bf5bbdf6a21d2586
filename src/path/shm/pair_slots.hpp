// The small messages of one pair: single-producer slots, one cache line for up to 24 bytes, one slot for up to 216, and
// slots that lie side by side for longer ones.
//
// Who calls this : shm_link writes, shm_path reads. Model: models/slots.pml.
// Threads        : one writer and one reader, in different processes; no lock.
// Ownership      : views of the receiver's segment.
// Errors         : none; full or empty.
//
// A message is there when the turn word of its first slot holds the position that the reader expects. The reader writes
// nothing into the slots, so that a line travels once per message, from the writer's cache to the reader's; how far the reader
// has come it tells in a line of its own, once per kReportEvery slots. Positions count slots, not messages.
//
// Bytes of a longer message cover the turn words of its later slots, and could look like a turn to a reader who comes there
// first in a later lap. The writer knows which words it covered, and clears the one that the reader looks at next before it
// shows the message in front of it. Small messages cover none, and cost nothing more for it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/units.hpp"
#include "base/wire.hpp"

namespace ist {

struct alignas(64) PairSlot {
  // What fits into the first slot beside turn and envelope.
  static constexpr std::size_t kPayload = 216;
  // turn_at(): one store publishes all. Fresh memory is zero, which no turn is.
  std::atomic<std::uint64_t> turn;
  Envelope envelope;
  std::array<std::byte, kPayload> payload;
};
static_assert(sizeof(PairSlot) == 256 && offsetof(PairSlot, payload) == 40);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// Most bytes of a message in slots. A cell of the shared queue costs four more lines that change sides, and its price is
// that of 2 to 4 KiB.
constexpr std::size_t kPairPayload = 4096;
// What is eager at all goes in slots while they are cheaper; what fits the first one always does.
constexpr Bytes pair_slot_limit(Bytes eager_limit) {
  return eager_limit < Bytes{PairSlot::kPayload} ? Bytes{PairSlot::kPayload} : smaller(eager_limit, Bytes{kPairPayload});
}
constexpr std::uint64_t slots_for(std::size_t payload) {
  return (offsetof(PairSlot, payload) + payload + sizeof(PairSlot) - 1) / sizeof(PairSlot);
}

constexpr std::uint64_t kPairSlots = 128;
// Behind the last slot there is room for the rest of a message that begins in it: none is torn apart.
constexpr std::uint64_t kPairSlotsInMemory = kPairSlots + slots_for(kPairPayload) - 1;
constexpr std::uint64_t kReportEvery = 16;
// Guard REPORT_OFTEN: or the reader could have emptied all slots without having told so, and the writer would wait for ever.
static_assert(kReportEvery - 1 + slots_for(kPairPayload) <= kPairSlots);

// The position in 48 bits, a bit that is always set, and the payload's length in 15.
constexpr std::uint64_t kTurnBit = std::uint64_t{1} << 15;
static_assert(kPairPayload < kTurnBit);
constexpr std::uint64_t turn_at(std::uint64_t position, std::size_t payload) { return position << 16 | kTurnBit | payload; }
constexpr bool is_turn(std::uint64_t word, std::uint64_t position) {
  return (word & ~(kTurnBit - 1)) == turn_at(position, 0);
}

class PairSlotWriter {
 public:
  // `consumed` is the reader's line.
  PairSlotWriter(PairSlot* slots, std::atomic<std::uint64_t>* consumed) : slots_(slots), consumed_(consumed) {}

  // False if there are not enough free slots, or if the payload is longer than kPairPayload.
  bool post(const Envelope& envelope, std::span<const std::byte> payload) {
    if (payload.size() > kPairPayload) return false;
    const std::uint64_t slots = slots_for(payload.size());
    const std::uint64_t next = position_ + slots;
    if (!has_room(slots)) return false;
    const std::uint64_t first = position_ % kPairSlots;
    PairSlot& slot = slots_[first];
    slot.envelope = envelope;
    if (!payload.empty())
      std::memcpy(reinterpret_cast<std::byte*>(&slot) + offsetof(PairSlot, payload), payload.data(), payload.size());
    if (slots > 1)
      for (std::uint64_t later = first + 1; later < std::min(first + slots, kPairSlots); ++later) covered_[later] = true;
    if (covered_[next % kPairSlots]) {
      // Guards CLEAR_NEXT, CLEAR_FIRST: before the reader can come there, which the release below keeps in this order. The
      // slot is free: in a full ring the next one is the first of a message, whose word was cleared or never covered.
      slots_[next % kPairSlots].turn.store(0, std::memory_order_relaxed);
      covered_[next % kPairSlots] = false;
    }
    // Guard TURN_LAST: release keeps envelope, payload and the cleared word before the word that shows them.
    slot.turn.store(turn_at(position_, payload.size()), std::memory_order_release);
    position_ = next;
    return true;
  }

  // Was the last post() refused, and would it find room now? Then the refusal is forgotten.
  bool news() {
    if (refused_ == 0 || position_ + refused_ - consumed_->load(std::memory_order_relaxed) > kPairSlots) return false;
    refused_ = 0;
    return true;
  }

 private:
  // Guard ROOM: no slot is written over that the reader has not counted as consumed.
  bool has_room(std::uint64_t slots) {
    refused_ = 0;
    if (position_ + slots - consumed_seen_ <= kPairSlots) return true;
    // Acquire pairs with the release in PairSlotReader::pop(): its last look at the slots comes before our first write.
    consumed_seen_ = consumed_->load(std::memory_order_acquire);
    if (position_ + slots - consumed_seen_ <= kPairSlots) return true;
    refused_ = slots;
    return false;
  }

  PairSlot* slots_;
  const std::atomic<std::uint64_t>* consumed_;
  std::uint64_t position_ = 0;
  std::uint64_t consumed_seen_ = 0;
  std::uint64_t refused_ = 0;                  // slots that the last post() wanted and did not get
  std::array<bool, kPairSlots> covered_ = {};  // turn words under the bytes of some message
};

class PairSlotReader {
 public:
  PairSlotReader(const PairSlot* slots, std::atomic<std::uint64_t>* consumed) : slots_(slots), consumed_(consumed) {}

  // The first slot of the oldest message, or null. The message stays as it is until pop().
  const PairSlot* front() const {
    const PairSlot& slot = slots_[position_ % kPairSlots];
    // Guard TURN: acquire pairs with the release in post(). Messages of another lap have another position in their word.
    return is_turn(slot.turn.load(std::memory_order_acquire), position_) ? &slot : nullptr;
  }
  // Would front() find one? Relaxed: nothing of the message is read on its word.
  bool ready() const { return is_turn(slots_[position_ % kPairSlots].turn.load(std::memory_order_relaxed), position_); }
  static std::span<const std::byte> payload(const PairSlot& slot) {
    return {reinterpret_cast<const std::byte*>(&slot) + offsetof(PairSlot, payload), length(slot)};
  }
  // Done with front(). True if the writer was told, and may have to be woken.
  bool pop() {
    const std::uint64_t reported = position_ / kReportEvery;
    position_ += slots_for(length(slots_[position_ % kPairSlots]));
    if (position_ / kReportEvery == reported) return false;
    // Guard REPORT_LAST: release keeps our reads of the slots before the count that lets the writer fill them again.
    consumed_->store(position_, std::memory_order_release);
    return true;
  }

 private:
  // A length beyond the limit is never written; it keeps a scribbled segment from leading us out of the slots.
  static std::size_t length(const PairSlot& slot) {
    return std::min<std::size_t>(slot.turn.load(std::memory_order_relaxed) & (kTurnBit - 1), kPairPayload);
  }
  const PairSlot* slots_;
  std::atomic<std::uint64_t>* consumed_;
  std::uint64_t position_ = 0;
};

}  // namespace ist
