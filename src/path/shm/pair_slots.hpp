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
#include <vector>

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

constexpr std::uint64_t slots_for(std::size_t payload) {
  return (offsetof(PairSlot, payload) + payload + sizeof(PairSlot) - 1) / sizeof(PairSlot);
}

// Most bytes of any message in slots, and how many slots a pair has, at most and at least.
constexpr std::size_t kPairPayload = 65536;
constexpr std::uint64_t kMostPairSlots = 1024;
constexpr std::uint64_t kFewestPairSlots = 128;
constexpr std::uint64_t kReportEvery = 16;

// The slots of each pair of a host: the more, the further a sender runs ahead of its receiver. Windows of 64 messages, with 128 and
// with 1024 slots (AMD EPYC, 2 processors, 2026-11-22): of 1 KiB 0.121 and 0.099 us each, of 4 KiB 0.21 and 0.15; of 8 KiB in cells
// 0.295, in slots 0.206. A message may fill a quarter of them, since that is ahead of announcing it first (same machine, slots and ring): of
// 32 KiB 0.97 and 1.44 us one way, 0.60 and 0.81 in windows; of 64 KiB 1.76 and 2.15, 1.21 and 1.32. Many ranks have fewer slots, since
// every pair that ever spoke has all of its slots in memory: 256 KiB up to 16 ranks, 32 KiB from 128 on.
struct PairSlotShape {
  std::uint64_t slots;  // a power of two
  std::size_t longest;  // bytes of a message
  // Behind the last slot there is room for the rest of a message that begins in it: none is torn apart.
  constexpr std::uint64_t in_memory() const { return slots + slots_for(longest) - 1; }
};
constexpr PairSlotShape pair_slot_shape(std::uint32_t ranks) {
  std::uint64_t slots = kMostPairSlots;
  while (slots > kFewestPairSlots && slots * ranks > 16 * kMostPairSlots) slots /= 2;
  return {slots, std::min<std::size_t>(kPairPayload, slots * 64)};
}
// Guard REPORT_OFTEN: or the reader could have emptied all slots without having told so, and the writer would wait for ever.
static_assert(kReportEvery - 1 + slots_for(pair_slot_shape(1 << 20).longest) <= kFewestPairSlots);
static_assert(pair_slot_shape(16).slots == kMostPairSlots && pair_slot_shape(16).longest == kPairPayload);
static_assert(kReportEvery - 1 + slots_for(kPairPayload) <= kMostPairSlots);

// What is eager at all goes in slots where they take it; what fits the first one always does. Between hosts that is more than a cell
// takes: neither driver nor page-locked memory is part of it.
constexpr std::uint64_t kSlotsBeyondCells = 4;
constexpr Bytes pair_slot_limit(Bytes eager_limit, std::uint32_t ranks) {
  return eager_limit < Bytes{PairSlot::kPayload}
             ? Bytes{PairSlot::kPayload}
             : smaller(Bytes{kSlotsBeyondCells * eager_limit.value}, Bytes{pair_slot_shape(ranks).longest});
}

// The position in 46 bits, a bit that is always set, and the payload's length in 17.
constexpr std::uint64_t kTurnBit = std::uint64_t{1} << 17;
static_assert(kPairPayload < kTurnBit);
constexpr std::uint64_t turn_at(std::uint64_t position, std::size_t payload) { return position << 18 | kTurnBit | payload; }
constexpr bool is_turn(std::uint64_t word, std::uint64_t position) {
  return (word & ~(kTurnBit - 1)) == turn_at(position, 0);
}

// As memcpy, and without a call for 8 to 16 bytes.
constexpr bool is_few(std::size_t size) { return size - 8 <= 8; }
inline void copy_few(std::byte* to, const std::byte* from, std::size_t size) {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::memcpy(&first, from, 8);
  std::memcpy(&last, from + size - 8, 8);
  std::memcpy(to, &first, 8);
  std::memcpy(to + size - 8, &last, 8);
}
inline void copy_any(std::byte* to, const std::byte* from, std::size_t size) {
  if (is_few(size)) [[likely]]
    copy_few(to, from, size);
  else if (size != 0)
    std::memcpy(to, from, size);
}

// Asks for the slot's first line, to write there soon.
inline void fetch_for_writing(const PairSlot& slot) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(slot));  // the builtin asks for reading where the compiler may not assume this one
#else
  __builtin_prefetch(&slot, 1);
#endif
}

class PairSlotWriter {
 public:
  // `consumed` is the reader's line.
  PairSlotWriter(PairSlot* slots, std::atomic<std::uint64_t>* consumed, const PairSlotShape& shape)
      : slots_(slots), consumed_(consumed), count_(shape.slots), longest_(shape.longest), covered_(shape.slots) {}

  // False if there are not enough free slots, or if the payload is longer than the shape says.
  bool post(const Envelope& envelope, std::span<const std::byte> payload) {
    PairSlot* const slot = begin(payload.size());
    if (slot == nullptr) return false;
    slot->envelope = envelope;
    finish(*slot, payload.data(), payload.size());
    return true;
  }
  // The two halves of post(), between which the caller writes the envelope into the slot. Null: as false.
  PairSlot* begin(std::size_t size) {
    return size <= longest_ && has_room(slots_for(size)) ? &slots_[place_of(position_)] : nullptr;
  }
  void finish(PairSlot& slot, const std::byte* payload, std::size_t size) {
    const std::uint64_t position = position_;
    const std::uint64_t slots = slots_for(size);
    const std::uint64_t next = position + slots;
    copy_any(payload_in(slot), payload, size);
    if (slots > 1) [[unlikely]]
      cover(place_of(position) + 1, place_of(position) + slots);
    if (covered_[place_of(next)] != 0) [[unlikely]] {
      // Guards CLEAR_NEXT, CLEAR_FIRST: before the reader can come there, which the release below keeps in this order. The
      // slot is free: in a full ring the next one is the first of a message, whose word was cleared or never covered.
      slots_[place_of(next)].turn.store(0, std::memory_order_relaxed);
      covered_[place_of(next)] = 0;
    }
    // Guard TURN_LAST: release keeps envelope, payload and the cleared word before the word that shows them.
    slot.turn.store(turn_at(position, size), std::memory_order_release);
    position_ = next;
    fetch_for_writing(slots_[place_of(next + kFetchAhead)]);
  }

  // The same of few bytes (is_few), without a call. Null, also where there may be room: then begin() has to look.
  PairSlot* begin_few() {
    const std::uint64_t position = position_;
    if (position - consumed_seen_ >= count_ || covered_[place_of(position + 1)] != 0) [[unlikely]]
      return nullptr;
    return &slots_[place_of(position)];
  }
  void finish_few(PairSlot& slot, const std::byte* payload, std::size_t size) {
    const std::uint64_t position = position_;
    copy_few(payload_in(slot), payload, size);
    // Guard TURN_LAST, as above.
    slot.turn.store(turn_at(position, size), std::memory_order_release);
    position_ = position + 1;
    fetch_for_writing(slots_[place_of(position + 1 + kFetchAhead)]);
  }

  // A message may follow in some 50 ns: what another reader looks at has to be taken from its cache first, and that goes on while the
  // caller still computes. Half a round trip of 8 bytes 0.080 us, and 0.060 where who receives asks for the line of its answer (AMD EPYC, 2
  // processors that share a cache, 2026-11-22). A store by itself asks only when its address is known, which is late.
  void fetch_next() const { fetch_for_writing(slots_[place_of(position_)]); }

  // Was the last post() refused, and would it find room now? Then the refusal is forgotten.
  bool news() {
    if (refused_ == 0 || position_ + refused_ - consumed_->load(std::memory_order_relaxed) > count_) return false;
    refused_ = 0;
    return true;
  }

 private:
  // The reader has the line of every slot that it has read, and whoever writes there has to wait for it. A lock taken after the
  // store waits for that store, so that a burst of small messages would pay the whole way of a line for each: 64 outstanding sends
  // of 8 bytes 0.107 us each, and 0.078 with their lines asked for ahead (AMD EPYC, 2 processors, 2026-11-22). Not the next slot,
  // where the reader looks while it waits: it would take the line back before it is written, but where fetch_next() is called.
  static constexpr std::uint64_t kFetchAhead = 16;

  std::uint64_t place_of(std::uint64_t position) const { return position & (count_ - 1); }
  [[gnu::noinline]] void cover(std::uint64_t from, std::uint64_t to) {
    if (const std::uint64_t end = std::min(to, count_); from < end) std::fill_n(&covered_[from], end - from, char{1});
  }
  static std::byte* payload_in(PairSlot& slot) { return reinterpret_cast<std::byte*>(&slot) + offsetof(PairSlot, payload); }
  // Guard ROOM, also in begin_few(): no slot is written over that the reader has not counted as consumed.
  bool has_room(std::uint64_t slots) {
    refused_ = 0;
    if (position_ + slots - consumed_seen_ <= count_) [[likely]]
      return true;
    // Acquire pairs with the release in PairSlotReader::pop(): its last look at the slots comes before our first write.
    consumed_seen_ = consumed_->load(std::memory_order_acquire);
    if (position_ + slots - consumed_seen_ <= count_) return true;
    refused_ = slots;
    return false;
  }

  PairSlot* slots_;
  const std::atomic<std::uint64_t>* consumed_;
  const std::uint64_t count_;
  const std::size_t longest_;
  std::uint64_t position_ = 0;
  std::uint64_t consumed_seen_ = 0;
  std::uint64_t refused_ = 0;  // slots that the last post() wanted and did not get
  std::vector<char> covered_;  // 1: the turn word is under the bytes of some message
};

class PairSlotReader {
 public:
  PairSlotReader(const PairSlot* slots, std::atomic<std::uint64_t>* consumed, const PairSlotShape& shape)
      : slots_(slots), consumed_(consumed), mask_(shape.slots - 1), longest_(shape.longest) {}

  // The first slot of the oldest message, or null. The message stays as it is until pop().
  const PairSlot* front() const {
    const PairSlot& slot = slots_[position_ & mask_];
    // Guard TURN: acquire pairs with the release in post(). Messages of another lap have another position in their word.
    return is_turn(slot.turn.load(std::memory_order_acquire), position_) ? &slot : nullptr;
  }
  // Would front() find one? Relaxed: nothing of the message is read on its word.
  bool ready() const { return is_turn(slots_[position_ & mask_].turn.load(std::memory_order_relaxed), position_); }
  std::span<const std::byte> payload(const PairSlot& slot) const {
    return {reinterpret_cast<const std::byte*>(&slot) + offsetof(PairSlot, payload), length(slot)};
  }
  // Done with front(). True if the writer was told, and may have to be woken.
  bool pop() { return pop(length(slots_[position_ & mask_])); }
  // The same where the payload's length is known.
  bool pop(std::size_t length_of_front) {
    const std::uint64_t reported = position_ / kReportEvery;
    position_ += slots_for(length_of_front);
    if (position_ / kReportEvery == reported) [[likely]]
      return false;
    // Guard REPORT_LAST: release keeps our reads of the slots before the count that lets the writer fill them again.
    consumed_->store(position_, std::memory_order_release);
    return true;
  }

 private:
  // A length beyond the limit is never written; it keeps a scribbled segment from leading us out of the slots.
  std::size_t length(const PairSlot& slot) const {
    return std::min<std::size_t>(slot.turn.load(std::memory_order_relaxed) & (kTurnBit - 1), longest_);
  }
  const PairSlot* slots_;
  std::atomic<std::uint64_t>* consumed_;
  const std::uint64_t mask_;
  const std::size_t longest_;
  std::uint64_t position_ = 0;
};

}  // namespace ist
