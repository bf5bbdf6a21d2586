// Work that a user of a device has pending in a queue of his own, and that takes a while.
//
// Who calls this : tests that prove pending work is waited for. One implementation per kind that has queues.
// Threads        : any.
// Ownership      : queues made here live as long as the object.
// Errors         : thrown.
#pragma once

#include <chrono>
#include <memory>

#include "support.hpp"

namespace ist::test {

class SlowWork {
 public:
  virtual ~SlowWork() = default;
  // A new queue that can work on the piece; the piece with that queue.
  virtual Piece in_new_queue(const Piece& piece, bool out_of_order) = 0;
  // Enqueues in queue: first something slow, then a copy, and returns.
  virtual void copy_later(const Piece& to, const Piece& from, std::uint64_t queue) = 0;
  // What the user would call to wait for his queue.
  virtual void finish(std::uint64_t queue) = 0;
  // True if what copy_later() enqueued last is still not over. Some devices do all work before they return from enqueueing
  // it.
  virtual bool pending() = 0;
  virtual bool has_out_of_order() const = 0;

  // Null for a kind without queues.
  static SlowWork* of(KindId kind);
};

std::unique_ptr<SlowWork> make_opencl_slow_work();
std::unique_ptr<SlowWork> make_cuda_slow_work();

}  // namespace ist::test
