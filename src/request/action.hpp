// A step of a schedule that is more than one message or copy: asked until it is over, and free to write further steps down.
//
// Who calls this : the engine, for collective/, which implements it.
// Threads        : under the world's lock, which it must not hold up: it starts things and asks after them.
// Ownership      : the schedule owns its actions until the operation is over.
// Errors         : a failure ends the step and is the call's result, unless there was one before.
#pragma once

#include "base/status.hpp"
#include "request/operation_id.hpp"

namespace ist {

class Engine;
class Schedule;

class Action {
 public:
  struct Moment {
    Engine& engine;
    Schedule& schedule;
    const Status& status;  // of the call so far
    OperationId call;      // gone once the caller has taken its outcome
    bool abandoned;        // the world is being destroyed: end what runs, start nothing
  };
  virtual ~Action() = default;
  // True: over.
  virtual Result<bool> step(Moment& now) = 0;
  // Of a call that has failed: it needs none of the user's memory any more.
  virtual bool lets_go() const { return false; }
};

}  // namespace ist
