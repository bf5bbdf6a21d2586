#include "request/progress_thread.hpp"

#include <chrono>
#include <mutex>

#include "base/quiet_thread.hpp"
#include "request/wait.hpp"

namespace ist {
namespace {

// Where peers do not ring a bell, somebody has to look; a nap leaves the processor to those who compute.
constexpr std::chrono::microseconds kNap{20};

}  // namespace

Result<std::unique_ptr<ProgressThread>> ProgressThread::start(Engine& engine) {
  std::unique_ptr<ProgressThread> made{new ProgressThread(engine)};
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
  Patience patience{engine_, [this] { return stop_.load(); }};
  while (!stop_) {
    bool moved = false;
    bool must_poll = false;
    {
      const std::lock_guard lock(engine_.lock());
      moved = engine_.progress();
      must_poll = engine_.must_poll();
    }
    if (moved || engine_.sleeping_path() != nullptr)
      patience.after_look(moved, must_poll);
    else
      std::this_thread::sleep_for(kNap);
  }
}

}  // namespace ist
