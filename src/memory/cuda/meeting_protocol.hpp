// What the kernels of a meeting do, thread by thread: each rank tells the others what it has, in packets that say themselves whether
// they are there, and combines what it hears in the order of ranks. models/stream_meeting.pml has it without its bytes.
//
// Who calls this : cuda_meeting_kernels.cu on devices; the fake driver on processors.
// Threads        : as channel_protocol.hpp: all threads of all blocks of one kernel for each rank, and one kernel of a rank at a time.
// Ownership      : none.
// Errors         : whoever looks in vain for long looks at the word `gone`, and whether the others make the same call; if not, this
//                  rank gives up for good, says so in its report, and tells the others, who give up too.
//
// The n-th kernel of each rank meets the n-th of every other. A rank says at once that it has begun, and so that it is through with
// the meeting before. What it then tells another one lands in slot n % kSlots there, which the other one has read when it began
// meeting n - kSlots + 1: that is waited for. A rank waits for no more than what it is to be told, so that the root of a broadcast may be ahead.
#pragma once

#include "memory/cuda/channel_protocol.hpp"
#include "memory/cuda/meeting_layout.hpp"

namespace ist::meeting {

using channel::bytes_in;
using channel::has_come;
using channel::least;
using channel::load_acquire;
using channel::load_relaxed;
using channel::packed;
using channel::store_relaxed;
using channel::store_release;

// So many vain looks lie between two at the word `gone`, which is across the bus.
inline constexpr unsigned kLooks = 1000;
// Packets of so many ranks are looked for together.
inline constexpr unsigned kBatch = 4;

IST_KERNEL_CODE std::uint32_t count_in(std::uint64_t begun) { return static_cast<std::uint32_t>(begun); }
IST_KERNEL_CODE std::uint32_t what_in(std::uint64_t begun) { return static_cast<std::uint32_t>(begun >> 32); }
IST_KERNEL_CODE std::uint64_t begun_as(std::uint64_t meeting, std::uint32_t what) {
  return static_cast<std::uint64_t>(what) << 32 | static_cast<std::uint32_t>(meeting + 1);
}
// Has a rank begun that meeting? Counts go round.
IST_KERNEL_CODE bool has_begun(std::uint64_t begun, std::uint64_t meeting) {
  return static_cast<std::int32_t>(count_in(begun) - static_cast<std::uint32_t>(meeting + 1)) >= 0;
}

// The packets of one rank in a mailbox, of a unit's first half; the second half is a plane behind.
IST_KERNEL_CODE Quad* packets_of(Mailbox* mailbox, std::uint32_t ranks, std::uint64_t meeting, std::uint32_t rank) {
  return reinterpret_cast<Quad*>(mailbox + 1) + (meeting % kSlots * ranks + rank) * 2 * plane_for(ranks);
}

// Bytes that are no whole words of eight, or do not lie as such; zeros after them.
IST_KERNEL_RARE Quad odd_unit_at(const std::byte* from, std::uint64_t left) {
  return {channel::bytes_at(from, left), left > 8 ? channel::bytes_at(from + 8, left - 8) : 0};
}
IST_KERNEL_RARE void put_odd_unit(std::byte* to, const Quad unit, std::uint64_t left) {
  channel::put_bytes(to, unit.low, left);
  if (left > 8) channel::put_bytes(to + 8, unit.high, left - 8);
}

IST_KERNEL_CODE bool is_even(const std::byte* at, std::uint64_t left) {
  return channel::lies_as<std::uint64_t>(at) && (left >= kUnit || left == 8);
}
IST_KERNEL_CODE Quad unit_at(const std::byte* from, std::uint64_t left) {
  if (!is_even(from, left)) return odd_unit_at(from, left);
  const auto* const words = reinterpret_cast<const std::uint64_t*>(from);
  return {words[0], left > 8 ? words[1] : 0};
}
IST_KERNEL_CODE void put_unit(std::byte* to, const Quad& unit, std::uint64_t left) {
  if (!is_even(to, left)) return put_odd_unit(to, unit, left);
  auto* const words = reinterpret_cast<std::uint64_t*>(to);
  words[0] = unit.low;
  if (left > 8) words[1] = unit.high;
}

// Goes round a vain look at that rank's packets; gives what is to be remembered until the next: nothing, 1 + the rank, which was seen to be
// past this meeting, or kGiveUp. Who has begun another meeting has ended its kernel before, and so all its stores: what is then not
// there at the next look will never be.
inline constexpr std::uint32_t kGiveUp = ~0U;
struct Waited {
  std::uint64_t meeting;
  std::uint32_t what;
  std::uint32_t rank;
  std::uint32_t passed;
};
IST_KERNEL_RARE std::uint32_t look_around(const std::uint32_t* gone, const std::uint64_t* word, Report* report,
                                          const Waited waited) {
  if (load_relaxed(gone) != 0) return kGiveUp;
  const std::uint64_t begun = load_acquire(word);
  const bool passed = has_begun(begun, waited.meeting + 1);
  if (what_in(begun) == kGaveUp && !passed) return kGiveUp;
  const bool another = count_in(begun) == static_cast<std::uint32_t>(waited.meeting + 1) && what_in(begun) != waited.what;
  if (!another && !(passed && waited.passed == waited.rank + 1)) return passed ? waited.rank + 1 : 0;
  store_relaxed(&report->message, std::uint64_t{waited.rank} + 1);
  return kGiveUp;
}

class Waiter {
 public:
  IST_KERNEL_CODE Waiter(const MeetWork& work, std::uint64_t meeting) : work_(work), meeting_(meeting) {}
  IST_KERNEL_CODE bool gives_up(std::uint32_t rank) {
    channel::between_looks();
    if (--left_ != 0) return false;
    left_ = kLooks;
    passed_ = look_around(work_.gone, &work_.own->begun[rank], work_.report, {meeting_, work_.what, rank, passed_});
    return passed_ == kGiveUp;
  }

 private:
  const MeetWork& work_;
  std::uint64_t meeting_;
  unsigned left_ = kLooks;
  std::uint32_t passed_ = 0;
};

// What a thread knows when its kernel begins.
struct Begin {
  std::uint64_t meeting;
  bool broken;
  std::uint64_t known;  // of the rank of the thread's number
};

template <class Crew>
IST_KERNEL_CODE Begin begin(const Crew& crew, const MeetWork& work) {
  const Quad state = load_relaxed(reinterpret_cast<const Quad*>(work.own));
  // On its way together with the first.
  const std::uint64_t known = crew.thread < work.ranks ? load_relaxed(&work.own->begun[crew.thread]) : 0;
  return {state.low, state.high >> 32 != 0, known};
}

template <class Crew>
IST_KERNEL_CODE void announce(const Crew& crew, const MeetWork& work, std::uint64_t meeting) {
  if (crew.block != 0) return;
  for (std::uint32_t rank = crew.thread; rank < work.ranks; rank += crew.threads)
    if (rank != work.rank) store_relaxed(&work.members[rank]->begun[work.rank], begun_as(meeting, work.what));
}

// Is this rank to tell that one what it has?
IST_KERNEL_CODE bool tells(const MeetWork& work, std::uint32_t rank, bool broadcast) {
  if (rank == work.rank) return false;
  return broadcast ? work.rank == work.root : work.root == kEverybody || rank == work.root;
}

// All threads of the block come here; false: given up. Relaxed: the other one's loads had returned before it began, and these stores
// are not begun before that was seen.
template <class Crew>
IST_KERNEL_CODE bool wait_for_room(const Crew& crew, const MeetWork& work, const Begin& now, bool broadcast) {
  bool failed = false;
  Waiter waiter{work, now.meeting};
  for (std::uint32_t rank = crew.thread; rank < work.ranks && !failed; rank += crew.threads) {
    if (!tells(work, rank, broadcast)) continue;
    std::uint64_t begun = rank == crew.thread ? now.known : load_relaxed(&work.own->begun[rank]);
    // Before the first of all meetings these are counts below zero, which every new mailbox has reached.
    while (!failed && !has_begun(begun, now.meeting + 1 - kSlots)) {
      failed = waiter.gives_up(rank);
      begun = load_relaxed(&work.own->begun[rank]);
    }
    failed = failed || what_in(begun) == kGaveUp;
  }
  return !crew.any(failed);
}

IST_KERNEL_CODE void tell_one(const MeetWork& work, std::uint64_t meeting, std::uint32_t rank, std::uint64_t unit,
                              const Quad& value, bool two) {
  const std::uint32_t number = channel::number_of(meeting);
  Quad* const packets = packets_of(work.members[rank], work.ranks, meeting, work.rank);
  store_relaxed(&packets[unit], packed(number, value.low));
  if (two) store_relaxed(&packets[plane_for(work.ranks) + unit], packed(number, value.high));
}

IST_KERNEL_CODE void tell(const MeetWork& work, std::uint64_t meeting, std::uint64_t unit, const Quad& value, bool two,
                          bool broadcast) {
  for (std::uint32_t rank = 0; rank < work.ranks; ++rank)
    if (tells(work, rank, broadcast)) tell_one(work, meeting, rank, unit, value, two);
}

// What the rank tells of that unit.
IST_KERNEL_CODE bool hear(const MeetWork& work, std::uint64_t meeting, std::uint32_t rank, std::uint64_t unit, bool two,
                          Waiter& waiter, Quad& value) {
  const std::uint32_t number = channel::number_of(meeting);
  const Quad* const packets = packets_of(work.own, work.ranks, meeting, rank) + unit;
  while (true) {
    const Quad low = load_relaxed(packets);
    const Quad high = two ? load_relaxed(packets + plane_for(work.ranks)) : packed(number, 0);
    value = {bytes_in(low), bytes_in(high)};
    if (has_come(low, number) && has_come(high, number)) return true;
    if (waiter.gives_up(rank)) return false;
  }
}

// The same of up to kBatch ranks from `first` on, of this one `mine`. They are looked for together, since they come together.
IST_KERNEL_CODE bool hear_some(const MeetWork& work, std::uint64_t meeting, std::uint32_t first, std::uint64_t unit,
                               bool two, Waiter& waiter, Quad (&found)[kBatch]) {
  const std::uint32_t number = channel::number_of(meeting);
  const Quad mine = found[0];
  while (true) {
    Quad low[kBatch];
    Quad high[kBatch];
#if defined(__CUDACC__)
#pragma unroll
#endif
    for (unsigned i = 0; i < kBatch; ++i) {
      const std::uint32_t rank = first + i;
      low[i] = high[i] = packed(number, 0);
      if (rank >= work.ranks || rank == work.rank) continue;
      const Quad* const packets = packets_of(work.own, work.ranks, meeting, rank) + unit;
      low[i] = load_relaxed(packets);
      if (two) high[i] = load_relaxed(packets + plane_for(work.ranks));
    }
    std::uint32_t missing = work.ranks;
#if defined(__CUDACC__)
#pragma unroll
#endif
    for (unsigned i = 0; i < kBatch; ++i) {
      if (!has_come(low[i], number) || !has_come(high[i], number)) missing = first + i;
      found[i] = first + i == work.rank ? mine : Quad{bytes_in(low[i]), bytes_in(high[i])};
    }
    if (missing == work.ranks) return true;
    if (waiter.gives_up(missing)) return false;
  }
}

// From left to right, in the order of ranks: all who do this get the same bits. `value`: this rank's, then the result.
template <class Combine>
IST_KERNEL_CODE bool hear_all(const MeetWork& work, std::uint64_t meeting, std::uint64_t unit, bool two, Waiter& waiter,
                              const Combine& combine, Quad& value) {
  const Quad mine = value;
  for (std::uint32_t first = 0; first < work.ranks; first += kBatch) {
    Quad found[kBatch];
    found[0] = mine;
    if (!hear_some(work, meeting, first, unit, two, waiter, found)) return false;
#if defined(__CUDACC__)
#pragma unroll
#endif
    for (unsigned i = 0; i < kBatch; ++i)
      if (first + i < work.ranks) value = first + i == 0 ? found[i] : combine(value, found[i]);
  }
  return true;
}

// The packets of a slot become zeros twice before their numbers come again.
template <class Crew>
IST_KERNEL_RARE void clean(const Crew crew, Quad* packets, std::uint64_t count) {
  for (std::uint64_t i = crew.thread; i < count; i += crew.threads) store_relaxed(&packets[i], Quad{0, 0});
}

IST_KERNEL_RARE void give_up(const MeetWork& work, std::uint64_t meeting) {
  for (std::uint32_t rank = 0; rank < work.ranks; ++rank)
    if (rank != work.rank) store_relaxed(&work.members[rank]->begun[work.rank], begun_as(meeting, kGaveUp));
  channel::report_failure(work.report, &work.own->broken);
}

// The next kernel of this rank finds the count; that it begins tells the others that this one is over.
template <class Crew>
IST_KERNEL_CODE void end(const Crew& crew, const MeetWork& work, std::uint64_t meeting, bool failed) {
  if (!channel::last_to_leave(crew, work.own->leaving, failed)) return;
  if (!failed && (meeting & kCleaning) < kSlots)
    clean(crew, packets_of(work.own, work.ranks, meeting, 0), work.ranks * 2 * plane_for(work.ranks));
  if (crew.thread != 0) return;
  if (failed) return give_up(work, meeting);
  store_relaxed(&work.own->met, meeting + 1);
}

// One block. Release and acquire: what the ranks' streams did before is over for all of them afterwards.
template <class Crew>
IST_KERNEL_CODE void barrier(const Crew& crew, const MeetWork& work) {
  const Begin now = begin(crew, work);
  if (now.broken) return;
  for (std::uint32_t rank = crew.thread; rank < work.ranks; rank += crew.threads)
    if (rank != work.rank) store_release(&work.members[rank]->begun[work.rank], begun_as(now.meeting, work.what));
  bool failed = false;
  Waiter waiter{work, now.meeting};
  for (std::uint32_t rank = crew.thread; rank < work.ranks && !failed; rank += crew.threads) {
    if (rank == work.rank) continue;
    std::uint64_t begun = load_acquire(&work.own->begun[rank]);
    while (!failed && !has_begun(begun, now.meeting)) {
      failed = waiter.gives_up(rank);
      begun = load_acquire(&work.own->begun[rank]);
    }
    failed = failed || what_in(begun) == kGaveUp;
  }
  end(crew, work, now.meeting, failed);
}

// What the root has comes to all others, in place.
template <class Crew>
IST_KERNEL_CODE void bcast(const Crew& crew, const MeetWork& work) {
  const Begin now = begin(crew, work);
  if (now.broken) return;
  announce(crew, work, now.meeting);
  const bool roots = work.rank == work.root;
  bool failed = roots && !wait_for_room(crew, work, now, true);
  Waiter waiter{work, now.meeting};
  const std::uint64_t units = (work.bytes + kUnit - 1) / kUnit;
  for (std::uint64_t i = crew.block * crew.threads + crew.thread; i < units && !failed; i += crew.blocks * crew.threads) {
    const std::uint64_t left = work.bytes - i * kUnit;
    if (roots) {
      tell(work, now.meeting, i, unit_at(work.from + i * kUnit, left), left > 8, true);
      continue;
    }
    Quad value;
    failed = !hear(work, now.meeting, work.root, i, left > 8, waiter, value);
    if (!failed) put_unit(work.to + i * kUnit, value, left);
  }
  end(crew, work, now.meeting, failed);
}

// Of vectors that lie in this rank's memory already, whoever brought them there.
template <class Crew, class Combine>
IST_KERNEL_RARE void reduce_parts(const Crew crew, const MeetWork& work, const Combine combine) {
  const std::uint64_t units = (work.bytes + kUnit - 1) / kUnit;
  for (std::uint64_t i = crew.block * crew.threads + crew.thread; i < units; i += crew.blocks * crew.threads) {
    const std::uint64_t left = work.bytes - i * kUnit;
    Quad value{0, 0};
    for (std::uint32_t rank = 0; rank < work.ranks; ++rank) {
      const std::byte* const vector = rank == work.rank ? work.from : work.parts + rank * work.stride;
      const Quad theirs = unit_at(vector + i * kUnit, left);
      value = rank == 0 ? theirs : combine(value, theirs);
    }
    put_unit(work.to + i * kUnit, value, left);
  }
}

// The packets of a unit that the first looks did not find.
IST_KERNEL_RARE bool comes_late(const MeetWork& work, std::uint64_t meeting, std::uint32_t rank, std::uint64_t unit,
                                bool two) {
  Waiter waiter{work, meeting};
  Quad value;
  return hear(work, meeting, rank, unit, two, waiter, value);
}

// Of two ranks, to both, a unit for each thread: as reduce(), but straight on, since a small call is over before loops are gone
// through. False: nothing was told, there may be no room.
template <class Crew, class Combine>
IST_KERNEL_CODE bool reduce_of_two(const Crew& crew, const MeetWork& work, const Combine& combine) {
  const std::uint32_t other = 1 - work.rank;
  const Quad state = load_relaxed(reinterpret_cast<const Quad*>(work.own));
  const std::uint64_t known = load_relaxed(&work.own->begun[other]);
  const std::uint32_t unit = crew.block * crew.threads + crew.thread;
  const std::uint32_t offset = unit * kUnit;
  const bool has = offset < work.bytes;
  const std::uint64_t left = has ? work.bytes - offset : 0;
  const bool two = left > 8;
  Quad value{0, 0};
  if (has) value = unit_at(work.from + offset, left);
  if (state.high >> 32 != 0) return true;
  const std::uint64_t meeting = state.low;
  const bool room = has_begun(known, meeting + 1 - kSlots) && what_in(known) != kGaveUp;
  if (crew.any(!room)) return false;
  if (unit == 0) store_relaxed(&work.members[other]->begun[work.rank], begun_as(meeting, work.what));
  if (has) tell_one(work, meeting, other, unit, value, two);
  const std::uint32_t number = channel::number_of(meeting);
  const Quad* const packets = packets_of(work.own, 2, meeting, other) + unit;
  Quad low{0, 0};
  Quad high{0, 0};
  bool failed = false;
  for (unsigned looks = 0; has && !failed; ++looks) {
    low = load_relaxed(packets);
    high = two ? load_relaxed(packets + plane_for(2)) : packed(number, 0);
    if (has_come(low, number) && has_come(high, number)) break;
    channel::between_looks();
    if (looks == kLooks) failed = !comes_late(work, meeting, other, unit, two);
  }
  const Quad theirs{bytes_in(low), bytes_in(high)};
  if (has && !failed) put_unit(work.to + offset, work.rank == 0 ? combine(value, theirs) : combine(theirs, value), left);
  end(crew, work, meeting, failed);
  return true;
}

// combine(a, b), of the bits of whole elements: a (op) b. To the root, or to everybody.
template <class Crew, class Combine>
IST_KERNEL_CODE void reduce(const Crew& crew, const MeetWork& work, const Combine& combine) {
  if (work.parts != nullptr) return reduce_parts(crew, work, combine);
  const bool alike = work.ranks == 2 && work.root == kEverybody && crew.blocks * crew.threads * kUnit >= work.bytes;
  if (alike && reduce_of_two(crew, work, combine)) return;
  const Begin now = begin(crew, work);
  const bool hears = work.root == kEverybody || work.root == work.rank;
  const std::uint64_t units = (work.bytes + kUnit - 1) / kUnit;
  const std::uint64_t first = crew.block * crew.threads + crew.thread;
  // Read before it is known whether there is room: the loads are on their way together.
  Quad value{0, 0};
  if (first < units) value = unit_at(work.from + first * kUnit, work.bytes - first * kUnit);
  if (now.broken) return;
  announce(crew, work, now.meeting);
  bool failed = !wait_for_room(crew, work, now, false);
  Waiter waiter{work, now.meeting};
  // On a device a thread has one unit. Whoever has several tells all of them first, and does not go step by step with the others.
  const std::uint64_t stride = crew.blocks * crew.threads;
  const auto mine = [&](std::uint64_t i) {
    return i == first ? value : unit_at(work.from + i * kUnit, work.bytes - i * kUnit);
  };
  for (std::uint64_t i = first; i < units && !failed; i += stride)
    tell(work, now.meeting, i, mine(i), work.bytes - i * kUnit > 8, false);
  for (std::uint64_t i = first; hears && i < units && !failed; i += stride) {
    const std::uint64_t left = work.bytes - i * kUnit;
    Quad result = mine(i);
    failed = !hear_all(work, now.meeting, i, left > 8, waiter, combine, result);
    if (!failed) put_unit(work.to + i * kUnit, result, left);
  }
  end(crew, work, now.meeting, failed);
}

}  // namespace ist::meeting
