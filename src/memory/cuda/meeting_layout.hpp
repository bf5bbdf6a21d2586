// What meetings are made of: the mailbox that each rank of a communicator keeps in device memory, and what a kernel is told.
//
// Who calls this : meeting_protocol.hpp, the kernels, cuda_meetings.cpp, the fake driver.
// Threads        : see meeting_protocol.hpp for who writes what.
// Ownership      : none; plain data. Zeros are a new mailbox.
// Errors         : none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/cuda/channel_layout.hpp"

namespace ist::meeting {

using channel::NoteLog;
using channel::NoteSlot;
using channel::Quad;
using channel::Report;

// So many ranks may meet, each on a device of its own.
inline constexpr std::uint32_t kMost = 16;
// So many meetings may lie in a mailbox at once: who is not waited for may be behind by one less.
inline constexpr std::uint32_t kSlots = 4;
// What a thread combines at once: two packets, which lie in two planes, so that the stores of a warp lie side by side.
inline constexpr std::uint32_t kUnit = 16;
inline constexpr std::uint32_t kThreads = 512;

// Packets are numbered and cleaned as those of channels (channel_layout.hpp).
using channel::kCleaning;

// Of a call that every rank hears the result of, in place of the root.
inline constexpr std::uint32_t kEverybody = ~0U;
// In place of what a call is: the rank has given up, for good.
inline constexpr std::uint32_t kGaveUp = ~0U;

// Notes of so many meetings lie beside each other, of each rank: one may be ahead of another by kSlots and as many more as there are
// ranks, each of which may hold up some.
inline constexpr std::uint64_t kNotes = 32;
static_assert(kNotes > 2 * kSlots + kMost + 1);

// Who writes: O the owner, and every other rank its own word of `begun`.
struct alignas(128) Mailbox {
  std::uint64_t met;      // O: meetings that are over
  std::uint32_t leaving;  // O: blocks of a kernel that are through
  std::uint32_t broken;   // O: 1 when a kernel has given up; `met` and these are one load
  alignas(128)
      std::uint64_t begun[kMost];  // by rank: how many meetings it has begun, in the lower half, and what the last one is
  std::uint64_t noted;             // O: the last meeting that was told of, where notes are compared
  NoteSlot notes[kMost][kNotes];   // by rank, which writes its own
};
static_assert(offsetof(Mailbox, broken) == 12);

// A kernel carries so much of a vector; a longer one takes several, one after the other. With more ranks less, so that a mailbox stays
// below 9 MiB.
IST_KERNEL_NUMBER std::uint64_t piece_for(std::uint32_t ranks) { return ranks <= 4 ? 262144 : 65536; }
IST_KERNEL_NUMBER std::uint64_t plane_for(std::uint32_t ranks) { return piece_for(ranks) / kUnit; }
// Behind the mailbox: for each slot and each rank two planes of packets.
IST_KERNEL_NUMBER std::uint64_t room_for(std::uint32_t ranks) {
  return plane_for(ranks) * 2 * kSlots * ranks * sizeof(Quad);
}
IST_KERNEL_NUMBER std::uint64_t size_for(std::uint32_t ranks) { return sizeof(Mailbox) + room_for(ranks); }

// What a kernel is told; no number of a meeting is among it, so that it can be launched again as it is.
struct MeetWork {
  Mailbox* own;
  const std::byte* from;
  std::byte* to;
  std::uint64_t bytes;  // at most piece_for() the ranks
  std::uint32_t ranks;
  std::uint32_t rank;
  std::uint32_t root;         // who gets the result, or has what all are to have; kEverybody
  std::uint32_t what;         // a number for the call and its arguments: the same on every rank, or something is wrong
  const std::uint32_t* gone;  // page-locked: not 0 when there is nobody to wait for any more
  Report* report;             // `message`: 1 + the rank that has made another call
  // Not null: nobody is waited for; the vectors of the others lie there by rank, each `stride` after the one before.
  const std::byte* parts;
  std::uint64_t stride;
  Mailbox* members[kMost];  // by rank
};

struct TellWork {
  Mailbox* own;
  std::uint32_t ranks;
  std::uint32_t rank;
  StreamNote note;
  Mailbox* members[kMost];  // by rank, this one among them
};
struct CompareWork {
  Mailbox* own;
  NoteLog* log;  // `about`: the rank whose note is the first
  std::uint32_t ranks;
  std::uint32_t rank;
  std::uint32_t heard;  // a bit for each rank whose note came before what this one has heard of it
};

// Blocks and threads of a kernel that moves so many bytes.
IST_KERNEL_NUMBER std::uint32_t blocks_for(std::uint64_t bytes) {
  const std::uint64_t units = (bytes + kUnit - 1) / kUnit;
  return units <= kThreads ? 1 : static_cast<std::uint32_t>((units + kThreads - 1) / kThreads);
}
IST_KERNEL_NUMBER std::uint32_t threads_for(std::uint64_t bytes) {
  const std::uint64_t wanted = ((bytes + kUnit - 1) / kUnit + 31) / 32 * 32;
  return static_cast<std::uint32_t>(wanted == 0 ? 32 : wanted > kThreads ? kThreads : wanted);
}

}  // namespace ist::meeting
