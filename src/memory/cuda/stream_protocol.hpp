// What the kernels do that hold a stream: one thread that waits for a word, or for all PEs of a team.
//
// Who calls this : cuda_kernels.cu; cuda_stream_order.cpp, which fills the work in; the invented driver of tests, on a processor.
// Threads        : one does it.
// Ownership      : none.
// Errors         : a PE that died ends the wait; the heap's next call tells.
#pragma once

#include <isthmus/device/barrier.cuh>

#include "memory/cuda/word_protocol.hpp"
#include "memory/stream_order.hpp"

namespace ist::words {

struct Wait {
  const void* word = nullptr;
  WordWait what;
  std::uint32_t bytes = 8;
};

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

IST_DEVICE_CODE void wait(const Wait& work) {
  if (work.bytes == 4)
    work.what.is_signed ? wait_for<std::int32_t>(work) : wait_for<std::uint32_t>(work);
  else
    work.what.is_signed ? wait_for<std::int64_t>(work) : wait_for<std::uint64_t>(work);
  At<unsigned>::fence();
}

// The words of isthmus/device/barrier.cuh, where few PEs tell each other directly.
struct Meet {
  std::uint64_t* barriers = nullptr;  // that this PE has come to
  const volatile std::uint32_t* abort_word = nullptr;
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

// As Meeting::one_each() of barrier.cuh. What the stream did before is over; the fence is for what other streams' kernels stored, and was
// waited for there.
IST_DEVICE_CODE void meet(const Meet& work) {
  const std::uint64_t barrier = device::load_relaxed(work.barriers) + 1;
  At<unsigned>::fence();
  for (std::uint64_t* const there : work.there)
    if (there != nullptr) device::store_release(there, barrier);
  // All of this PE have come, since the stream has, and none has left.
  device::store_relaxed(work.barriers, barrier);
  const ist_team_view view = view_with(work.abort_word);
  device::Waiter waiter(view, 0);
  std::uint64_t found = 0;
  for (const std::uint64_t* const here : work.here)
    if (here != nullptr && device::hear(here, barrier, waiter, found) != device::Status::ok) return;
  At<unsigned>::fence();
}

}  // namespace ist::words
