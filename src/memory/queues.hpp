// Places in users' command queues at which a queue waits until this library says so: for messages that queues send and receive.
//
// Who calls this : face/message/queue_channels. Who implements it: opencl/.
// Threads        : any. `reached` comes from a thread of the driver's, perhaps before enter() has come back, and perhaps from inside
//                  of another turn's end(): it makes no call of this interface, and no lock that it takes is held during one.
// Ownership      : whoever enters owns the turn; once its destructor is over, `reached` is not called any more. Objects that the
//                  pieces name are kept until then.
// Errors         : returned; after one the queue holds nothing that waits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/status.hpp"
#include "memory/piece.hpp"

namespace ist {

// What the user names beside the queue, in the driver's own types.
struct QueueEvents {
  std::uint32_t waits = 0;
  const void* wait_list = nullptr;  // of so many events
  void* event = nullptr;            // where one event goes that is over with the call's work; null: none is wanted
};

// One place in a queue.
class QueueTurn {
 public:
  // Lets the queue go on, if nobody has.
  virtual ~QueueTurn() = default;
  // True: whatever comes before is over, and what it wrote can be read. An error: it failed, and the turn never comes.
  virtual Result<bool> has_come() = 0;
  // What waits for it begins, whatever became of the message.
  virtual void end() = 0;
};

class Queues {
 public:
  virtual ~Queues() = default;
  // Why commands of that queue cannot use a checked piece, if so. Host memory is the library's affair alone.
  virtual Status admit(std::uint64_t queue, const Piece& piece) = 0;
  // Puts a turn into the queue: it comes after the wait list and, as for any command, after what the queue's own order puts before it.
  virtual Result<std::unique_ptr<QueueTurn>> enter(std::uint64_t queue, const QueueEvents& events,
                                                   std::span<const Piece> pieces, std::function<void()> reached) = 0;
  // For what nothing has to be done: the event alone.
  virtual Status pass(std::uint64_t queue, const QueueEvents& events) = 0;
};

}  // namespace ist
