// How a process that sleeps is woken by one that has posted something for it: a word in the sleeper's segment.
//
// Who calls this : shm_path (sleep, wake), shm_link and the rings' bell (ring). Model: models/doorbell.pml.
// Threads        : one sleeper, any number of ringers in any process.
// Ownership      : lives in the sleeper's segment.
// Errors         : none; a wait that the kernel refuses returns early, which callers allow anyway.
//
// A wake-up would be lost if the sleeper looked, found nothing, and slept, while the ringer published after the look and
// looked at the word before the sleeper had announced itself. Each side therefore writes first and looks second, with a full
// fence in between: the ringer publishes, fences, looks at the word; the sleeper sets the word, fences, looks at everything
// that could be published. At least one of the two sees the other. Release and acquire do not suffice: they let the later
// load overtake the earlier store, on x86 too.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace ist {

// seq_cst fence; its own function because ThreadSanitizer does not know fences and GCC says so for each use.
void full_fence();

class Doorbell {
 public:
  // After publishing (guards PUBLISH_FIRST, RINGER_FENCE): wakes the owner if it sleeps. One fence and one load if it does
  // not.
  void ring() {
    full_fence();
    if (word_.load(std::memory_order_relaxed) == kAsleep) wake();
  }
  // Wakes the owner if it sleeps. Only the one who takes the word back to awake makes the system call, so that a burst of
  // messages to a sleeper costs one.
  void wake();

  // The sleeper (guard SLEEPER_FENCE): announce, then look at every source; nothing there, wait; in any case end with
  // retract().
  void announce() {
    word_.store(kAsleep, std::memory_order_relaxed);
    full_fence();
  }
  // Returns when the word is no longer asleep, after `longest`, or early. Guard COMPARE: the kernel compares the word and
  // queues the sleeper in one step, so that a wake() between announce() and here is not lost.
  void wait(std::chrono::microseconds longest);
  void retract() { word_.store(kAwake, std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kAwake = 0;
  static constexpr std::uint32_t kAsleep = 1;
  std::atomic<std::uint32_t> word_{kAwake};
};
static_assert(sizeof(Doorbell) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace ist
