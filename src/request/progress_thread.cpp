#include "request/progress_thread.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>

#include "base/quiet_thread.hpp"
#include "request/wait.hpp"

namespace ist {
namespace {

// Where peers do not ring a bell, somebody has to look; a nap leaves the processor to those who compute. The system makes it some
// 50 us longer, which is left as it is: who computes on the same processor loses more by shorter naps than messages gain.
constexpr std::chrono::microseconds kNap{20};
// A thread that shares its rank's only processor takes from it whatever it costs to end a nap: 22 us of every 85, on virtual processors
// of an AMD EPYC (2026-11-25), which made an allreduce of 1 MiB half as long again. There is little to win there, since copies
// take that processor, too: it rests from the first of these times up to the second while nothing moves, and takes naps only while
// something is under way.
constexpr std::chrono::microseconds kFirstRest{200};
constexpr std::chrono::microseconds kLongestRest{1000};

}  // namespace

Result<std::unique_ptr<ProgressThread>> ProgressThread::start(Engine& engine, int processors) {
  engine.waiters().count();
  std::unique_ptr<ProgressThread> made{new ProgressThread(engine, processors < 2)};
  auto thread = quiet_thread("moving messages on", [raw = made.get()] { raw->run(); });
  if (!thread.ok()) return thread.status();
  made->thread_ = std::move(*thread);
  return made;
}

ProgressThread::~ProgressThread() {
  stop_ = true;
  if (engine_.sleeping_path() != nullptr) engine_.sleeping_path()->wake();
  if (thread_.joinable()) thread_.join();
}

void ProgressThread::run() {
  Patience patience{engine_, [this] { return stop_.load(); }, Patience::Whose::thread};
  rest_ = kFirstRest;
  while (!stop_) {
    const Look seen = look();
    if (engine_.sleeping_path() != nullptr)
      patience.after_look(seen.moved, seen.must_poll);
    else if (seen.moved)
      rest_ = kFirstRest;
    else
      nap(seen.must_poll);
  }
}

// Whoever waits in a call looks all the time, and would only wait for the lock. Where ranks sleep, this thread may be the one that the
// bell wakes for all.
ProgressThread::Look ProgressThread::look() {
  if (engine_.sleeping_path() == nullptr && engine_.waiters().any()) {
    rest_ = kFirstRest;
    return {};
  }
  const std::lock_guard lock(engine_.lock());
  const bool moved = look_for_nobody(engine_);
  return {moved, engine_.must_poll()};
}

void ProgressThread::nap(bool must_poll) {
  if (must_poll) rest_ = kFirstRest;
  if (!shares_ || must_poll) return std::this_thread::sleep_for(kNap);
  std::this_thread::sleep_for(rest_);
  rest_ = std::min(2 * rest_, kLongestRest);
}

}  // namespace ist
