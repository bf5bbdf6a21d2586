// What a channel is made of: the words and rings that its two ends keep in device memory, and what a kernel is told.
//
// Who calls this : channel_protocol.hpp, the kernels, cuda_channels.cpp, the fake driver.
// Threads        : see channel_protocol.hpp for who writes what.
// Ownership      : none; plain data. Zeros are a new channel.
// Errors         : none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/cuda/channel_memory.hpp"
#include "memory/stream_note.hpp"

namespace ist::channel {

// ---- between two devices ----

// Messages of at most so many bytes go as packets: four bytes and the number of their message in each store of eight.
inline constexpr std::uint32_t kSmall = 8192;
// So many messages may be under way; the receiver reports every so many that it has taken them.
inline constexpr std::uint64_t kSlots = 32;
inline constexpr std::uint64_t kReport = kSlots / 2;
// Longer ones go through rings of chunks, one ring for each lane: a block that sends and a block that receives.
inline constexpr std::uint32_t kLanes = 64;
inline constexpr std::uint32_t kRing = 2;
inline constexpr std::uint32_t kChunk = 65536;
inline constexpr std::uint32_t kLeastChunk = 4096;
inline constexpr std::uint32_t kThreads = 512;

// A packet's number has 31 bits and the top one set, so that zeros are never a number. Before a number comes again after 2^31
// messages each packet was cleaned twice.
inline constexpr std::uint32_t kNumbered = 0x80000000U;
inline constexpr std::uint64_t kCleaning = (std::uint64_t{1} << 30) - 1;

// Two packets: {number, four bytes} in each half. The header's bytes are the message's length.
struct Slot {
  Quad header;
  Quad packets[kSmall / 8];
};

// ---- on one device, where kernels of two processes must not wait for each other: streams wait, kernels only copy ----

inline constexpr std::uint32_t kParts = 8;
inline constexpr std::uint32_t kPart = kLanes * kRing * kChunk / kParts;

// ---- what messages are made of, where that is compared (note_protocol.hpp) ----

// Notes of so many messages lie beside each other: more than may be under way, and told of.
inline constexpr std::uint64_t kNotes = 64;
static_assert(kNotes > kSlots + 1 && kNotes > kParts + 1);
struct NoteSlot {
  std::uint64_t number;  // 1 + the message's
  StreamNote note;
};

// In page-locked host memory: notes that were not the same, each pair once.
struct NotePair {
  std::uint64_t times;  // how often so far; 0: no pair
  std::uint64_t about;  // the last message, or the member whose `sent` is
  StreamNote sent;
  StreamNote received;
};
struct NoteLog {
  NotePair pairs[64];
};

// ---- on both ----

// In the receiver's memory. Who writes: R the receiver, S the sender.
struct alignas(128) Inbox {
  std::uint64_t taken;               // R: messages taken
  std::uint32_t leaving;             // R: blocks of a kernel that are through
  std::uint32_t broken;              // R: 1 when a kernel has given up
  std::uint32_t taking;              // R: the part that is taken next, on one device
  std::uint64_t coming;              // R: bytes of the message that is being taken, on one device
  std::uint64_t came;                // R: bytes of the last message that found room, where the work asks for it
  std::uint64_t lane_taken[kLanes];  // R: chunks taken
  std::uint64_t lane_begin[kLanes];  // R: lane_taken when the message began, for blocks that serve several lanes
  alignas(128) std::uint32_t ready;  // S adds, R takes away: the receiving stream waits until it is at least one
  alignas(8) std::uint64_t posted;   // both: parts that are there, and those that are to be dropped (channel_protocol.hpp)
  std::uint64_t part_bytes[kParts];  // S: length of the message, with its first part
  alignas(128) Slot slots[kSlots];   // S
  std::uint64_t flags[kLanes][kRing * 16];  // S: 1 + the chunk's number in its lane, each on a line of its own
  std::byte rings[kLanes][kRing][kChunk];   // S
  NoteSlot notes[kNotes];                   // S, where notes are compared
};

// In the sender's memory.
struct alignas(128) Outbox {
  Quad sent_and_credit;             // S: messages sent; R: messages taken, as last reported. One load for both
  std::uint32_t leaving;            // S: blocks of a kernel that are through
  std::uint32_t broken;             // S: 1 when a kernel has given up
  std::uint32_t putting;            // S: the part that is put next, on one device
  std::uint64_t lane_sent[kLanes];  // S: chunks sent
  alignas(128) std::uint64_t lane_credit[kLanes];  // R: chunks taken
  alignas(
      128) std::uint32_t room;  // S takes away, R adds: free parts, less kParts; the sending stream waits until there is one
};
inline constexpr std::uint32_t kRoom = 1U - kParts;  // what a stream waits for

// In page-locked host memory: what kernels have to tell their own rank.
struct alignas(64) Report {
  std::uint32_t failed;       // 1: given up because the other rank is gone, or the world ends
  std::uint32_t truncations;  // how many so far; of the last one:
  std::uint64_t message;      // its number, from 0 on
  std::uint64_t bytes;
  std::uint64_t room;
};

// What a kernel is told; no number of a message is among it, so that it can be launched again as it is.
struct SendWork {
  Outbox* own;
  Inbox* peer;
  const std::byte* from;
  std::uint64_t bytes;
  const std::uint32_t* gone;  // page-locked: not 0 when there is nobody to wait for any more
  Report* report;
};
struct ReceiveWork {
  Inbox* own;
  Outbox* peer;
  std::byte* to;
  std::uint64_t room;
  const std::uint32_t* gone;
  Report* report;
  std::uint32_t counts = 0;  // not 0: what follows in the stream wants to know what came
};
struct SendReceiveWork {
  SendWork send;
  ReceiveWork receive;
  std::uint32_t send_blocks;
};
// One part of the message, of so many; of the room, for a receive.
struct PutWork {
  SendWork send;
  std::uint64_t part;
};
struct TakeWork {
  ReceiveWork receive;
  std::uint64_t part;
  std::uint64_t parts;
};
// Streams that wait for a rank that is gone go on.
struct LetGoWork {
  std::uint32_t* word;
};

struct TellWork {
  Outbox* own;
  Inbox* peer;
  StreamNote note;
};
struct CompareWork {
  Inbox* own;
  NoteLog* log;
  StreamNote note;
};

// How a long message is cut: the same on both ends, by its length alone.
IST_KERNEL_NUMBER std::uint64_t chunk_of(std::uint64_t bytes) {
  const std::uint64_t even = ((bytes + kLanes - 1) / kLanes + 15) / 16 * 16;
  return even < kLeastChunk ? kLeastChunk : even > kChunk ? kChunk : even;
}
IST_KERNEL_NUMBER std::uint64_t chunks_of(std::uint64_t bytes) { return (bytes + chunk_of(bytes) - 1) / chunk_of(bytes); }
IST_KERNEL_NUMBER std::uint32_t lanes_of(std::uint64_t bytes) {
  const std::uint64_t chunks = chunks_of(bytes);
  return static_cast<std::uint32_t>(chunks < kLanes ? chunks : kLanes);
}
IST_KERNEL_NUMBER std::uint64_t parts_of(std::uint64_t bytes) { return bytes == 0 ? 1 : (bytes + kPart - 1) / kPart; }

IST_KERNEL_NUMBER std::uint32_t blocks_for(std::uint64_t bytes) { return bytes <= kSmall ? 1 : lanes_of(bytes); }
// Of a kernel that moves packets: one for each 16 bytes, whole warps.
IST_KERNEL_NUMBER std::uint32_t threads_for(std::uint64_t bytes) {
  const std::uint64_t wanted = ((bytes + 7) / 8 + 31) / 32 * 32;
  return static_cast<std::uint32_t>(wanted == 0 ? 32 : wanted > kThreads ? kThreads : wanted);
}

// Of a kernel that sends and receives at once: what each block does, in turn, lane by lane. However few blocks a device runs at a time, two at least, the
// blocks at both ends of the first lanes are among them; those that send, all first, could fill both devices and wait for such as receive.
struct Role {
  bool sends;
  std::uint32_t block;  // of those that do
};
IST_KERNEL_NUMBER Role role_of(std::uint32_t block, std::uint32_t sends, std::uint32_t receives) {
  const std::uint32_t pairs = sends < receives ? sends : receives;
  if (block < 2 * pairs) return {block % 2 == 0, block / 2};
  return {sends > receives, block - pairs};
}

}  // namespace ist::channel
