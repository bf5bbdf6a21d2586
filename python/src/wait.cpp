#include "wait.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "errors.hpp"
#include "gil.hpp"

namespace isthmus_python {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// How soon a signal is seen; taking the GIL may cost another thread's switch interval, so not more often.
constexpr auto kSignalsEvery = 50ms;
// Those of operations that have some, while another thread makes a call of all ranks.
constexpr auto kStepsEvery = 1ms;
// The library's own habits: a rank with a processor of its own spins for about a millisecond before it first yields, one
// without gives way at once and then sleeps, longer the longer it has waited already.
constexpr int kLooksAlone = 5000;
constexpr int kLooksCrowded = 20;
constexpr int kYieldsCrowded = 30;
constexpr Clock::duration kShortestNap = 50us;
constexpr Clock::duration kLongestNap = 500us;
constexpr int kLooksBetweenClocks = 64;

class Patience {
 public:
  explicit Patience(bool crowded) : crowded_(crowded) {}

  // After a look that found nothing; true when it is time to see to signals.
  bool after_look() {
    ++looks_;
    if (looks_ <= (crowded_ ? kLooksCrowded : kLooksAlone)) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
      return looks_ % kLooksBetweenClocks == 0 && due();
    }
    if (!crowded_ || looks_ <= kLooksCrowded + kYieldsCrowded) {
      std::this_thread::yield();
      return looks_ % kLooksBetweenClocks == 0 && due();
    }
    std::this_thread::sleep_for(std::clamp<Clock::duration>((Clock::now() - began_) / 20, kShortestNap, kLongestNap));
    return due();
  }

 private:
  bool due() {
    const auto now = Clock::now();
    if (now < next_) return false;
    next_ = now + kSignalsEvery;
    return true;
  }

  bool crowded_;
  int looks_ = 0;
  Clock::time_point began_ = Clock::now();
  Clock::time_point next_ = began_ + kSignalsEvery;
};

// Python runs signal handlers in its main thread alone.
bool in_main_thread() {
  // Asked by several at once at worst: one that waited for another's answer would wait with the GIL.
  static std::atomic<unsigned long> main_thread{0};
  if (main_thread.load() == 0)
    main_thread.store(nb::cast<unsigned long>(nb::module_::import_("threading").attr("main_thread")().attr("ident")));
  return PyThread_get_thread_ident() == main_thread.load();
}

// Are they complete? The first that is not is looked at, and all those that have steps of their own.
class AllOf {
 public:
  explicit AllOf(std::span<const std::shared_ptr<Operation>> operations) : operations_(operations) {}
  bool operator()() {
    if (!std::exchange(told_, true))
      for (const auto& each : operations_) each->await();
    while (first_ < operations_.size() && operations_[first_]->advance()) ++first_;
    if (first_ == operations_.size()) return true;
    for (std::size_t at = first_ + 1; at < operations_.size(); ++at)
      if (operations_[at]->staged()) operations_[at]->advance();
    return false;
  }

 private:
  std::span<const std::shared_ptr<Operation>> operations_;
  std::size_t first_ = 0;
  bool told_ = false;
};

// This thread is inside the library for several worlds, of which none may be left under it.
class Inside {
 public:
  explicit Inside(Sessions sessions) : sessions_(sessions) {
    for (Session* const each : sessions_) ++each->inside();
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() {
    for (Session* const each : sessions_) --each->inside();
  }

 private:
  Sessions sessions_;
};

bool any_closed(Sessions sessions) {
  return std::any_of(sessions.begin(), sessions.end(), [](const Session* each) { return each->closed(); });
}

}  // namespace

// Asks without the GIL until the answer is yes, as long as all of the worlds are open; at least one is given.
template <class Ask>
void wait_until(Sessions sessions, Ask ask) {
  const bool signals = in_main_thread();
  for (const Session* const each : sessions) each->require_open();
  bool done = false;
  {
    const Inside others{sessions.subspan(1)};
    const LetGo without_gil{sessions.front()->inside()};
    Patience patience{std::any_of(sessions.begin(), sessions.end(), [](const Session* each) { return each->crowded(); })};
    while (!any_closed(sessions) && !(done = ask())) {
      for (Session* const each : sessions) each->progress();
      if (!patience.after_look() || !signals) continue;
      const nb::gil_scoped_acquire acquire;
      if (PyErr_CheckSignals() != 0) nb::raise_python_error();
    }
  }
  if (!done) Session::raise_closed();
  for (Session* const each : sessions) each->sweep();
}

template <class Ask>
void wait_until(Session& session, Ask ask) {
  Session* const one = &session;
  wait_until(Sessions{&one, 1}, ask);
}

void wait_for(Session& session, std::span<const std::shared_ptr<Operation>> operations) {
  wait_until(session, AllOf{operations});
}

void wait_for(Sessions sessions, std::span<const std::shared_ptr<Operation>> operations) {
  wait_until(sessions, AllOf{operations});
}

std::size_t wait_for_any(Sessions sessions, std::span<const std::shared_ptr<Operation>> operations) {
  std::size_t found = 0;
  wait_until(sessions, [&] {
    found = 0;
    while (found < operations.size() && !operations[found]->advance()) ++found;
    return found < operations.size();
  });
  return found;
}

void wait_for(Session& session, const std::function<bool()>& over) { wait_until(session, over); }

void finish_left(Session& session) {
  if (session.one_thread()) wait_until(session, [&] { return !session.left_some(); });
}

namespace {

// Between the thread that makes a call and the one that waits for it.
struct CallOfAll {
  std::shared_ptr<Session> session;
  std::function<int()> call;
  std::function<void(int)> late;
  std::mutex mutex;
  std::condition_variable over;
  bool done = false;
  bool left = false;  // by the caller
  int code = IST_OK;
  std::string text;

  void run() {
    const int found = call();
    const std::string said = found == IST_OK ? "" : ist_error_text();
    const std::lock_guard lock(mutex);
    code = found;
    text = said;
    done = true;
    over.notify_one();
  }
};

std::thread start(const std::shared_ptr<CallOfAll>& shared) {
  const auto run = [shared] {
    shared->run();
    bool left = false;
    {
      const std::lock_guard lock(shared->mutex);
      left = shared->left;
    }
    if (left) shared->late(shared->code);
    if (left) --shared->session->left_behind();
    --shared->session->inside();
    // Its last reference would leave the world, which takes the GIL: nobody may ask for that as Python ends.
    if (left) new std::shared_ptr<CallOfAll>(shared);
  };
  ++shared->session->inside();
  try {
    return std::thread(run);
  } catch (...) {
    --shared->session->inside();
    throw;
  }
}

}  // namespace

void call_of_all(const std::shared_ptr<Session>& session, std::function<int()> call, std::function<void(int)> late,
                 const std::function<void()>& begins) {
  session->require_open();
  // One after the other: all ranks make them in one order.
  wait_until(*session, [&] { return session->left_behind().load() == 0; });
  finish_left(*session);
  begins();
  if (session->one_thread()) {
    int code = IST_OK;
    {
      const LetGo without_gil{session->inside()};
      code = call();
    }
    return check(code);
  }
  const auto shared = std::make_shared<CallOfAll>();
  shared->session = session;
  shared->call = std::move(call);
  shared->late = std::move(late);
  std::thread caller = start(shared);
  bool done = false;
  bool interrupted = false;
  while (!done && !interrupted) {
    {
      const LetGo without_gil{session->inside()};
      // Others may need steps of what is under way here before they come to this call.
      if (!session->closed()) session->progress();
      std::unique_lock lock(shared->mutex);
      done = shared->over.wait_for(lock, session->has_steps() ? kStepsEvery : kSignalsEvery, [&] { return shared->done; });
    }
    if (done || PyErr_CheckSignals() == 0) continue;
    interrupted = true;
    const std::lock_guard lock(shared->mutex);
    done = shared->done;
    shared->left = !done;
    if (!done) ++session->left_behind();
  }
  if (!done) {
    caller.detach();
    nb::raise_python_error();
  }
  caller.join();  // it holds nothing any more
  if (interrupted) {
    shared->late(shared->code);
    nb::raise_python_error();
  }
  if (shared->code != IST_OK) raise(shared->code, shared->text);
}

bool look_at(Session& session, Operation& operation) {
  session.require_open();
  bool done = false;
  {
    const LetGo without_gil{session.inside()};
    done = operation.advance();
    session.progress();
  }
  session.sweep();
  return done;
}

void look_at_all(Sessions sessions, std::span<const std::shared_ptr<Operation>> operations) {
  for (const Session* const each : sessions) each->require_open();
  {
    const Inside others{sessions.subspan(1)};
    const LetGo without_gil{sessions.front()->inside()};
    for (const auto& each : operations) each->advance();
    for (Session* const each : sessions) each->progress();
  }
  for (Session* const each : sessions) each->sweep();
}

}  // namespace isthmus_python
