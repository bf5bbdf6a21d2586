// What the kernels do that are put into users' streams: one thread that waits for a word, a warp that waits for all PEs of a team, a block that
// stores bytes and a word behind them.
//
// Who calls this : cuda_kernels.cu; cuda_stream_order.cpp, which fills the work in; the invented driver of tests, on a processor.
// Threads        : those of one block; on a processor one.
// Ownership      : none.
// Errors         : a PE that died ends the wait; the heap's next call tells.
#pragma once

#include <isthmus/device/barrier.cuh>

#include <algorithm>

#include "memory/cuda/word_protocol.hpp"
#include "memory/stream_order.hpp"

namespace ist::words {

struct Wait {
  const void* word = nullptr;
  WordWait what;
  std::uint32_t bytes = 8;
  std::uint64_t* over = nullptr;  // counts those that are over; null: nobody asks
};

// The last thing that a kernel does which holds a stream: it waits for nobody any more.
IST_DEVICE_CODE void count(std::uint64_t* over) {
  if (over != nullptr) device::only_sum(over, std::uint64_t{1});
}

IST_DEVICE_CODE ist_team_view view_with(const volatile std::uint32_t* abort_word) {
  return ist_team_view{0, 1, nullptr, 0, 0, 0, 0, abort_word};
}

template <class Word>
IST_DEVICE_CODE void wait_for(const Wait& work) {
  const ist_team_view view = view_with(work.what.abort_word);
  // Whatever comes of it, the stream goes on.
  static_cast<void>(device::wait_until(view, static_cast<const Word*>(work.word),
                                       static_cast<device::Compare>(work.what.how), static_cast<Word>(work.what.value)));
}

IST_DEVICE_RARE void wait_otherwise(const Wait& work) {
  if (work.bytes == 4)
    work.what.is_signed ? wait_for<std::int32_t>(work) : wait_for<std::uint32_t>(work);
  else
    work.what.is_signed ? wait_for<std::int64_t>(work) : wait_for<std::uint64_t>(work);
}

// The usual wait, for a signal that has come so far, is the code that is fetched first. The loads acquire, and what follows in the stream begins
// when the kernel is over.
IST_DEVICE_CODE void wait(const Wait& work) {
  if (work.bytes == 8 && !work.what.is_signed && work.what.how == WordWait::How::greater_equal) {
    device::Waiter waiter(work.what.abort_word, 0);
    std::uint64_t found = 0;
    // Whatever comes of it, the stream goes on.
    static_cast<void>(device::hear(static_cast<const std::uint64_t*>(work.word), work.what.value, waiter, found));
  } else {
    wait_otherwise(work);
  }
  count(work.over);
}

// Bytes into memory that this device reaches, and a word there behind them.
struct PutSignal {
  std::uint64_t* word = nullptr;
  std::uint64_t value = 0;
  void* to = nullptr;
  const void* from = nullptr;
  std::uint64_t bytes = 0;
  bool adds = false;
};

// How wide the words are that both addresses allow.
inline std::uint64_t width_of(const void* to, const void* from) {
  const std::uintptr_t apart = reinterpret_cast<std::uintptr_t>(to) ^ reinterpret_cast<std::uintptr_t>(from);
  for (const std::uint64_t width : {std::uint64_t{16}, std::uint64_t{8}, std::uint64_t{4}})
    if (apart % width == 0) return width;
  return 1;
}

// One for each word that is moved, in whole warps, and no more than grids leave room for (docs/in-kernel.md).
inline unsigned threads_for(const PutSignal& work) {
  constexpr std::uint64_t kWarp = 32, kMost = 256;
  const std::uint64_t words = work.bytes / width_of(work.to, work.from);
  return static_cast<unsigned>(std::clamp((words + kWarp - 1) / kWarp * kWarp, kWarp, kMost));
}

// The meeting orders all threads' stores before the first one's release, which is cumulative, so that one fence serves all; and it is told of
// what the stream did before, which was over when the kernel began.
template <class Crew>
IST_DEVICE_CODE void put_signal(const Crew& crew, const PutSignal& work) {
  if (work.bytes != 0) {
    device::copy_by(crew.thread, crew.threads, static_cast<unsigned char*>(work.to),
                    static_cast<const unsigned char*>(work.from), work.bytes);
    crew.sync();
  }
  if (crew.thread != 0) return;
  if (work.adds)
    device::add_release(work.word, work.value);
  else
    device::store_release(work.word, work.value);
}

// The words of isthmus/device/barrier.cuh, where few PEs tell each other directly.
struct Meet {
  std::uint64_t* barriers = nullptr;  // that this PE has come to
  const volatile std::uint32_t* abort_word = nullptr;
  std::uint64_t* over = nullptr;                         // as Wait's
  std::uint64_t* there[StreamOrder::kMostMeeting] = {};  // by PE; null: this one, or none
  const std::uint64_t* here[StreamOrder::kMostMeeting] = {};
};
static_assert(StreamOrder::kMostMeeting <= device::kFlatPes, "what kernels that meet do with so many, too");

inline Meet meet_of(const ist_team_view& view) {
  Meet work;
  device::Control& own = device::control_of(view, view.pe);
  work.barriers = &own.barriers;
  work.abort_word = view.abort_word;
  for (int pe = 0; pe < view.pes; ++pe) {
    if (pe == view.pe) continue;
    work.there[pe] = &device::control_of(view, pe).peers[view.pe].arrived;
    work.here[pe] = &own.peers[pe].arrived;
  }
  return work;
}

inline constexpr unsigned kMostMeeting = StreamOrder::kMostMeeting;
inline constexpr unsigned kMeetThreads = 32;  // a warp, of which as many are at work as there are PEs

// As Meeting::one_each() of barrier.cuh, a thread for each PE. What the stream did before is over; the release is also for what other streams'
// kernels stored, and was waited for there.
template <class Crew>
IST_DEVICE_CODE void meet(const Crew& crew, const Meet& work) {
  const std::uint64_t barrier = device::load_relaxed(work.barriers) + 1;
  crew.sync();  // all have loaded it before one of them stores it
  for (unsigned pe = crew.thread; pe < kMostMeeting; pe += crew.threads)
    if (work.there[pe] != nullptr) device::store_release(work.there[pe], barrier);
  // All of this PE have come, since the stream has, and none has left.
  if (crew.thread == 0) device::store_relaxed(work.barriers, barrier);
  device::Waiter waiter(work.abort_word, 0);
  std::uint64_t found = 0;
  device::Status status = device::Status::ok;
  for (unsigned pe = crew.thread; pe < kMostMeeting && status == device::Status::ok; pe += crew.threads)
    if (work.here[pe] != nullptr) status = device::hear(work.here[pe], barrier, waiter, found);
  crew.sync();
  if (crew.thread == 0) count(work.over);
}

}  // namespace ist::words
