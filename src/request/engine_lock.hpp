// The world's lock: every call on an engine is made while it is held.
//
// Who calls this : face/, collective/ and wait.cpp, around their calls on the engine. Model: models/engine_lock.pml.
// Threads        : any; waiting threads let go of it between looks.
// Ownership      : the engine owns it.
// Errors         : none.
//
// Nearly all programs call from one thread, whom an exchange for each call would cost some 20 cycles, and keep the processor from
// reading ahead. So a thread that has taken the lock again and again, with nobody else in between, becomes its favourite: it says
// that it is inside, and looks whether it still is the favourite; no instruction of its own orders the two. Who wants the lock,
// too, takes the ordinary one, withdraws the favour, and has the kernel order what all processors of this process do
// (membarrier): from then on the favourite sees that it is none, or is seen inside, and waited for. Each withdrawal makes the
// next favour four times as hard to get, so that threads in turn pay for few of them.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

namespace ist {

// What no other running thread has.
inline std::uintptr_t this_thread() {
  std::uintptr_t self = 0;
#if defined(__x86_64__)
  asm("movq %%fs:0, %0" : "=r"(self));  // pthread_self() without a call
#else
  self = reinterpret_cast<std::uintptr_t>(::pthread_self());
#endif
  return self;
}

// Held for the length of one call. Under contention it gives way, since ranks may outnumber cores. Does nothing where the program
// promised one thread at a time.
class EngineLock {
 public:
  explicit EngineLock(bool single_threaded);
  void lock() {
    if (!try_lock()) [[unlikely]]
      wait();
  }
  // False: another thread holds it, or is its favourite.
  [[gnu::always_inline]] bool try_lock() {
    Seat* const seat = favourite_.load(std::memory_order_acquire);
    if (seat != nullptr) [[likely]] {
      if (seat->thread != this_thread()) [[unlikely]]
        return false;
      // Acquire: an earlier thread that had the name of this one may have been the last inside.
      static_cast<void>(seat->inside.load(std::memory_order_acquire));
      seat->inside.store(true, std::memory_order_relaxed);
      // The compiler keeps these two in order; the processor need not, since who withdraws the favour makes it (withdraw()).
      std::atomic_signal_fence(std::memory_order_seq_cst);
      // Guard LOOK_AGAIN: the favour may have gone since.
      if (favourite_.load(std::memory_order_relaxed) == seat) [[likely]]
        return true;
      seat->inside.store(false, std::memory_order_release);
      return false;
    }
    if (off_) return true;
    if (taken_.exchange(true, std::memory_order_acquire)) return false;
    // Guard LOOK_TAKEN: whoever had it before may have become the favourite, and is inside without it.
    if (favourite_.load(std::memory_order_relaxed) == nullptr) [[likely]]
      return true;
    taken_.store(false, std::memory_order_release);
    return false;
  }
  [[gnu::always_inline]] void unlock() {
    if (holder_ != nullptr) [[likely]]
      holder_->inside.store(false, std::memory_order_release);
    else
      give_back();
  }
  // Does another thread wait for it? Then a holder that only looks should let go.
  bool contended() const { return waiting_.load(std::memory_order_relaxed) > 0; }
  // Is this thread the favourite? Only a hint; for tests.
  bool favours_this_thread() const {
    const Seat* const seat = favourite_.load(std::memory_order_acquire);
    return seat != nullptr && seat->thread == this_thread();
  }

 private:
  // Guard SEATS: a thread writes into its own alone. One that was the favourite, and has not noticed yet that it is none, would
  // else say in another one's name that nobody is inside.
  struct Seat {
    std::uintptr_t thread = 0;  // whose it is, for good
    std::atomic<bool> inside{false};
  };
  static constexpr std::size_t kSeats = 8;
  static constexpr std::uint32_t kFirstRow = 32;
  static constexpr std::uint32_t kLongestRow = 1U << 30;

  [[gnu::noinline]] void give_back();
  Seat* seat_of(std::uintptr_t thread);
  // Out of the way of the calls that need not wait.
  [[gnu::noinline, gnu::cold]] void wait();
  [[gnu::noinline, gnu::cold]] void withdraw();

  alignas(64) std::atomic<Seat*> favourite_{nullptr};
  Seat* holder_ = nullptr;  // of whoever holds the lock, as the favourite; where there is no lock, one that nobody looks at
  const bool off_;
  const bool favours_;  // there may be a favourite
  std::atomic<bool> taken_{false};
  std::atomic<int> waiting_{0};
  // Under the ordinary lock:
  std::uint32_t in_a_row_ = 0;  // how often the last one took it, and how often it must to be the favourite
  std::uint32_t row_wanted_ = kFirstRow;
  std::uintptr_t last_ = 0;
  std::array<Seat, kSeats> seats_{};
};

// Lets go, at its end, of a lock that is held.
class HeldLock {
 public:
  [[gnu::always_inline]] explicit HeldLock(EngineLock& lock) : lock_(lock) {}
  [[gnu::always_inline]] ~HeldLock() { lock_.unlock(); }
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;

 private:
  EngineLock& lock_;
};

}  // namespace ist
