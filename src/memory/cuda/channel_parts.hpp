// What the kernels of a channel do whose two ends are on one device: copy one part of a message, and say so. None of them waits,
// because nothing says that kernels of two processes run at the same time there; their streams wait for a word before each.
//
// Who calls this : as channel_protocol.hpp.
// Threads        : as channel_protocol.hpp.
// Ownership      : none.
// Errors         : a kernel whose stream was let go on without a part, or without room for one, says so in the report.
//
// A send of so many parts is as many times: wait for room, put. A receive does not know the message, so it is as many times "wait, take"
// as its room has parts. Where the message has fewer, the take of its last one makes up for the missing ones; where it has more, the last one
// drops what is there, and leaves word how many the sender is to drop that has yet to put them.
#pragma once

#include "memory/cuda/channel_protocol.hpp"

namespace ist::channel {

// `posted`: parts that are there in the lower half, parts that the sender is to drop in the upper one.
inline constexpr std::uint64_t kOneDrop = std::uint64_t{1} << 32;
IST_KERNEL_CODE std::uint32_t there(std::uint64_t posted) { return static_cast<std::uint32_t>(posted); }
IST_KERNEL_CODE std::uint64_t to_drop(std::uint64_t posted) { return posted >> 32; }

// One part more is there; false: it was to be dropped.
IST_KERNEL_CODE bool post(Inbox& inbox) {
  std::uint64_t now = load_relaxed(&inbox.posted);
  while (true) {
    const bool drops = to_drop(now) != 0;
    if (exchange_if(&inbox.posted, now, drops ? now - kOneDrop : now + 1)) return !drops;
  }
}

IST_KERNEL_CODE void take_one(Inbox& inbox) {
  std::uint64_t now = load_relaxed(&inbox.posted);
  while (!exchange_if(&inbox.posted, now, now - 1)) {
  }
}

// So many parts are of no use: those that are there, whose number it gives, and the rest when they come.
IST_KERNEL_CODE std::uint32_t drop(Inbox& inbox, std::uint64_t parts) {
  std::uint64_t now = load_relaxed(&inbox.posted);
  while (true) {
    const std::uint64_t here = least(there(now), parts);
    if (exchange_if(&inbox.posted, now, now - here + (parts - here) * kOneDrop)) return static_cast<std::uint32_t>(here);
  }
}

IST_KERNEL_CODE std::byte* place_of(Inbox& inbox, std::uint32_t part) {
  return &inbox.rings[0][0][0] + static_cast<std::uint64_t>(part % kParts) * kPart;
}

template <class Crew>
IST_KERNEL_CODE std::uint64_t share_of(const Crew& crew, std::uint64_t bytes) {
  return ((bytes + crew.blocks - 1) / crew.blocks + 15) / 16 * 16;
}

// Each block copies its share.
template <class Crew>
IST_KERNEL_CODE void copy_share(const Crew& crew, std::byte* to, const std::byte* from, std::uint64_t bytes) {
  const std::uint64_t share = share_of(crew, bytes);
  const std::uint64_t begin = share * crew.block;
  if (begin < bytes) copy_bytes(to + begin, from + begin, least(share, bytes - begin), crew.thread, crew.threads);
}

// The room that the stream waited for is used up once the part is there, so that the two counts never promise too much.
template <class Crew>
IST_KERNEL_CODE void put(const Crew& crew, const PutWork& work) {
  const SendWork& what = work.send;
  const std::uint32_t at = load_relaxed(&what.own->putting);
  bool failed = there(load_relaxed(&what.peer->posted)) >= kParts;  // the stream was let go on
  const std::uint64_t offset = work.part * kPart;
  if (!failed && offset < what.bytes)
    copy_share(crew, place_of(*what.peer, at), what.from + offset, least(kPart, what.bytes - offset));
  if (!failed && work.part == 0 && crew.block == 0 && crew.thread == 0)
    store_relaxed(&what.peer->part_bytes[at % kParts], what.bytes);
  if (!last_to_leave(crew, what.own->leaving, failed) || crew.thread != 0) return;
  if (failed) return report_failure(what.report, &what.own->broken);
  if (work.part + 1 == parts_of(what.bytes))
    store_relaxed(&what.own->sent_and_credit.low, load_relaxed(&what.own->sent_and_credit.low) + 1);
  if (!post(*what.peer)) return;
  store_relaxed(&what.own->putting, at + 1);
  add(&what.own->room, ~0U);
  add(&what.peer->ready, 1U);
}

// The first thread of the last block, when a part is taken: `there_are` parts in the message.
IST_KERNEL_CODE void end_part(const TakeWork& work, std::uint32_t at, std::uint64_t bytes, std::uint64_t there_are) {
  const ReceiveWork& what = work.receive;
  Inbox& own = *what.own;
  if (work.part == 0) store_relaxed(&own.coming, bytes);
  std::uint32_t freed = 0;
  // The takes that find nothing more go through without a wait: those behind the message's last part, not one before it.
  const bool makes_up = work.part + 1 == there_are && work.parts > there_are;
  std::uint32_t ready = makes_up ? static_cast<std::uint32_t>(work.parts - there_are) : 0;
  ready -= 1;
  if (work.part < there_are) {
    take_one(own);
    freed = 1;
  }
  const bool last = work.part + 1 == work.parts;
  if (last && there_are > work.parts) {
    const std::uint32_t dropped = drop(own, there_are - work.parts);
    ready -= dropped;
    freed += dropped;
  }
  store_relaxed(&own.taking, at + freed);
  if (last) {
    const std::uint64_t message = load_relaxed(&own.taken);
    store_relaxed(&own.taken, message + 1);
    // Where a part before this one failed, nothing came.
    if (what.counts != 0) store_relaxed(&own.came, load_relaxed(&own.broken) != 0 ? 0 : least(bytes, what.room));
    if (bytes > what.room) report_truncation(what.report, message, bytes, what.room);
  }
  if (ready != 0) add(&own.ready, ready);
  if (freed != 0) add(&what.peer->room, freed);
}

template <class Crew>
IST_KERNEL_CODE void take(const Crew& crew, const TakeWork& work) {
  const ReceiveWork& what = work.receive;
  const std::uint32_t at = load_relaxed(&what.own->taking);
  const std::uint64_t bytes =
      work.part == 0 ? load_relaxed(&what.own->part_bytes[at % kParts]) : load_relaxed(&what.own->coming);
  const std::uint64_t there_are = parts_of(bytes);
  const bool real = work.part == 0 || work.part < there_are;
  bool failed = real && there(load_relaxed(&what.own->posted)) == 0;  // the stream was let go on
  const std::uint64_t offset = work.part * kPart;
  const std::uint64_t wanted = least(bytes, what.room);
  if (!failed && real && offset < wanted)
    copy_share(crew, what.to + offset, place_of(*what.own, at), least(kPart, wanted - offset));
  if (!last_to_leave(crew, what.own->leaving, failed) || crew.thread != 0) return;
  if (failed) {
    if (what.counts != 0) store_relaxed(&what.own->came, std::uint64_t{0});
    return report_failure(what.report, &what.own->broken);
  }
  end_part(work, at, bytes, there_are);
}

IST_KERNEL_CODE void let_go(const LetGoWork& work) { add(work.word, 0x40000000U); }

}  // namespace ist::channel
