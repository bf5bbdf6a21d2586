// What a device's worker and its process tell each other: orders and answers in page-locked host memory, and nothing else; and the
// places of a mailbox, where workers of other devices leave what is for this one.
//
// Who calls this : worker_protocol.hpp, the kernel, worker_orders.cpp, cuda_workers.cpp, the fake driver.
// Threads        : see worker_protocol.hpp and worker_orders.hpp for who writes what.
// Ownership      : none; plain data. Zeros are a new board.
// Errors         : none.
//
// Bytes travel in packets, four and a number in each store of eight (channel_layout.hpp), so that neither side needs a fence between
// bytes and a flag, and the bus is crossed once: what a device reads with an order is the order itself.
#pragma once

#include "memory/cuda/channel_layout.hpp"

namespace ist::worker {

using channel::Quad;

// Most bytes of an order: of 4096 and more the driver's copies were as quick or quicker (two H200, 2026-11-22).
inline constexpr std::uint32_t kMost = 2048;
// So many orders may be under way.
inline constexpr std::uint64_t kSlots = 16;
// Of the worker's only block. Few: it must fit beside whatever the user runs.
inline constexpr std::uint32_t kThreads = 256;
// So many of them look at an order's first packets while they look for the order: half a kilobyte comes with it.
inline constexpr std::uint32_t kLookers = 64;

// In the lower half of an order's first word, beside how many bytes: into this device; from there into a mailbox of another one's; out of
// a mailbox here, whose place then becomes zeros, or stays as it is. None of them: out of this device.
inline constexpr std::uint32_t kIntoDevice = 0x80000000U;
inline constexpr std::uint32_t kPosts = 0x40000000U;
inline constexpr std::uint32_t kTakes = 0x20000000U;
inline constexpr std::uint32_t kCleans = 0x10000000U;
inline constexpr std::uint32_t kBytes = 0x0fffffffU;
// In an answer, beside the number: what was to be taken had not come.
inline constexpr std::uint64_t kNotThere = std::uint64_t{1} << 32;

// One place of a mailbox, in the memory of the device that takes. Zeros are an empty one. Packets have the number of their message,
// which no other message has that they could be taken for (request/mailbox.hpp).
struct alignas(128) Place {
  Quad packets[kMost / 8];
};

// H: the process writes.
struct alignas(128) Order {
  std::uint64_t head;  // H, last: number above, direction and length below
  Quad where;          // H: packets with the device's address
  Quad place;          // H: packets with the address of a mailbox's place
  Quad letter;         // H: packets with the number that is in that place's packets
  Quad packets[kMost / 8];
};

// W: the worker writes.
struct alignas(128) Answer {
  std::uint64_t done;       // W: the number of an order that asked for no packets, and is over
  Quad packets[kMost / 8];  // W: what an order out of the device asked for
};

struct Board {
  alignas(128) std::uint64_t begun;  // W: the launch that takes orders
  std::uint64_t left;                // W, last of all: the launch that takes no more orders
  std::uint64_t next;                // W, before it: the first order that it did not take
  Order orders[kSlots];
  Answer answers[kSlots];
};

// What the kernel is told.
struct Work {
  Board* board;
  std::uint64_t next;    // the order to begin with
  std::uint64_t launch;  // from 1 on
  std::uint64_t idle;    // nanoseconds without an order after which it leaves
  std::uint64_t most;    // and in any case
  std::uint64_t wait;    // after which it answers that a place of its mailbox is empty
};

}  // namespace ist::worker
