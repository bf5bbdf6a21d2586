// A world of the library, and the operations that nobody holds any more.
//
// Who calls this : world.cpp makes it; whatever came from a World holds it.
// Threads        : progress() without the GIL, from any thread; the rest with it. Nobody calls the library's progress with the
//                  GIL, nor waits for the GIL with the mutex: a reduction's function takes the GIL inside the library.
// Ownership      : owns the world. Operations handed to keep() live, with their buffers, until they are complete or the world
//                  is left.
// Errors         : raised; the destructor is silent.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "operation.hpp"

namespace isthmus_python {

class Session {
 public:
  // `make`: ist_world_create_configured or its like; `settings`: what that was given, of which waits in Python are part.
  using Make = std::function<int(ist_world*)>;
  static std::shared_ptr<Session> create(const Make& make, const std::string& settings);
  // Those still open when the interpreter ends.
  static void close_all();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  // Leaves the world, once the threads inside it have come back, which their waits then do; a second call does nothing.
  void close();
  bool closed() const { return closing_.load(std::memory_order_relaxed); }
  // For LetGo: threads inside the library for this world.
  std::atomic<int>& inside() { return inside_; }
  // Calls of all ranks whose callers a signal has called away.
  std::atomic<int>& left_behind() { return left_behind_; }
  [[noreturn]] static void raise_closed();
  // Raises if the world is closed, and in the function of a reduction.
  void require_open() const;
  ist_world world() const;
  // Without a look at whether it is open.
  ist_world handle() const { return world_; }
  // Ranks of this host outnumber its processors: waiting must give way.
  bool crowded() const { return crowded_; }
  // The program has promised that one thread at a time is inside the library.
  bool one_thread() const { return one_thread_; }

  void keep(const std::shared_ptr<Operation>& operation);
  // One that is complete: what it holds may be the last to hold this session.
  void forget(const std::shared_ptr<Operation>& operation);
  // Frees them in the next sweep: destructors run anywhere, also inside a reduction's function.
  void free_later(ist_comm comm);
  void free_later(ist_request request);
  // Operations with steps of their own make them in every wait, whoever waits for what.
  void progress();
  bool has_steps() const { return staged_.load(std::memory_order_relaxed) != 0; }
  // A kept one with steps, whose caller a signal has called away: a thread makes them while the program may make no call at all,
  // since other ranks wait for them. Not where one thread at a time is inside the library.
  void go_on(Operation& operation);
  // Is one of those not complete?
  bool left_some();
  // Lets go of the kept operations that are complete, now and then, since many may be kept; and of what is to be freed.
  void sweep();

 private:
  Session();
  void drive();
  bool any_left() const;  // with the mutex held

  ist_world world_ = IST_WORLD_NULL;
  std::atomic<bool> closing_{false};
  std::atomic<int> inside_{0};
  std::atomic<int> left_behind_{0};
  const int owner_;    // process
  bool left_ = false;  // the library has let go of every buffer
  bool crowded_ = false;
  bool one_thread_ = false;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Operation>> kept_;
  bool stepping_ = false;          // progress() looks at kept ones, which must stay
  bool driven_ = false;            // by a thread of go_on()
  std::vector<Operation*> steps_;  // of progress()
  std::vector<ist_comm> dead_comms_;
  std::vector<ist_request> dead_requests_;
  std::atomic<std::size_t> staged_{0};
  std::size_t sweep_at_ = 16;
};

}  // namespace isthmus_python
