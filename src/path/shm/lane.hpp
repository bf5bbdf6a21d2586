// What one rank has to say in collective calls, where every rank of the host reads it: slots, used in turn.
//
// Who calls this : shm_path has them in its segments; collective/shared_lane writes its own and reads the others'. Model: models/lane.pml.
// Threads        : one writer, the owner; any number of readers, in other processes; no lock.
// Ownership      : views of the owner's segment.
// Errors         : none.
//
// A slot holds what its stamp says, and nothing before: the stamp is written last. It stays until every rank that reads it has said, by
// `done` of a lane of its own or by that word in a later slot, that it needs nothing of that call any more; then its owner writes the next one there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/units.hpp"
#include "memory/host/handing_copy.hpp"

namespace ist {

// Communicators of a rank that have one at a time.
inline constexpr std::size_t kLanes = 32;
// So many that what goes round in them is longer than a first cache: a line of which both processors have a copy is taken from the other one by
// itself (HandingCopy). With 4 a reduce of 16 KiB took 0.93 us and one of 64 KiB 3.2, with 16 0.73 and 2.2, with 32 0.73 and 1.7 (two processors of
// an AMD EPYC, Zen 4, a line in 0.06 us, a barrier after each, 2026-11-28). Memory that nothing was written to is not there yet.
inline constexpr std::size_t kLaneSlots = 32;  // a power of two
// Bytes that one rank gives in one round of a call.
inline constexpr Bytes kLaneRoom = kibibytes(64);
// What is longer is shown part by part, so that its readers copy while it is written.
inline constexpr Bytes kLanePart = kibibytes(8);

// How many bytes a rank says, and how many there are in all by its own count: it need not say those that nobody else wants.
struct LaneBytes {
  std::uint32_t said = 0;
  std::uint32_t in_all = 0;
  bool operator==(const LaneBytes&) const = default;
};
inline LaneBytes all_of(Bytes size) {
  return {static_cast<std::uint32_t>(size.value), static_cast<std::uint32_t>(size.value)};
}

struct alignas(64) LaneSlot {
  std::atomic<std::uint64_t> stamp;  // of call and round; 0: nothing yet
  std::uint64_t done;                // this rank needs nothing more of calls before
  LaneBytes bytes;                   // that it gives
  std::uint32_t gave_up;             // 0: it did not; else why, and because of whom
  std::atomic<std::uint32_t> ready;  // so many of them are there
  std::byte few[32];                 // what is no longer lies here, in the line of the stamp
  std::byte payload[kLaneRoom.value];
  std::byte* place_for(std::uint64_t size) { return size <= sizeof few ? few : payload; }
  const std::byte* place_for(std::uint64_t size) const { return size <= sizeof few ? few : payload; }
};
// Whole lines: processors that copy by one instruction take four times as long where the destination lies across them.
static_assert(offsetof(LaneSlot, payload) == 64 && sizeof(LaneSlot) % 64 == 0);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

// Which call this rank makes, for those that wait in vain.
struct LaneNote {
  std::atomic<std::uint64_t> call;   // by number and communicator; 0: about to change
  std::atomic<std::uint64_t> what;   // which call it is, and what else all ranks give alike
  std::atomic<std::uint64_t> bytes;  // that it gives or expects
};
inline constexpr std::size_t kLaneNotes = 64;

struct Lane {
  LaneSlot slots[kLaneSlots];
  alignas(64) std::atomic<std::uint64_t> done;  // as in a slot, with the communicator's number
  alignas(64) LaneNote notes[kLaneNotes];
};

// The owner's side. Nobody reads the slot any more. Guard STAMP_LAST: all that is said is there when the stamp is, also what goes past the
// caches, behind which HandingCopy has a fence. `handing`: what copies; null: all goes through the caches.
struct LaneSaid {
  std::uint64_t stamp = 0;
  std::uint64_t done = 0;
  LaneBytes bytes;
  std::uint32_t gave_up = 0;
};
inline void say(LaneSlot& slot, const LaneSaid& what, const std::byte* bytes, HandingCopy* handing) {
  const auto copy = [handing](std::byte* to, const std::byte* from, std::size_t size) {
    if (handing != nullptr)
      handing->copy(to, from, size);
    else
      copy_across(to, from, size);
  };
  const std::size_t size = what.gave_up != 0 ? 0 : what.bytes.said;
  const std::size_t first = size <= 2 * kLanePart.value ? size : kLanePart.value;
  std::byte* const place = slot.place_for(size);
  slot.done = what.done;
  slot.bytes = what.bytes;
  slot.gave_up = what.gave_up;
  if (first == sizeof(std::uint64_t)) {
    std::memcpy(place, bytes, sizeof(std::uint64_t));
  } else if (first > 0) {
    copy(place, bytes, first);
  }
  slot.ready.store(static_cast<std::uint32_t>(first), std::memory_order_relaxed);
  slot.stamp.store(what.stamp, std::memory_order_release);
  for (std::size_t there = first; there < size;) {
    const std::size_t part = size - there < kLanePart.value ? size - there : kLanePart.value;
    copy(place + there, bytes + there, part);
    there += part;
    slot.ready.store(static_cast<std::uint32_t>(there), std::memory_order_release);
  }
}

// Asks for lines of the slot, to write there soon: those that have read them have them, too. As many as were `last` written there, up to so many
// bytes: what is longer may better go past the caches (HandingCopy), which is found out by copies whose lines nobody fetched. (Two processors of an
// AMD EPYC with a line in 0.27 us, a barrier after each, 2026-11-28: an allreduce of 64 B from 0.50 to 0.32 us, of 1 KiB from 0.65 to 0.48; with lines
// of 4 KiB fetched, too, a broadcast of those from 0.65 to 0.86.)
inline constexpr std::uint32_t kFetchedToWrite = 2048;
inline void fetch_line_for_writing(const void* line) {
#if defined(__x86_64__)
  asm volatile(
      "prefetchw %0"
      :
      : "m"(*static_cast<const char*>(line)));  // the builtin asks for reading where the compiler may not assume this one
#else
  __builtin_prefetch(line, 1);
#endif
}
inline void fetch_for_writing(const LaneSlot& slot, std::uint32_t last) {
  fetch_line_for_writing(&slot);
  if (last <= sizeof slot.few || last > kFetchedToWrite) return;
  for (std::uint32_t at = 0; at < last; at += 64) fetch_line_for_writing(slot.payload + at);
}

// A reader's side. Guard STAMP_FIRST: nothing of the slot is looked at before its stamp is the one that is waited for.
inline bool is_said(const LaneSlot& slot, std::uint64_t stamp) {
  return slot.stamp.load(std::memory_order_acquire) == stamp;
}

}  // namespace ist
