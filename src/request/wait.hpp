// Waiting for an operation: look, give way, and in the end sleep.
//
// Who calls this : face/ and collective/.
// Threads        : takes and lets go of the engine's lock itself.
// Ownership      : none.
// Errors         : in the outcome.
#pragma once

#include <functional>

#include "request/engine.hpp"

namespace ist {

// Spins while ranks have a processor each; where they outnumber processors it gives way at once and then sleeps on the
// path's doorbell, unless a device must be polled.
class Patience {
 public:
  // `over` is asked under the lock, before a sleep: has what ends the wait happened, perhaps through another thread?
  Patience(Engine& engine, std::function<bool()> over) : engine_(engine), over_(std::move(over)) {}
  // Called without the lock, after a look that moved nothing (`moved` false) or something.
  void after_look(bool moved, bool must_poll);

 private:
  void sleep(bool must_poll);
  Engine& engine_;
  std::function<bool()> over_;
  int fruitless_ = 0;
};

// Returns when the operation is complete; the id is then released.
Outcome wait_for(Engine& engine, OperationId id);

// Receives into host memory; the outcome is then there. An error: the receive could not be started.
Status receive_and_wait(Engine& engine, AwaitedReceive& receive, const Scope& scope);

}  // namespace ist
