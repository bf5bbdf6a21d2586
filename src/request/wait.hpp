// Waiting for an operation: look, give way, and in the end sleep.
//
// Who calls this : face/ and collective/.
// Threads        : takes and lets go of the engine's lock itself.
// Ownership      : none.
// Errors         : in the outcome.
#pragma once

#include <chrono>
#include <functional>
#include <new>
#include <optional>

#include "request/engine.hpp"

namespace ist {

// A look by a thread of the library's own, or in a call whose own part is done, which has nobody to tell: where memory runs out, what cannot be kept stays where it is, and a later
// look comes to it. Under the engine's lock.
inline bool look_for_nobody(Engine& engine, Reach reach = Reach::whole) try {
  return engine.progress(reach);
} catch (const std::bad_alloc&) {
  return false;
}

// Spins while ranks have a processor each; where they outnumber processors it gives way at once and then sleeps on the
// path's doorbell, unless a device must be polled.
class Patience {
 public:
  // A call looks until it returns. A thread of the library's own has other things to do, too: nobody relies on its looks.
  enum class Whose { call, thread };
  // `over` is asked under the lock, before a sleep: has what ends the wait happened, perhaps through another thread?
  Patience(Engine& engine, std::function<bool()> over, Whose whose = Whose::call)
      : engine_(engine), over_(std::move(over)), whose_(whose) {
    if (whose_ == Whose::call) engine_.waiters().enter();
  }
  ~Patience() {
    if (whose_ == Whose::call) engine_.waiters().leave();
  }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;
  // Called without the lock, after a look that moved nothing (`moved` false) or something.
  void after_look(bool moved, bool must_poll);
  // The same of a look at more than the engine, for which nobody rings.
  void after_look_at_words(bool moved);
  // For who waits for threads of a driver whose device is the processor: sleeps until they have done something, but not the first time. False: this rank has
  // processors for both, or no driver tells.
  bool sleep_for_threads();

 private:
  void give_way(bool moved, bool must_poll);
  // `rung`: what wakes the path's sleeper has, perhaps another one, since the look before.
  void sleep(std::chrono::microseconds longest, const std::function<bool()>& rung = nullptr);
  Engine& engine_;
  std::function<bool()> over_;
  Whose whose_;
  int fruitless_ = 0;
  std::optional<std::uint32_t> heard_;  // of the threads' bell
};

// Returns when the operation is complete; the id is then released.
Outcome wait_for(Engine& engine, OperationId id);

// The same of an operation that no request stands for, so that it must be over when an exception goes through: where memory runs out for what else comes, it is taken
// back, and that is told, unless its message was met before, and then comes to its end.
Outcome wait_for_own(Engine& engine, OperationId id);

// What of it can be taken back is, and it is over.
void end_own(Engine& engine, OperationId id) noexcept;

// The same for who wants nothing but its end, as while an exception is on its way: throws none, since it looks as look_for_nobody() does.
void wait_for_end(Engine& engine, OperationId id) noexcept;

// Comes back when `over` says so, which is asked between looks: of what comes to its end, well or not, with this rank's progress.
void progress_until(Engine& engine, const std::function<bool()>& over);

// Of work that no operation stands for: comes back when `step` says that it is over, or with its error; asked without the lock, between looks. `on_threads`: OpenCL's alone.
Status until_over(Engine& engine, const std::function<Result<bool>()>& step, bool on_threads);
Status wait_for_ticket(Engine& engine, Ticket& ticket);

// Receives into host memory; the outcome is then there. An error: the receive could not be started.
// `doubt`: asked under the lock, now and then while nothing comes: why it never will. `long_wait`: called before such a wait begins.
struct WhileNothingComes {
  std::function<Status()> doubt = nullptr;
  std::function<void()> long_wait = nullptr;
};
Status receive_and_wait(Engine& engine, AwaitedReceive& receive, const Scope& scope,
                        const WhileNothingComes& meanwhile = {});
// The same of one that was started.
Status wait_for_receive(Engine& engine, OperationId id, AwaitedReceive& receive, const std::function<Status()>& doubt);
// The same of any operation, such as a send that its receiver has to ask for: taken back where there is a doubt, which `vain` then tells.
Outcome wait_in_doubt(Engine& engine, OperationId id, const std::function<Status()>& doubt, Status& vain);

}  // namespace ist
