// One slot of a pair, the words that show and report slots, and how many a pair has.
//
// Who calls this : pair_slots.hpp; whoever wants to know what goes in slots.
// Threads        : values.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/units.hpp"
#include "base/wire.hpp"

namespace ist {

struct alignas(64) PairSlot {
  // What fits beside turn and envelope.
  static constexpr std::size_t kPayload = 24;
  // Messages of a line that share it, and most bytes of each.
  static constexpr std::uint32_t kShares = 4;
  static constexpr std::size_t kShare = 8;
  // One that has the line to itself.
  struct Whole {
    Envelope envelope;
    std::array<std::byte, kPayload> payload;
  };
  // Eager ones between host buffers, sent one after the other.
  struct Shared {
    std::uint32_t sequence;  // of the first
    std::uint32_t context;
    std::array<std::int32_t, kShares> tags;
    std::array<std::uint64_t, kShares> words;
  };
  // turn_at(): one store publishes all. Fresh memory is zero, which no turn is.
  std::atomic<std::uint64_t> turn;
  union {
    Whole whole = {};
    Shared shared;
  };
};
static_assert(sizeof(PairSlot) == 64);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// Asks for the slot's first line, to write there soon.
inline void fetch_for_writing(const PairSlot& slot) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(slot));  // the builtin asks for reading where the compiler may not assume this one
#else
  __builtin_prefetch(&slot, 1);
#endif
}

// How many blocks of the room a message takes.
constexpr std::uint64_t kBlock = 64;
constexpr std::uint64_t blocks_for(std::size_t payload) {
  return payload <= PairSlot::kPayload ? 0 : (payload + kBlock - 1) / kBlock;
}

// And how many until the next message's bytes. Behind long ones 1 KiB is left free: who reads asks for lines beyond what it copies, which would be those
// that the writer is at. Windows of 32 and 64 KiB, read by strings, have 65 and 66 GB/s without it, 74 and 70 with it, 72 and 70 with a page; far apart, a
// line in 0.28 us, a page costs a tenth (AMD EPYC, Zen 5, a line in 0.06 us, 2026-11-29). Of shorter messages the next one's lines are wanted.
constexpr std::uint64_t kGap = 1024 / kBlock;
constexpr std::size_t kGapFrom = 32768;
constexpr std::uint64_t kGapInRooms =
    1048576 / kBlock;  // and above: of smaller ones it would be one of the four longest messages
// `room`: in blocks.
constexpr std::uint64_t blocks_taken(std::size_t payload, std::uint64_t room) {
  return blocks_for(payload) + (payload >= kGapFrom && room >= kGapInRooms ? kGap : 0);
}

// Most bytes of any message in slots, and of one whose bytes were sent from the same place lately.
constexpr std::size_t kPairPayload = 131072;
constexpr std::size_t kPairPayloadAgain = 262144;

// Messages of kSkipping up to the first of these go round the first part of a pair's room alone: those of 128 KiB are as quick there (1.75 us in windows), and of bytes
// just written 3.7 to 4.1 us in place of 4.4 to 5.4, since both sides' bytes and 8 MiB do not fit the shared cache (AMD EPYC, Zen 5, a line in 0.06 us, 2026-11-30).
// Whoever comes to the rest with one leaves it free, as if it were part of the message. Guard SKIP_ALIKE: both sides count so. Shorter ones go round all of it, since
// a few bytes between long messages are not to keep these waiting.
constexpr std::uint64_t kFirstPart = 4194304 / kBlock;
constexpr std::size_t kSkipping = 8192;
// `at`: the blocks so far.
constexpr std::uint64_t blocks_skipped(std::uint64_t at, std::size_t payload, std::uint64_t room) {
  const std::uint64_t place = at & (room - 1);
  return payload >= kSkipping && payload <= kPairPayload && place >= kFirstPart ? room - place : 0;
}

// And so many have to be free before it is written: long ones lie no further ahead of what the reader has counted than three eighths of the room.
constexpr std::uint64_t lead_in(std::uint64_t room) { return room / 8 * 3; }
constexpr std::uint64_t blocks_wanted(std::uint64_t at, std::size_t payload, std::uint64_t room) {
  return blocks_skipped(at, payload, room) + blocks_taken(payload, room) +
         (payload > kPairPayload ? room - lead_in(room) : 0);
}

// How many slots and bytes of room a pair has, at most and at least.
constexpr std::uint64_t kMostPairSlots = 256;
constexpr std::uint64_t kFewestPairSlots = 64;
constexpr std::uint64_t kMostLap = 8388608;        // of a room, and of a ring
constexpr std::uint64_t kPairRoomOfMany = 262144;  // from 16 ranks on no more than that
constexpr std::uint64_t kMostInRooms = 67108864;   // of all pairs together, up to there
constexpr std::uint64_t kFewestPairRoom = 32768;
constexpr std::uint64_t kReportEvery = 16;
constexpr std::uint64_t kSlotsBeyondCells = 8;  // of what is eager between host buffers

// The slots of each pair of a host: the more room, the further a sender runs ahead of its receiver. Windows of 64 messages, with 32 and
// with 256 KiB (AMD EPYC, 2 processors, 2026-11-22): of 1 KiB 0.121 and 0.099 us each, of 4 KiB 0.21 and 0.15; of 8 KiB in cells
// 0.295, in slots 0.206. A message may fill a quarter of it, since that is ahead of announcing it first (same machine, slots and ring): of
// 32 KiB 0.97 and 1.44 us one way, 0.60 and 0.81 in windows; of 64 KiB 1.76 and 2.15, 1.21 and 1.32. In pieces (below), since 2026-11-29: of 96 KiB 2.1 and 2.8 us
// one way, of 128 KiB 2.6 and 3.4, in windows 1.8 and 2.1. Windows of 256 KiB out of the same bytes take 3.47 us so and 3.62 through the ring, with 8 MiB of room, of which the
// writer is 3 MiB ahead at most (3.83 in 4 MiB, 3.54 all of 8 MiB ahead); of bytes just written 14 us, and 9.5 through the ring (same EPYC as above, 2026-11-30). And the longer it takes to come back to
// a line, the quicker it is written: twice a processor's second cache is enough for that (memory/host/handing_copy.hpp). Windows with 256 KiB and with
// 2 MiB (AMD EPYC, Zen 4, 2 processors, a line in 0.06 us, 2026-11-26): of 8 KiB 1.0 and 0.24 us each, of 64 KiB 7.6 and 2.1. Many ranks have less, since
// every pair that ever spoke has all of it in memory: 8 MiB up to 3 ranks, then 64 MiB for all pairs together, 256 KiB at 16 ranks, and 32 KiB from 65 on.
// Rings of the pair go round as much: windows of 512 KiB, with 4 and with 8 MiB: 7.6 and 7.4 us (medians of six runs, same machine, 2026-11-30).
// Nor is it more than a window of the longest that are eager takes, so that ISTHMUS_EAGER_LIMIT, below 16 KiB or, with more than 3 ranks, below 8, is what a job saves memory by.
struct PairSlotShape {
  std::uint64_t slots;   // a power of two
  std::uint64_t blocks;  // of the room; a power of two
  std::size_t longest;   // bytes of a message
  std::size_t again;     // of one out of a place that was sent from lately
  // In slots, with the room behind them. At its end there is space for the rest of a message that begins in the last block: none is torn apart.
  constexpr std::uint64_t in_memory() const { return slots + blocks + blocks_for(again) - 1; }
  constexpr Bytes room() const { return Bytes{blocks * 64}; }
  // So many blocks that were read are told of at once.
  constexpr std::uint64_t report() const { return blocks / 16; }
};
static_assert(sizeof(PairSlot) == kBlock);
constexpr std::uint64_t kRoomWindow = 64;
constexpr PairSlotShape pair_slot_shape(std::uint32_t ranks, Bytes eager_limit) {
  std::uint64_t slots = kMostPairSlots;
  std::uint64_t room = kMostLap;
  while (room > kPairRoomOfMany && room * ranks * (ranks - 1) > kMostInRooms) room /= 2;
  for (std::uint64_t most = 16; most < ranks && room > kFewestPairRoom; most *= 2)
    room /= 2, slots /= slots > kFewestPairSlots ? 2 : 1;
  const Bytes window = smaller(Bytes{kRoomWindow * kSlotsBeyondCells * eager_limit.value}, Bytes{kMostLap});
  room = std::min(room, std::max(std::bit_ceil(window.value), kFewestPairRoom));
  const std::size_t longest = std::min<std::size_t>(kPairPayload, room / 4);
  return {slots, room / kBlock, longest, room == kMostLap ? kPairPayloadAgain : longest};
}
// Guards REPORT_OFTEN and REPORT_BYTES_OFTEN: or the reader could have emptied all slots, or the room, without having told so, and the writer
// would wait for ever. It stays at a shared line until there is more.
static_assert(kReportEvery < kFewestPairSlots);
constexpr bool reports_in_time(const PairSlotShape& shape) {
  const std::uint64_t skipped = shape.blocks > kFirstPart ? shape.blocks - kFirstPart : 0;
  return shape.report() - 1 + skipped + blocks_taken(shape.longest, shape.blocks) <= shape.blocks &&
         shape.report() - 1 + blocks_wanted(0, shape.again, shape.blocks) <= shape.blocks;
}
constexpr Bytes kUsualEager = kibibytes(16);  // ISTHMUS_EAGER_LIMIT
static_assert(reports_in_time(pair_slot_shape(16, kUsualEager)) && reports_in_time(pair_slot_shape(1 << 20, Bytes{})));
static_assert(reports_in_time(pair_slot_shape(2, kUsualEager)) && reports_in_time(pair_slot_shape(4, kUsualEager)));
static_assert(pair_slot_shape(16, kUsualEager).slots == kMostPairSlots &&
              pair_slot_shape(11, kUsualEager).longest == kPairPayload);
static_assert(pair_slot_shape(3, kUsualEager).room().value == kMostLap);
static_assert(pair_slot_shape(4, kUsualEager).blocks == kFirstPart);
static_assert(pair_slot_shape(1 << 20, kUsualEager).slots == kFewestPairSlots);

// What is eager at all goes in slots where they take it; what is as short as this always does. Between hosts that is more than a cell
// takes: neither driver nor page-locked memory is part of it.
constexpr Bytes kAlwaysInSlots{216};
constexpr Bytes pair_slot_limit(Bytes eager_limit, std::uint32_t ranks) {
  return eager_limit < kAlwaysInSlots
             ? kAlwaysInSlots
             : smaller(Bytes{kSlotsBeyondCells * eager_limit.value}, Bytes{pair_slot_shape(ranks, eager_limit).longest});
}
// Of what leaves a place that messages left lately; the same, but where there is room for twice as much.
constexpr Bytes pair_slot_limit_again(Bytes eager_limit, std::uint32_t ranks) {
  const Bytes whatever = pair_slot_limit(eager_limit, ranks);
  return whatever.value < kPairPayload ? whatever : Bytes{pair_slot_shape(ranks, eager_limit).again};
}

// The position in 42 bits, one of two bits, one for a line that is shared, and the payload's length in 19; of a shared line four times
// 4 bits, each the length of one message and one more, or 0 for none. The other of the two bits is set while only so many bytes are there yet.
constexpr std::uint64_t kBegunBit = std::uint64_t{1} << 21;
constexpr std::uint64_t kTurnBit = std::uint64_t{1} << 20;
constexpr std::uint64_t kSharedBit = std::uint64_t{1} << 19;
static_assert(kPairPayloadAgain < kSharedBit && PairSlot::kShare + 1 < 16 && PairSlot::kShares * 4 <= 19);
constexpr std::uint64_t turn_at(std::uint64_t position, std::size_t payload) { return position << 22 | kTurnBit | payload; }
constexpr std::uint64_t begun_at(std::uint64_t position, std::size_t shown) { return position << 22 | kBegunBit | shown; }
constexpr std::uint64_t kShareBits = (std::uint64_t{1} << 4 * PairSlot::kShares) - 1;
constexpr std::uint64_t share_at(std::uint32_t place, std::size_t payload) { return (payload + 1) << 4 * place; }
constexpr std::uint64_t share_in(std::uint64_t turn, std::uint32_t place) { return turn >> 4 * place & 0xf; }
constexpr bool is_turn(std::uint64_t word, std::uint64_t position) {
  return (word & ~(kTurnBit - 1)) == turn_at(position, 0);
}
constexpr bool is_begun(std::uint64_t word, std::uint64_t position) {
  return (word & ~(kTurnBit - 1)) == begun_at(position, 0);
}

// Longer messages of a sender that waits are shown in pieces of so many bytes, so that a reader that waits, too, copies out what is there while the
// rest is copied in. Half a round trip of 16, 32 and 64 KiB, whole and in pieces: 0.61, 1.15 and 2.3 us, and 0.52, 0.90 and 1.6, with a line in
// 0.06 us; 1.7, 2.7 and 4.6, and 1.6, 2.3 and 3.8, with one in 0.28 (AMD EPYC, Zen 5, 2 processors, 2026-11-28; pieces of 4 KiB no quicker there, of 16
// KiB 1.00 and 1.69 where a line takes 0.06). In windows, whose reader is behind, pieces gain nothing, and past the caches each costs a fence: windows of 64 KiB
// with bytes just written 3.2 and 3.5 us with a line in 0.28.
constexpr std::size_t kPieceShown = 8192;
static_assert(kPieceShown % kBlock == 0 && kPieceShown >= kSkipping);  // whether it skips its first piece tells, too

// How many slots and blocks were read since the start: one word tells both. They wrap; only differences count, which are small.
struct PairConsumed {
  std::uint32_t slots = 0;
  std::uint32_t blocks = 0;
  static constexpr PairConsumed from(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
  }
  constexpr std::uint64_t word() const { return std::uint64_t{blocks} << 32 | slots; }
};

// Whether a reader that waits better takes a line which messages share from its writer than has it, too. Half a round trip of 8 bytes with loads as fast as they go,
// with a pause between them, and so: 0.064, 0.060 and 0.056 us where a line takes 0.06 between the processors, and 0.27, 0.22 and 0.20 where it takes 0.27 (AMD
// EPYC, Zen 5, means of six runs, and one run); 0.203, 0.206 and 0.222 between cores of an Intel Xeon of H200s (medians of seven). What does not share a line gains by the
// pause alone: 16 bytes there 0.067 and 0.057, and 64 here 0.47 and 0.45 (all 2026-11-29).
inline bool takes_lines() {
#if defined(__x86_64__)
  return __builtin_cpu_is("amd") != 0;
#else
  return false;
#endif
}

// Adds nothing to the word; acquire. Written out, since a compiler may make a load of such an addition, which takes no line.
inline std::uint64_t take_word(std::atomic<std::uint64_t>& word) {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
  std::uint64_t found = 0;
  asm volatile("lock xaddq %0, %1" : "+r"(found), "+m"(word) : : "memory", "cc");
  return found;
#else
  return word.fetch_add(0, std::memory_order_acquire);
#endif
}

}  // namespace ist
