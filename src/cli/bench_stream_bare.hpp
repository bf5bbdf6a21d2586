// A bare pair of kernels that sends packets and receives them: what a message in a stream is measured beside.
//
// Who calls this : bench_stream_kernels.cu on devices, the fake driver on processors.
// Threads        : of one block; `barrier` is theirs.
// Ownership      : none.
// Errors         : none; the receiver waits until the packets come.
//
// Nothing else is done than what has to be: the number of the message is loaded from the device's own memory, so that a graph can be
// replayed, the bytes are loaded, and packets of them are stored; there they are awaited and stored. No size, no room, no end.
#pragma once

#include "memory/cuda/channel_protocol.hpp"

namespace ist::cli {

struct BareWork {
  channel::Quad* packets;   // the receiver's
  std::uint64_t* bytes;     // read, or written
  std::uint64_t* sequence;  // of this end
  std::uint64_t vectors;    // of eight bytes
};

template <class Barrier>
IST_KERNEL_CODE void send_bare(const BareWork& work, unsigned thread, unsigned threads, const Barrier& barrier) {
  std::uint64_t next = thread < work.vectors ? work.bytes[thread] : 0;
  const std::uint64_t sequence = channel::load_relaxed(work.sequence);
  for (std::uint64_t i = thread; i < work.vectors; i += threads) {
    if (i != thread) next = work.bytes[i];
    channel::store_relaxed(&work.packets[i], channel::packed(channel::number_of(sequence), next));
  }
  barrier();
  if (thread == 0) channel::store_relaxed(work.sequence, sequence + 1);
}

template <class Barrier>
IST_KERNEL_CODE void receive_bare(const BareWork& work, unsigned thread, unsigned threads, const Barrier& barrier) {
  const std::uint64_t sequence = channel::load_relaxed(work.sequence);
  for (std::uint64_t i = thread; i < work.vectors; i += threads) {
    channel::Quad found = channel::load_relaxed(&work.packets[i]);
    while (!channel::has_come(found, channel::number_of(sequence))) {
      channel::between_looks();
      found = channel::load_relaxed(&work.packets[i]);
    }
    work.bytes[i] = channel::bytes_in(found);
  }
  barrier();
  if (thread == 0) channel::store_relaxed(work.sequence, sequence + 1);
}

}  // namespace ist::cli
