#include "request/wait.hpp"

#include <chrono>
#include <mutex>
#include <thread>

namespace ist {
namespace {

// Looks before giving way, and times given way before sleeping. A look costs about 0.1 us, so that a rank with a processor
// of its own spins for about 1 ms before it first yields; one without yields almost at once, since the peer it waits for
// may need this very processor.
constexpr int kLooksAlone = 10000;
constexpr int kLooksShared = 20;
constexpr int kYields = 0;
// A lost wake-up cannot happen by protocol; the limit only bounds what a defect or a stopped process would cost.
constexpr std::chrono::microseconds kLongestSleep{10000};
// A device does not ring the doorbell; while it works, somebody has to look, but not all the time: the processor may be
// the device.
constexpr std::chrono::microseconds kLongestNap{50};

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace

void Patience::after_look(bool moved, bool must_poll) {
  if (moved) {
    fruitless_ = 0;
    return;
  }
  ++fruitless_;
  const bool sleeps = engine_.parts().sleeps;
  const int looks = sleeps ? kLooksShared : kLooksAlone;
  if (fruitless_ <= looks) return relax();
  if (!sleeps || fruitless_ <= looks + kYields || engine_.sleeping_path() == nullptr) {
    std::this_thread::yield();
    return;
  }
  engine_.sleepers().fetch_add(1, std::memory_order_relaxed);
  engine_.sleeping_path()->sleep(must_poll ? kLongestNap : kLongestSleep);
  engine_.sleepers().fetch_sub(1, std::memory_order_relaxed);
}

Outcome wait_for(Engine& engine, OperationId id) {
  Patience patience{engine};
  for (;;) {
    bool moved = false;
    bool must_poll = false;
    {
      const std::lock_guard lock(engine.lock());
      if (Engine::complete(*engine.find(id))) return engine.take(id);
      moved = engine.progress();
      if (Engine::complete(*engine.find(id))) return engine.take(id);
      must_poll = engine.must_poll();
    }
    patience.after_look(moved, must_poll);
  }
}

}  // namespace ist
