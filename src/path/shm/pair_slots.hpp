// The small messages of one pair: single-producer slots of one cache line each, which have up to 24 bytes, and a room beside them
// for the bytes of longer ones.
//
// Who calls this : shm_link writes, shm_path reads. Model: models/slots.pml.
// Threads        : one writer and one reader, in different processes; no lock.
// Ownership      : views of the receiver's segment.
// Errors         : none; full or empty.
//
// A message is there when the turn word of its slot holds the position that the reader expects. The reader writes nothing into
// the slots, so that a line travels once per message, from the writer's cache to the reader's; how far the reader has come it tells
// in a line of its own, once per kReportEvery slots or a sixteenth of the room. Nobody but the writer of turns writes where a turn is
// looked for: bytes of messages that are longer than a slot lie elsewhere, in blocks, each message's in one piece.
//
// Few slots, side by side, so that all of them stay in the writer's first cache. A line that the reader has looked at has to be taken from it
// before it is written again, and a processor does so for one line after the other where it finds its own copy in the second cache, but for
// several at once where that is in the first one: 64 lines of a ring of 1024 with 256 bytes from one to the next, or of 512 side by
// side, took 31 ns each to write, of 256 side by side 10 (AMD EPYC, Zen 4, 2 processors, 2026-11-26).
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
  // What fits beside turn and envelope.
  static constexpr std::size_t kPayload = 24;
  // turn_at(): one store publishes all. Fresh memory is zero, which no turn is.
  std::atomic<std::uint64_t> turn;
  Envelope envelope;
  std::array<std::byte, kPayload> payload;
};
static_assert(sizeof(PairSlot) == 64);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// How many blocks of the room a message takes.
constexpr std::uint64_t kBlock = 64;
constexpr std::uint64_t blocks_for(std::size_t payload) {
  return payload <= PairSlot::kPayload ? 0 : (payload + kBlock - 1) / kBlock;
}

// Most bytes of any message in slots, and how many slots and bytes of room a pair has, at most and at least.
constexpr std::size_t kPairPayload = 65536;
constexpr std::uint64_t kMostPairSlots = 256;
constexpr std::uint64_t kFewestPairSlots = 64;
constexpr std::uint64_t kMostPairRoom = 262144;
constexpr std::uint64_t kFewestPairRoom = 32768;
constexpr std::uint64_t kReportEvery = 16;

// The slots of each pair of a host: the more room, the further a sender runs ahead of its receiver. Windows of 64 messages, with 32 and
// with 256 KiB (AMD EPYC, 2 processors, 2026-11-22): of 1 KiB 0.121 and 0.099 us each, of 4 KiB 0.21 and 0.15; of 8 KiB in cells
// 0.295, in slots 0.206. A message may fill a quarter of it, since that is ahead of announcing it first (same machine, slots and ring): of
// 32 KiB 0.97 and 1.44 us one way, 0.60 and 0.81 in windows; of 64 KiB 1.76 and 2.15, 1.21 and 1.32. Many ranks have less, since
// every pair that ever spoke has all of it in memory: 256 KiB up to 16 ranks, 32 KiB from 65 on.
struct PairSlotShape {
  std::uint64_t slots;   // a power of two
  std::uint64_t blocks;  // of the room; a power of two
  std::size_t longest;   // bytes of a message
  // In slots, with the room behind them. At its end there is space for the rest of a message that begins in the last block: none is torn apart.
  constexpr std::uint64_t in_memory() const { return slots + blocks + blocks_for(longest) - 1; }
  // So many blocks that were read are told of at once.
  constexpr std::uint64_t report() const { return blocks / 16; }
};
static_assert(sizeof(PairSlot) == kBlock);
constexpr PairSlotShape pair_slot_shape(std::uint32_t ranks) {
  std::uint64_t slots = kMostPairSlots;
  std::uint64_t room = kMostPairRoom;
  for (std::uint64_t most = 16; most < ranks && room > kFewestPairRoom; most *= 2)
    room /= 2, slots /= slots > kFewestPairSlots ? 2 : 1;
  return {slots, room / kBlock, std::min<std::size_t>(kPairPayload, room / 4)};
}
// Guards REPORT_OFTEN and REPORT_BYTES_OFTEN: or the reader could have emptied all slots, or the room, without having told so, and the writer
// would wait for ever.
static_assert(kReportEvery <= kFewestPairSlots);
constexpr bool reports_in_time(const PairSlotShape& shape) {
  return shape.report() - 1 + blocks_for(shape.longest) <= shape.blocks;
}
static_assert(reports_in_time(pair_slot_shape(16)) && reports_in_time(pair_slot_shape(1 << 20)));
static_assert(pair_slot_shape(16).slots == kMostPairSlots && pair_slot_shape(16).longest == kPairPayload);
static_assert(pair_slot_shape(1 << 20).slots == kFewestPairSlots);

// What is eager at all goes in slots where they take it; what is as short as this always does. Between hosts that is more than a cell
// takes: neither driver nor page-locked memory is part of it.
constexpr Bytes kAlwaysInSlots{216};
constexpr std::uint64_t kSlotsBeyondCells = 4;
constexpr Bytes pair_slot_limit(Bytes eager_limit, std::uint32_t ranks) {
  return eager_limit < kAlwaysInSlots
             ? kAlwaysInSlots
             : smaller(Bytes{kSlotsBeyondCells * eager_limit.value}, Bytes{pair_slot_shape(ranks).longest});
}

// The position in 46 bits, a bit that is always set, and the payload's length in 17.
constexpr std::uint64_t kTurnBit = std::uint64_t{1} << 17;
static_assert(kPairPayload < kTurnBit);
constexpr std::uint64_t turn_at(std::uint64_t position, std::size_t payload) { return position << 18 | kTurnBit | payload; }
constexpr bool is_turn(std::uint64_t word, std::uint64_t position) {
  return (word & ~(kTurnBit - 1)) == turn_at(position, 0);
}

// How many slots and blocks were read since the start: one word tells both. They wrap; only differences count, which are small.
struct PairConsumed {
  std::uint32_t slots = 0;
  std::uint32_t blocks = 0;
  static constexpr PairConsumed from(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
  }
  constexpr std::uint64_t word() const { return std::uint64_t{blocks} << 32 | slots; }
};

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
  // `consumed` is the reader's line. Behind the slots comes the room.
  PairSlotWriter(PairSlot* slots, std::atomic<std::uint64_t>* consumed, const PairSlotShape& shape)
      : slots_(slots), consumed_(consumed), count_(shape.slots), blocks_(shape.blocks), longest_(shape.longest) {}

  // False if there is no free slot, or too little room, or if the payload is longer than the shape says.
  bool post(const Envelope& envelope, std::span<const std::byte> payload) {
    PairSlot* const slot = begin(payload.size());
    if (slot == nullptr) return false;
    slot->envelope = envelope;
    finish(*slot, payload.data(), payload.size());
    return true;
  }
  // The two halves of post(), between which the caller writes the envelope into the slot. Null: as false.
  PairSlot* begin(std::size_t size) {
    return size <= longest_ && has_room(blocks_for(size)) ? &slots_[place_of(position_)] : nullptr;
  }
  void finish(PairSlot& slot, const std::byte* payload, std::size_t size) {
    if (size <= PairSlot::kPayload) {
      copy_any(slot.payload.data(), payload, size);
    } else {
      std::memcpy(block_at(written_), payload, size);
      written_ += static_cast<std::uint32_t>(blocks_for(size));
    }
    show(slot, size);
  }

  // The same of few bytes (is_few), without a call. Null, also where there may be room: then begin() has to look.
  PairSlot* begin_few() {
    const std::uint64_t position = position_;
    if (static_cast<std::uint32_t>(position) - seen_.slots >= count_) [[unlikely]]
      return nullptr;
    return &slots_[place_of(position)];
  }
  void finish_few(PairSlot& slot, const std::byte* payload, std::size_t size) {
    copy_few(slot.payload.data(), payload, size);
    show(slot, size);
  }

  // A message may follow in some 50 ns: what another reader looks at has to be taken from its cache first, and that goes on while the
  // caller still computes. Half a round trip of 8 bytes 0.080 us, and 0.060 where who receives asks for the line of its answer (AMD EPYC, 2
  // processors that share a cache, 2026-11-22). A store by itself asks only when its address is known, which is late.
  void fetch_next() const { fetch_for_writing(slots_[place_of(position_)]); }

  // Was the last post() refused, and would it find room now? Then the refusal is forgotten.
  bool news() {
    if (!refused_ || !is_free(PairConsumed::from(consumed_->load(std::memory_order_relaxed)), refused_blocks_)) return false;
    refused_ = false;
    return true;
  }

 private:
  // The reader has the line of every slot that it has read, and whoever writes there has to wait for it. A lock taken after the
  // store waits for that store, so that a burst of small messages would pay the whole way of a line for each: 64 outstanding sends
  // of 8 bytes 0.107 us each, and 0.078 with their lines asked for ahead (AMD EPYC, 2 processors, 2026-11-22). Not the next slot,
  // where the reader looks while it waits: it would take the line back before it is written, but where fetch_next() is called.
  static constexpr std::uint64_t kFetchAhead = 16;

  std::uint64_t place_of(std::uint64_t position) const { return position & (count_ - 1); }
  std::byte* block_at(std::uint64_t number) const {
    return reinterpret_cast<std::byte*>(slots_ + count_) + (number & (blocks_ - 1)) * kBlock;
  }
  void show(PairSlot& slot, std::size_t size) {
    const std::uint64_t position = position_;
    // Guard TURN_LAST: release keeps envelope and payload before the word that shows them.
    slot.turn.store(turn_at(position, size), std::memory_order_release);
    position_ = position + 1;
    fetch_for_writing(slots_[place_of(position + 1 + kFetchAhead)]);
  }
  // Guards ROOM and ROOM_FOR_BYTES, also in begin_few(): nothing is written over that the reader has not counted as consumed.
  bool is_free(PairConsumed consumed, std::uint32_t blocks) const {
    return static_cast<std::uint32_t>(position_) - consumed.slots < count_ && written_ - consumed.blocks + blocks <= blocks_;
  }
  bool has_room(std::uint64_t wanted) {
    const auto blocks = static_cast<std::uint32_t>(wanted);
    refused_ = false;
    if (is_free(seen_, blocks)) [[likely]]
      return true;
    // Acquire pairs with the release in PairSlotReader::pop(): its last look at slot and blocks comes before our first write.
    seen_ = PairConsumed::from(consumed_->load(std::memory_order_acquire));
    if (is_free(seen_, blocks)) return true;
    refused_ = true;
    refused_blocks_ = blocks;
    return false;
  }

  PairSlot* slots_;
  const std::atomic<std::uint64_t>* consumed_;
  const std::uint64_t count_;
  const std::uint64_t blocks_;
  const std::size_t longest_;
  std::uint64_t position_ = 0;
  std::uint32_t written_ = 0;  // blocks
  PairConsumed seen_;
  std::uint32_t refused_blocks_ = 0;
  bool refused_ = false;  // the last post(), which wanted that many blocks
};

class PairSlotReader {
 public:
  PairSlotReader(const PairSlot* slots, std::atomic<std::uint64_t>* consumed, const PairSlotShape& shape)
      : slots_(slots),
        consumed_(consumed),
        mask_(shape.slots - 1),
        block_mask_(shape.blocks - 1),
        report_(static_cast<std::uint32_t>(shape.report())),
        longest_(shape.longest) {}

  // The slot of the oldest message, or null. The message stays as it is until pop().
  const PairSlot* front() const {
    const PairSlot& slot = slots_[position_ & mask_];
    // Guard TURN: acquire pairs with the release in show(). Messages of another lap have another position in their word.
    return is_turn(slot.turn.load(std::memory_order_acquire), position_) ? &slot : nullptr;
  }
  // Would front() find one? Relaxed: nothing of the message is read on its word.
  bool ready() const { return is_turn(slots_[position_ & mask_].turn.load(std::memory_order_relaxed), position_); }
  // Of front().
  std::span<const std::byte> payload(const PairSlot& slot) const {
    const std::size_t size = length(slot);
    if (size <= PairSlot::kPayload) [[likely]]
      return {slot.payload.data(), size};
    return {reinterpret_cast<const std::byte*>(slots_ + mask_ + 1) + (read_ & block_mask_) * kBlock, size};
  }
  // Done with front(). True if the writer was told, and may have to be woken.
  bool pop() { return pop(length(slots_[position_ & mask_])); }
  // The same where the payload's length is known.
  bool pop(std::size_t length_of_front) {
    ++position_;
    read_ += static_cast<std::uint32_t>(blocks_for(length_of_front));
    if (position_ % kReportEvery != 0 && read_ - told_ < report_) [[likely]]
      return false;
    told_ = read_;
    // Guard REPORT_LAST: release keeps our reads of slots and blocks before the count that lets the writer fill them again.
    consumed_->store(PairConsumed{static_cast<std::uint32_t>(position_), read_}.word(), std::memory_order_release);
    return true;
  }

 private:
  // A length beyond the limit is never written; it keeps a scribbled segment from leading us out of the room.
  std::size_t length(const PairSlot& slot) const {
    return std::min<std::size_t>(slot.turn.load(std::memory_order_relaxed) & (kTurnBit - 1), longest_);
  }
  const PairSlot* slots_;
  std::atomic<std::uint64_t>* consumed_;
  const std::uint64_t mask_;
  const std::uint64_t block_mask_;
  const std::uint32_t report_;
  const std::size_t longest_;
  std::uint64_t position_ = 0;
  std::uint32_t read_ = 0;  // blocks
  std::uint32_t told_ = 0;  // of them
};

}  // namespace ist
