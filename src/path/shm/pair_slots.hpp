// The smallest messages of one pair: single-producer slots, one cache line for up to 24 bytes.
//
// Who calls this : shm_link writes, shm_path reads. Model: models/slots.pml.
// Threads        : one writer and one reader, in different processes; no lock.
// Ownership      : views of the receiver's segment.
// Errors         : none; full or empty.
//
// A slot is full when its turn word holds the position that the reader expects. The reader writes nothing into the slot, so
// that the line travels once per message, from the writer's cache to the reader's; how far the reader has come it tells in a
// line of its own, once per kReportEvery slots.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/wire.hpp"

namespace ist {

struct alignas(64) PairSlot {
  static constexpr std::size_t kPayload = 216;
  // (position + 1) << 8 | length of the payload: one store publishes both. Fresh memory is zero, which no position has.
  std::atomic<std::uint64_t> turn;
  Envelope envelope;
  std::array<std::byte, kPayload> payload;
};
static_assert(sizeof(PairSlot) == 256 && offsetof(PairSlot, payload) == 40);
static_assert(PairSlot::kPayload < 256 && std::atomic<std::uint64_t>::is_always_lock_free);

constexpr std::uint64_t kPairSlots = 64;
constexpr std::uint64_t kReportEvery = 16;
// Guard REPORT_OFTEN: or the reader could have emptied all slots without having told so, and the writer would wait for ever.
static_assert(kReportEvery <= kPairSlots);

class PairSlotWriter {
 public:
  // `consumed` is the reader's line.
  PairSlotWriter(PairSlot* slots, std::atomic<std::uint64_t>* consumed) : slots_(slots), consumed_(consumed) {}

  // False if all slots are full, or if the payload is longer than a slot takes.
  bool post(const Envelope& envelope, std::span<const std::byte> payload) {
    if (payload.size() > PairSlot::kPayload) return false;
    // Guard ROOM: no slot is written over that the reader has not counted as consumed.
    if (position_ - consumed_seen_ >= kPairSlots) {
      // Acquire pairs with the release in PairSlotReader::pop(): its last look at the slot comes before our first write.
      consumed_seen_ = consumed_->load(std::memory_order_acquire);
      refused_ = position_ - consumed_seen_ >= kPairSlots;
      if (refused_) return false;
    }
    refused_ = false;
    PairSlot& slot = slots_[position_ % kPairSlots];
    slot.envelope = envelope;
    if (!payload.empty()) std::memcpy(slot.payload.data(), payload.data(), payload.size());
    ++position_;
    // Guard TURN_LAST: release keeps envelope and payload before the word that shows them.
    slot.turn.store(position_ << 8 | payload.size(), std::memory_order_release);
    return true;
  }

  // Was the last post() refused, and would it find room now? Then the refusal is forgotten.
  bool news() {
    if (!refused_ || position_ - consumed_->load(std::memory_order_relaxed) >= kPairSlots) return false;
    refused_ = false;
    return true;
  }

 private:
  PairSlot* slots_;
  const std::atomic<std::uint64_t>* consumed_;
  std::uint64_t position_ = 0;
  std::uint64_t consumed_seen_ = 0;
  bool refused_ = false;
};

class PairSlotReader {
 public:
  PairSlotReader(const PairSlot* slots, std::atomic<std::uint64_t>* consumed) : slots_(slots), consumed_(consumed) {}

  // The oldest full slot, or null. It stays as it is until pop().
  const PairSlot* front() const {
    const PairSlot& slot = slots_[position_ % kPairSlots];
    // Guard TURN: acquire pairs with the release in post(). Bytes of another lap have another position in their word.
    return slot.turn.load(std::memory_order_acquire) >> 8 == position_ + 1 ? &slot : nullptr;
  }
  // Would front() find one? Relaxed: nothing of the slot is read on its word.
  bool ready() const { return slots_[position_ % kPairSlots].turn.load(std::memory_order_relaxed) >> 8 == position_ + 1; }
  static std::span<const std::byte> payload(const PairSlot& slot) {
    // A length beyond the slot is never written; the limit keeps a scribbled segment from leading us out of it.
    const std::uint64_t length = slot.turn.load(std::memory_order_relaxed) & 255;
    return {slot.payload.data(), std::min<std::size_t>(length, PairSlot::kPayload)};
  }
  // Done with front(). True if the writer was told, and may have to be woken.
  bool pop() {
    ++position_;
    if (position_ % kReportEvery != 0) return false;
    // Guard REPORT_LAST: release keeps our reads of the slots before the count that lets the writer fill them again.
    consumed_->store(position_, std::memory_order_release);
    return true;
  }

 private:
  const PairSlot* slots_;
  std::atomic<std::uint64_t>* consumed_;
  std::uint64_t position_ = 0;
};

}  // namespace ist
