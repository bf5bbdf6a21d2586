#include "request/wait.hpp"

#include <chrono>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/bell.hpp"
#include "base/pause.hpp"

namespace ist {
namespace {

// Looks before giving way, and times given way before sleeping. A look costs about 0.2 us, so that a rank with a processor
// of its own spins for about 1 ms before it first yields; one without yields almost at once, since the peer it waits for
// may need this very processor.
constexpr int kLooksAlone = 5000;
constexpr int kLooksShared = 20;
constexpr int kYields = 30;
// A lost wake-up cannot happen by protocol; the limit only bounds what a defect or a stopped process would cost.
constexpr std::chrono::microseconds kLongestSleep{10000};
// A device does not ring the doorbell; while it works, somebody has to look, but not all the time: the processor may be
// the device.
constexpr std::chrono::microseconds kLongestNap{50};
// Where ranks do not ring for each other, who sleeps until a device's threads tell him something hears of no message. Measured, of a kernel of 330 us with
// PoCL 3.1 on the processor of its rank: to be woken once in between costs 45 us, and not to sleep 80.
constexpr std::chrono::microseconds kLongestDeaf{1000};

void relax(Engine& engine) {
  if (engine.lock().contended()) return std::this_thread::yield();
  pause_briefly();
}

}  // namespace

void Patience::after_look(bool moved, bool must_poll) {
  if (must_poll && !moved && engine_.waiters().on_threads_alone() && sleep_for_threads()) return;
  give_way(moved, must_poll);
}

void Patience::after_look_at_words(bool moved) { give_way(moved, true); }

void Patience::give_way(bool moved, bool must_poll) {
  if (moved) {
    fruitless_ = 0;
    return;
  }
  ++fruitless_;
  const bool sleeps = engine_.sleeping_path() != nullptr;
  const int looks = sleeps || engine_.waiters().on_threads() ? kLooksShared : kLooksAlone;
  if (fruitless_ <= looks) return relax(engine_);
  if (!sleeps || fruitless_ <= looks + kYields) {
    std::this_thread::yield();
    return;
  }
  sleep(must_poll ? kLongestNap : kLongestSleep);
}

bool Patience::sleep_for_threads() {
  Bell* const bell = engine_.waiters().bell();
  if (bell == nullptr) return false;
  // First a look with the count known.
  if (heard_) {
    if (engine_.sleeping_path() != nullptr)
      sleep(kLongestSleep, [&] { return bell->count() != *heard_; });
    else
      bell->wait(*heard_, kLongestDeaf);
  }
  heard_ = bell->count();
  return true;
}

void Patience::sleep(std::chrono::microseconds longest, const std::function<bool()>& rung) {
  Path& path = *engine_.sleeping_path();
  bool announced = false;
  {
    const std::lock_guard lock(engine_.lock());
    // Another thread may have completed the operation since the last look; from here on it wakes the sleeper.
    if (over_()) return;
    if (!engine_.has_sleeper()) {
      if (!path.announce_sleep()) return;
      // What is waited for may be no message, and be there since: whoever brought it did not see the announcement.
      if (over_() || (rung && rung())) return path.sleep_announced({});
      announced = true;
      engine_.set_sleeper(true);
    }
  }
  if (!announced) {  // one thread sleeps for the process; the others look now and then
    std::this_thread::sleep_for(kLongestNap);
    return;
  }
  path.sleep_announced(longest);
  engine_.set_sleeper(false);
}

namespace {

struct Look {
  std::optional<Outcome> outcome;
  bool moved = false;
  bool must_poll = false;
};

// Returns when the operation is complete, or cancelled because of doubts, which it tells.
Status doubt_until_complete(Engine& engine, OperationId id, const std::function<Status()>& doubt) {
  constexpr unsigned kDoubtEveryLooks = 64;
  Patience patience{engine, [&engine, id] { return Engine::complete(*engine.find(id)); }};
  for (unsigned look = 1;; ++look) {
    bool moved = false;
    bool must_poll = false;
    {
      const std::lock_guard lock(engine.lock());
      moved = engine.progress();
      if (Engine::complete(*engine.find(id))) return {};
      if (look % kDoubtEveryLooks == 0) {
        Status vain = doubt();
        if (!vain.ok()) {
          engine.cancel(id);
          return vain;
        }
      }
      must_poll = engine.must_poll();
    }
    patience.after_look(moved, must_poll);
  }
}

Look look(Engine& engine, OperationId id) {
  const std::lock_guard lock(engine.lock());
  Look seen;
  if (!Engine::complete(*engine.find(id))) seen.moved = engine.progress() || (engine.linger() && engine.progress());
  if (Engine::complete(*engine.find(id))) seen.outcome = engine.take(id);
  seen.must_poll = engine.must_poll();
  return seen;
}

// Spins for the message; false if that is not the way, or has taken long.
bool spin_for(Engine& engine, AwaitedReceive& receive) {
  const int most = engine.sleeping_path() != nullptr ? kLooksShared : kLooksAlone;
  for (int fruitless = 0; fruitless < most;) {
    bool moved = false;
    {
      const std::lock_guard lock(engine.lock());
      if (!engine.look_for(receive, moved)) return false;
    }
    if (receive.received) return true;
    fruitless = moved ? 0 : fruitless + 1;
    relax(engine);
  }
  return false;
}

}  // namespace

namespace {

// By whoever cannot go on: where memory runs out in that, too, it ends by itself.
void take_back(Engine& engine, OperationId id) noexcept try {
  const std::lock_guard lock(engine.lock());
  engine.cancel(id);
} catch (const std::bad_alloc&) {
  return;
}

// Without a word of what else runs out of memory; `over` is called under the lock once it is complete.
template <class Over>
auto until_complete(Engine& engine, OperationId id, const Over& over) {
  Patience patience{engine, [&engine, id] { return Engine::complete(*engine.find(id)); }};
  for (;;) {
    bool moved = false;
    bool must_poll = false;
    {
      const std::lock_guard lock(engine.lock());
      if (!Engine::complete(*engine.find(id))) moved = look_for_nobody(engine);
      if (Engine::complete(*engine.find(id))) return over();
      must_poll = engine.must_poll();
    }
    patience.after_look(moved, must_poll);
  }
}

// From a handler of that.
Outcome end_without_memory(Engine& engine, OperationId id) {
  take_back(engine, id);
  Outcome outcome = until_complete(engine, id, [&] { return engine.take(id); });
  if (outcome.cancelled) throw;
  return outcome;
}

}  // namespace

Outcome wait_for_own(Engine& engine, OperationId id) try { return wait_for(engine, id); } catch (const std::bad_alloc&) {
  return end_without_memory(engine, id);
}

void end_own(Engine& engine, OperationId id) noexcept {
  take_back(engine, id);
  wait_for_end(engine, id);
}

Status wait_for_receive(Engine& engine, OperationId id, AwaitedReceive& receive, const std::function<Status()>& doubt) {
  Status vain;
  receive.outcome = wait_in_doubt(engine, id, doubt, vain);
  return vain;
}

Outcome wait_in_doubt(Engine& engine, OperationId id, const std::function<Status()>& doubt, Status& vain) try {
  const Status why = doubt ? doubt_until_complete(engine, id, doubt) : Status{};
  Outcome outcome = wait_for(engine, id);
  if (outcome.cancelled) vain = why;
  return outcome;
} catch (const std::bad_alloc&) {
  return end_without_memory(engine, id);
}

Status receive_and_wait(Engine& engine, AwaitedReceive& receive, const Scope& scope, const WhileNothingComes& meanwhile) {
  receive.scope = &scope;
  try {
    if (spin_for(engine, receive)) return {};
  } catch (const std::bad_alloc&) {
    // It was for what else came.
    if (receive.received) return {};
    if (receive.posted.value == 0) throw;
    receive.outcome = end_without_memory(engine, receive.posted);
    return {};
  }
  // Of one that is posted already the message is being written.
  if (meanwhile.long_wait && receive.posted.value == 0) meanwhile.long_wait();
  const auto id = [&]() -> Result<OperationId> {
    if (receive.posted.value != 0) return receive.posted;
    const std::lock_guard lock(engine.lock());
    return engine.start_receive(host_piece(receive.buffer, receive.room), receive.pattern.source, receive.pattern.tag,
                                scope);
  }();
  if (!id.ok()) return id.status();
  return wait_for_receive(engine, *id, receive, meanwhile.doubt);
}

Outcome wait_for(Engine& engine, OperationId id) {
  // What is there already, or comes with the first look, needs no patience.
  Look seen = look(engine, id);
  if (seen.outcome) return std::move(*seen.outcome);
  Patience patience{engine, [&engine, id] { return Engine::complete(*engine.find(id)); }};
  do {
    patience.after_look(seen.moved, seen.must_poll);
    seen = look(engine, id);
  } while (!seen.outcome);
  return std::move(*seen.outcome);
}

void wait_for_end(Engine& engine, OperationId id) noexcept {
  until_complete(engine, id, [&] { engine.forget(id); });
}

void progress_until(Engine& engine, const std::function<bool()>& over) {
  if (over()) return;
  Patience patience{engine, over};
  do {
    bool moved = false;
    {
      const std::lock_guard lock(engine.lock());
      moved = engine.progress();
    }
    patience.after_look_at_words(moved);
  } while (!over());
}

Status until_over(Engine& engine, const std::function<Result<bool>()>& step, bool on_threads) {
  Patience patience{engine, [] { return false; }};
  for (;;) {
    const Result<bool> over = step();
    if (!over.ok()) return over.status();
    if (*over) return {};
    bool moved = false;
    {
      const std::lock_guard lock(engine.lock());
      moved = engine.progress();
    }
    if (!on_threads || moved || !patience.sleep_for_threads()) std::this_thread::yield();
  }
}

Status wait_for_ticket(Engine& engine, Ticket& ticket) {
  if (ticket.empty()) return {};
  MemoryKind& kind = *ticket.kind();
  return until_over(
      engine, [&] { return kind.finished(ticket); }, kind.id() == KindId::opencl);
}

}  // namespace ist
