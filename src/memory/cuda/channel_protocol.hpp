// What the kernels of a channel do, thread by thread: between two devices, where kernels wait for each other, and on one, where only
// streams wait. models/channel.pml has the first without its bytes.
//
// Who calls this : cuda_channel_kernels.cu on devices; the fake driver and tests on processors.
// Threads        : all threads of all blocks of a kernel, `crew` saying which this is: a `Crew` has thread, threads, block, blocks;
//                  barrier(), any(bool) and first(value), which gives the first thread's value, are called by all of a block.
//                  One kernel at a time at either end of a channel; those of the two ends at once.
// Ownership      : none.
// Errors         : whoever looks in vain for long looks at the word `gone`, and gives up if that is set: the channel stays as it
//                  was, and the report says so.
//
// What the next kernel at this end has to know lies in this end's own memory; kernels of one stream see each other's stores.
#pragma once

#include "memory/cuda/channel_bytes.hpp"
#include "memory/cuda/channel_layout.hpp"

namespace ist::channel {

// So many vain looks lie between two at the word `gone`, which is across the bus.
inline constexpr unsigned kLooks = 1000;

// The first vain look is followed by one at `broken`, which is near: behind a kernel that gave up many may come that will.
class Looker {
 public:
  IST_KERNEL_CODE Looker(const std::uint32_t* gone, const std::uint32_t* broken) : gone_(gone), broken_(broken) {}
  IST_KERNEL_CODE bool gives_up() {
    between_looks();
    if (--left_ != 0) return false;
    left_ = kLooks;
    const std::uint32_t* const word = broken_ != nullptr ? broken_ : gone_;
    broken_ = nullptr;
    return load_relaxed(word) != 0;
  }

 private:
  const std::uint32_t* gone_;
  const std::uint32_t* broken_;  // not looked at yet
  unsigned left_ = 1;
};

IST_KERNEL_CODE std::uint32_t number_of(std::uint64_t message) { return static_cast<std::uint32_t>(message) | kNumbered; }
IST_KERNEL_CODE std::uint64_t least(std::uint64_t a, std::uint64_t b) { return a < b ? a : b; }

// The last block of a kernel to come here; all its threads learn it, and whether any block failed.
template <class Crew>
IST_KERNEL_CODE bool last_to_leave(const Crew& crew, std::uint32_t& leaving, bool& failed) {
  failed = crew.any(failed);
  if (crew.blocks == 1) return true;
  std::uint32_t all = 0;
  if (crew.thread == 0) {
    const std::uint32_t mine = failed ? 0x10001U : 1U;
    all = add(&leaving, mine) + mine;
  }
  all = static_cast<std::uint32_t>(crew.first(all));
  if ((all & 0xffffU) != crew.blocks) return false;
  failed = all >> 16 != 0;
  if (crew.thread == 0) store_relaxed(&leaving, 0U);
  return true;
}

IST_KERNEL_RARE void report_failure(Report* report, std::uint32_t* broken) {
  store_relaxed(broken, 1U);
  store_release(&report->failed, 1U);
}

IST_KERNEL_RARE void report_truncation(Report* report, std::uint64_t message, std::uint64_t bytes, std::uint64_t room) {
  store_relaxed(&report->message, message);
  store_relaxed(&report->bytes, bytes);
  store_relaxed(&report->room, room);
  store_release(&report->truncations, load_relaxed(&report->truncations) + 1);
}

// ---- sending to another device ----

// A slot is free when the message that was in it is reported as taken. Relaxed: the receiver's loads had returned before it
// reported, and these stores are not begun before the report was seen.
IST_KERNEL_RARE bool wait_for_report(Outbox* own, const std::uint32_t* gone, std::uint64_t sent) {
  Looker looker{gone, &own->broken};
  while (sent - load_relaxed(&own->sent_and_credit.high) >= kSlots)
    if (looker.gives_up()) return false;
  return true;
}
IST_KERNEL_CODE bool wait_for_slot(const SendWork& work, const Quad& known) {
  return known.low - known.high < kSlots || wait_for_report(work.own, work.gone, known.low);
}

// Bytes that are no whole word of eight, or do not lie as one.
IST_KERNEL_RARE std::uint64_t odd_bytes_at(const std::byte* from, std::uint64_t count) { return bytes_at(from, count); }
IST_KERNEL_RARE void put_odd_bytes(std::byte* to, std::uint64_t value, std::uint64_t count) { put_bytes(to, value, count); }

IST_KERNEL_CODE std::uint64_t word_at(const std::byte* from, std::uint64_t left) {
  if (left >= 8 && lies_as<std::uint64_t>(from)) return *reinterpret_cast<const std::uint64_t*>(from);
  return odd_bytes_at(from, left);
}
IST_KERNEL_CODE void put_word(std::byte* to, std::uint64_t value, std::uint64_t left) {
  if (left >= 8 && lies_as<std::uint64_t>(to))
    *reinterpret_cast<std::uint64_t*>(to) = value;
  else
    put_odd_bytes(to, value, left);
}

// A slot's header and its packets behind that are one row: a warp stores the header and 31 packets at once, which cross the link
// together, so that whoever finds the header mostly finds the packets, too.
template <class Crew>
IST_KERNEL_CODE bool send_small(const Crew& crew, const SendWork& work, const Quad& known) {
  static_assert(offsetof(Slot, packets) == sizeof(Quad));
  const std::uint32_t quads = static_cast<std::uint32_t>(work.bytes + 7) / 8 + 1;
  const auto word = [&](std::uint32_t quad) {
    const std::uint64_t offset = std::uint64_t{quad - 1} * 8;
    return word_at(work.from + offset, work.bytes - offset);
  };
  // Read before it is known where to: the two loads are on their way together.
  std::uint64_t next = work.bytes;
  if (crew.thread != 0 && crew.thread < quads) next = word(crew.thread);
  if (!wait_for_slot(work, known)) return false;
  Quad* const row = &work.peer->slots[known.low % kSlots].header;
  const std::uint32_t number = number_of(known.low);
  if (crew.thread < quads) store_relaxed(&row[crew.thread], packed(number, next));
  for (std::uint32_t i = crew.thread + crew.threads; i < quads; i += crew.threads)
    store_relaxed(&row[i], packed(number, word(i)));
  return true;
}

// A message of at most kSmall bytes, by one block.
template <class Crew>
IST_KERNEL_CODE void send_packets(const Crew& crew, const SendWork& work) {
  const Quad known = load_relaxed(&work.own->sent_and_credit);
  const bool failed = crew.any(!send_small(crew, work, known));
  if (crew.thread != 0) return;
  if (failed) return report_failure(work.report, &work.own->broken);
  store_relaxed(&work.own->sent_and_credit.low, known.low + 1);
}

// One block's lane. The chunk's bytes come before its flag: the barrier orders the other threads' stores before the first one's
// release, which is cumulative. Acquire of the credit: the receiver's loads of the chunk that lay there come before these stores.
template <class Crew>
IST_KERNEL_CODE bool send_lane(const Crew& crew, const SendWork& work) {
  const std::uint64_t chunk = chunk_of(work.bytes);
  const std::uint64_t chunks = chunks_of(work.bytes);
  const std::uint32_t lane = crew.block;
  std::uint64_t at = load_relaxed(&work.own->lane_sent[lane]);
  std::uint64_t credit = at - kRing;
  for (std::uint64_t k = lane; k < chunks; k += crew.blocks, ++at) {
    bool failed = false;
    if (crew.thread == 0) {
      Looker looker{work.gone, &work.own->broken};
      while (!failed && at - credit >= kRing) {
        credit = load_acquire(&work.own->lane_credit[lane]);
        if (at - credit >= kRing) failed = looker.gives_up();
      }
    }
    if (crew.any(failed)) return false;
    const std::uint64_t size = least(chunk, work.bytes - k * chunk);
    copy_bytes(work.peer->rings[lane][at % kRing], work.from + k * chunk, size, crew.thread, crew.threads);
    crew.barrier();
    if (crew.thread == 0) store_release(&work.peer->flags[lane][at % kRing * 16], at + 1);
  }
  if (crew.thread == 0) store_relaxed(&work.own->lane_sent[lane], at);
  return true;
}

// As many blocks as blocks_for() says.
template <class Crew>
IST_KERNEL_CODE void send(const Crew& crew, const SendWork& work) {
  if (work.bytes <= kSmall) return send_packets(crew, work);
  const Quad known = load_relaxed(&work.own->sent_and_credit);
  bool failed = false;
  if (crew.block == 0 && crew.thread == 0) {
    failed = !wait_for_slot(work, known);
    if (!failed) store_relaxed(&work.peer->slots[known.low % kSlots].header, packed(number_of(known.low), work.bytes));
  }
  failed = crew.any(failed) || !send_lane(crew, work);
  if (!last_to_leave(crew, work.own->leaving, failed) || crew.thread != 0) return;
  if (failed) return report_failure(work.report, &work.own->broken);
  store_relaxed(&work.own->sent_and_credit.low, known.low + 1);
}

// ---- receiving from another device ----

// All packets are waited for, also those that find no room: what comes later must not fall into the next message's.
IST_KERNEL_CODE bool await(const Quad* packets, Quad& found, std::uint32_t number, Looker& looker) {
  while (!has_come(found, number)) {
    if (looker.gives_up()) return false;
    found = load_relaxed(packets);
  }
  return true;
}

// Bytes that are no whole words of eight, do not lie as such, or find no room.
template <class Crew>
IST_KERNEL_RARE bool take_odd(const Crew crew, const ReceiveWork work, const Quad* packets, std::uint32_t number,
                              std::uint64_t bytes) {
  const std::uint64_t wanted = least(bytes, work.room);
  Looker looker{work.gone, &work.own->broken};
  for (std::uint64_t i = crew.thread; i * 8 < bytes; i += crew.threads) {
    Quad found = load_relaxed(&packets[i]);
    if (!await(&packets[i], found, number, looker)) return false;
    if (i * 8 < wanted) put_bytes(work.to + i * 8, bytes_in(found), wanted - i * 8);
  }
  return true;
}

// `next`: what was seen at the thread's first packets.
template <class Crew>
IST_KERNEL_CODE bool take_small(const Crew& crew, const ReceiveWork& work, const Slot& slot, std::uint32_t number, Quad next,
                                std::uint64_t bytes) {
  auto* const words = reinterpret_cast<std::uint64_t*>(work.to);
  if (bytes % 8 != 0 || bytes > work.room || !lies_as<std::uint64_t>(words))
    return take_odd(crew, work, slot.packets, number, bytes);
  const std::uint32_t vectors = static_cast<std::uint32_t>(bytes) / 8;
  Looker looker{work.gone, &work.own->broken};
  for (std::uint32_t i = crew.thread; i < vectors; i += crew.threads) {
    if (i != crew.thread) next = load_relaxed(&slot.packets[i]);
    if (!await(&slot.packets[i], next, number, looker)) return false;
    words[i] = bytes_in(next);
  }
  return true;
}

// The bytes of one chunk, as far as there is room; then the lane's credit. Relaxed: each load has returned when its thread comes to
// the barrier, since the store of what it loaded was begun.
template <class Crew>
IST_KERNEL_CODE void take_chunk(const Crew& crew, const ReceiveWork& work, std::uint32_t lane, std::uint64_t at,
                                std::uint64_t offset, std::uint64_t size) {
  const std::uint64_t room = offset < work.room ? least(size, work.room - offset) : 0;
  copy_bytes(work.to + (room == 0 ? 0 : offset), work.own->rings[lane][at % kRing], room, crew.thread, crew.threads);
  crew.barrier();
  if (crew.thread == 0) store_relaxed(&work.peer->lane_credit[lane], at + 1);
}

IST_KERNEL_CODE bool is_there(const Inbox& inbox, std::uint32_t lane, std::uint64_t at) {
  return load_acquire(&inbox.flags[lane][at % kRing * 16]) == at + 1;
}

template <class Crew>
IST_KERNEL_CODE bool take_lane(const Crew& crew, const ReceiveWork& work, std::uint64_t bytes) {
  const std::uint64_t chunk = chunk_of(bytes);
  const std::uint32_t lanes = lanes_of(bytes);
  const std::uint32_t lane = crew.block;
  if (lane >= lanes) return true;
  std::uint64_t at = load_relaxed(&work.own->lane_taken[lane]);
  for (std::uint64_t k = lane; k < chunks_of(bytes); k += lanes, ++at) {
    bool failed = false;
    if (crew.thread == 0) {
      Looker looker{work.gone, &work.own->broken};
      while (!failed && !is_there(*work.own, lane, at)) failed = looker.gives_up();
    }
    if (crew.any(failed)) return false;
    take_chunk(crew, work, lane, at, k * chunk, least(chunk, bytes - k * chunk));
  }
  if (crew.thread == 0) store_relaxed(&work.own->lane_taken[lane], at);
  return true;
}

// A message with more lanes than this kernel has blocks, because it is longer than the room: a block serves several, whichever has
// a chunk, since a lane's sender may not even run before another one's is through.
template <class Crew>
IST_KERNEL_CODE bool take_several_lanes(const Crew& crew, const ReceiveWork& work, std::uint64_t bytes) {
  const std::uint64_t chunk = chunk_of(bytes);
  const std::uint64_t chunks = chunks_of(bytes);
  const std::uint32_t lanes = lanes_of(bytes);
  std::uint64_t left = 0;
  for (std::uint32_t lane = crew.block; lane < lanes; lane += crew.blocks) {
    if (crew.thread == 0) store_relaxed(&work.own->lane_begin[lane], load_relaxed(&work.own->lane_taken[lane]));
    left += (chunks - lane + lanes - 1) / lanes;
  }
  Looker looker{work.gone, &work.own->broken};
  for (std::uint32_t lane = crew.block; left > 0; --left) {
    constexpr std::uint64_t kNone = ~std::uint64_t{0};
    std::uint64_t found = kNone;
    std::uint64_t at = 0;
    while (crew.thread == 0 && found == kNone) {
      at = load_relaxed(&work.own->lane_taken[lane]);
      const std::uint64_t k = lane + (at - load_relaxed(&work.own->lane_begin[lane])) * lanes;
      if (k < chunks && is_there(*work.own, lane, at)) {
        found = k;
        break;
      }
      lane = lane + crew.blocks < lanes ? lane + crew.blocks : crew.block;
      if (looker.gives_up()) break;
    }
    found = crew.first(found);
    if (found == kNone) return false;
    lane = static_cast<std::uint32_t>(found % lanes);
    at = crew.first(at);
    take_chunk(crew, work, lane, at, found * chunk, least(chunk, bytes - found * chunk));
    if (crew.thread == 0) store_relaxed(&work.own->lane_taken[lane], at + 1);
  }
  return true;
}

template <class Crew>
IST_KERNEL_RARE bool take_long(const Crew crew, const ReceiveWork work, std::uint64_t bytes) {
  return crew.blocks >= lanes_of(bytes) ? take_lane(crew, work, bytes) : take_several_lanes(crew, work, bytes);
}

// The packets of a slot become zeros twice before their numbers come again.
template <class Crew>
IST_KERNEL_RARE void clean(const Crew crew, Slot* slot) {
  if (crew.thread == 0) store_relaxed(&slot->header, Quad{0, 0});
  for (std::uint32_t i = crew.thread; i < kSmall / 8; i += crew.threads) store_relaxed(&slot->packets[i], Quad{0, 0});
  crew.barrier();
}

template <class Crew>
IST_KERNEL_CODE void end_message(const Crew& crew, const ReceiveWork& work, std::uint64_t message, std::uint64_t bytes) {
  const bool cleans = (message & kCleaning) < kSlots;
  if (cleans) clean(crew, &work.own->slots[message % kSlots]);
  if (crew.thread != 0) return;
  store_relaxed(&work.own->taken, message + 1);
  if (work.counts != 0) store_relaxed(&work.own->came, least(bytes, work.room));
  // Release: the zeros come before the packets of whoever has seen the report.
  if (cleans) store_release(&work.peer->sent_and_credit.high, message + 1);
  // As for chunks; reported now and then only, because the kernel's end waits until this store is over.
  else if ((message + 1) % kReport == 0)
    store_relaxed(&work.peer->sent_and_credit.high, message + 1);
  if (bytes > work.room) report_truncation(work.report, message, bytes, work.room);
}

// As many blocks as blocks_for() says of the room.
template <class Crew>
IST_KERNEL_CODE void receive(const Crew& crew, const ReceiveWork& work) {
  const std::uint64_t message = load_relaxed(&work.own->taken);
  const std::uint32_t number = number_of(message);
  const Slot& slot = work.own->slots[message % kSlots];
  // Header and own packet are looked for together, since they come together.
  Quad header = load_relaxed(&slot.header);
  const Quad* const own = crew.block == 0 ? &slot.packets[crew.thread] : &slot.header;
  Quad next = load_relaxed(own);
  Looker looker{work.gone, &work.own->broken};
  bool failed = false;
  while (!failed && !has_come(header, number)) {
    failed = looker.gives_up();
    header = load_relaxed(&slot.header);
    next = load_relaxed(own);
  }
  // From here on all threads of the block have seen the same header.
  failed = crew.any(failed);
  const std::uint64_t bytes = bytes_in(header);
  if (!failed && bytes <= kSmall) {
    failed = crew.block == 0 && !take_small(crew, work, slot, number, next, bytes);
  } else if (!failed) {
    failed = !take_long(crew, work, bytes);
  }
  if (!last_to_leave(crew, work.own->leaving, failed)) return;
  if (!failed) return end_message(crew, work, message, bytes);
  if (crew.thread != 0) return;
  if (work.counts != 0) store_relaxed(&work.own->came, std::uint64_t{0});
  report_failure(work.report, &work.own->broken);
}

// From the beginning, for what is not as most small messages are: nothing was told of what the threads have seen.
template <class Crew>
IST_KERNEL_RARE void receive_once_more(const Crew crew, const ReceiveWork& work) {
  receive(crew, work);
}

// Into room of at most kSmall bytes, by one block: of most messages each thread takes at most one word, in as few instructions as
// there can be, because the stream's next kernel begins when the last one is over.
template <class Crew>
IST_KERNEL_CODE void receive_packets(const Crew& crew, const ReceiveWork& work) {
  static_assert(offsetof(Inbox, taken) == 0 && offsetof(Inbox, broken) == 12);
  const Quad state = load_relaxed(reinterpret_cast<const Quad*>(work.own));
  const std::uint32_t number = number_of(state.low);
  const Slot& slot = work.own->slots[state.low % kSlots];
  const std::uint32_t offset = crew.thread * 8;
  const auto most = static_cast<std::uint32_t>(least(work.room, std::uint64_t{crew.threads} * 8));
  Quad header{0, 0};
  Quad mine{0, 0};
  bool come = false;
  // Header and own packet are looked for together, since they come together. Behind a kernel that gave up nothing is waited for.
  for (unsigned left = kLooks; state.high >> 32 == 0;) {
    header = load_relaxed(&slot.header);
    mine = load_relaxed(&slot.packets[crew.thread]);
    come = has_come(header, number) && (bytes_in(header) <= offset || bytes_in(header) > most || has_come(mine, number));
    if (come) break;
    between_looks();
    if (--left != 0) continue;
    if (load_relaxed(work.gone) != 0) break;
    left = kLooks;
  }
  const std::uint64_t bytes = bytes_in(header);
  const bool usual = come && bytes <= most && (state.low & kCleaning) >= kSlots;
  if (usual && offset < bytes) put_word(work.to + offset, bytes_in(mine), bytes - offset);
  if (crew.any(!usual)) return receive_once_more(crew, work);
  if (crew.thread != 0) return;
  store_relaxed(&work.own->taken, state.low + 1);
  if (work.counts != 0) store_relaxed(&work.own->came, bytes);
  if ((state.low + 1) % kReport == 0) store_relaxed(&work.peer->sent_and_credit.high, state.low + 1);
}

}  // namespace ist::channel
