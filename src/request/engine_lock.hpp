// The world's lock: every call on an engine is made while it is held.
//
// Who calls this : face/, collective/ and wait.cpp, around their calls on the engine.
// Threads        : any; waiting threads let go of it between looks.
// Ownership      : the engine owns it.
// Errors         : none.
#pragma once

#include <atomic>
#include <thread>

namespace ist {

// Between two looks at a word that another processor will write.
inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

// Held for the length of one call; one uncontended exchange. Under contention it gives way, since ranks may outnumber cores.
// Does nothing where the program promised one thread at a time.
class EngineLock {
 public:
  explicit EngineLock(bool single_threaded) : off_(single_threaded) {}
  void lock() {
    if (!off_ && taken_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      wait();
  }
  void unlock() {
    if (!off_) taken_.store(false, std::memory_order_release);
  }
  // Does another thread wait for it? Then a holder that only looks should let go.
  bool contended() const { return waiting_.load(std::memory_order_relaxed) > 0; }

 private:
  // Out of the way of the calls that need not wait.
  [[gnu::noinline, gnu::cold]] void wait() {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    int tries = 0;
    do {
      while (taken_.load(std::memory_order_relaxed))
        if (++tries % 64 == 0) std::this_thread::yield();
    } while (taken_.exchange(true, std::memory_order_acquire));
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  alignas(64) std::atomic<bool> taken_{false};
  std::atomic<int> waiting_{0};
  const bool off_;
};

}  // namespace ist
