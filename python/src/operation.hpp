// A message under way: what is asked again and again until it is complete.
//
// Who calls this : comm.cpp and objects.cpp make them; wait.cpp and session.cpp ask them.
// Threads        : advance() from any thread at once, without the GIL: the library may have to run a function of Python's, in
//                  whatever thread is inside it. Destroyed with the GIL, since buffers are Python's.
// Ownership      : an operation keeps its buffer alive; a Request, or the Session once that is dropped, keeps the operation.
// Errors         : kept in the outcome, and raised where the user waits.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "face/message/awaits.hpp"
#include "region.hpp"

namespace isthmus_python {

struct Outcome {
  int code = IST_OK;
  std::string text;                                                             // of the error
  ist_status status{IST_ANY_SOURCE, IST_ANY_TAG, IST_OK, IST_CARRIER_NONE, 0};  // the empty one of isthmus.h
  std::int64_t item_size = 1;
};

class Operation {
 public:
  // A persistent one is complete until it is started.
  explicit Operation(bool complete = false) : complete_(complete) {}
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  virtual ~Operation() = default;

  // Moves on; true when complete.
  bool advance();
  bool complete() const { return complete_.load(std::memory_order_acquire); }
  // Once complete.
  const Outcome& outcome() const { return outcome_; }
  // Its caller goes on only when it is over; also where it is. As advance().
  void await();
  // Gives up what nothing has matched yet; whether it did, the outcome's status says.
  void cancel();
  // May what the library does later follow from that it was waited for?
  virtual bool counts() const { return false; }
  // Has it steps of its own, which somebody must make also while nobody waits for it?
  virtual bool staged() const { return false; }
  // A signal has called its caller away, and other ranks need its steps.
  void leave() { left_.store(true, std::memory_order_relaxed); }
  bool left() const { return left_.load(std::memory_order_relaxed) && !complete(); }
  // Is its outcome of use to nobody without its request? Then it is given up when that is dropped.
  virtual bool ends_with_request() const { return false; }
  // What Python raised inside of it and is raised in place of the outcome's error; empty if nothing was. With the GIL.
  virtual nb::object exception() const { return {}; }

 protected:
  // One look, by one thread at a time; true when complete. Touches nothing of Python's.
  virtual bool step(Outcome& outcome) = 0;
  virtual void give_up() {}
  virtual void awaited() {}
  // Under way again, if `start` gives IST_OK. Without the GIL, as advance().
  template <class Start>
  int again(const Start& start) {
    const std::lock_guard lock(mutex_);
    const int code = start();
    if (code != IST_OK) return code;
    outcome_ = Outcome{};
    complete_.store(false, std::memory_order_release);
    return code;
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> complete_;
  std::atomic<bool> left_{false};
  Outcome outcome_;
};

// One request of the library.
class Flight {
 public:
  ist_request* out() { return &request_; }
  bool pending() const { return request_ != IST_REQUEST_NULL; }
  // True when complete; `outcome` then says how it ended.
  bool look(Outcome& outcome);
  void cancel() const { static_cast<void>(ist_cancel(request_)); }
  void awaited() { ist_private_awaits(pending() ? request_ : looked_at_); }

 private:
  ist_request request_ = IST_REQUEST_NULL;
  ist_request looked_at_ = IST_REQUEST_NULL;  // the same, and still when it is over
};

// A send or receive of one buffer.
class Message : public Operation {
 public:
  explicit Message(Region region) : region_(std::move(region)) {}
  const Region& region() const { return region_; }
  ist_request* out() { return flight_.out(); }

 protected:
  bool step(Outcome& outcome) override;
  void give_up() override { flight_.cancel(); }

 private:
  Region region_;
  Flight flight_;
};

}  // namespace isthmus_python
