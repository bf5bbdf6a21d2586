// Another library that works on this kind's memory in a stream of ours: ordered like our own copies, promised by tickets.
//
// Who calls this : collective/, for NCCL. Who implements it: cuda/.
// Threads        : Guests from any thread; a GuestStream by one at a time, handle() and device() by any.
// Ownership      : whoever opened a stream owns it, and destroys it before the kind; work still in it runs to its end.
// Errors         : returned; they name the driver's call.
#pragma once

#include <cstdint>
#include <functional>

#include "memory/memory_kind.hpp"

namespace ist {

class GuestStream {
 public:
  virtual ~GuestStream() = default;
  // The driver's own: a CUstream.
  virtual std::uint64_t handle() const = 0;
  virtual int device() const = 0;
  // What is put in from now on begins, on the device, after `work` has finished (of this kind, or empty).
  virtual Status follow(const Ticket& work) = 0;
  // Calls `body` with the device's own context current in this thread.
  virtual Status within(const std::function<void()>& body) = 0;
  // The same; what `body` puts into that stream, this one or one of the user's, waits for other ranks. mark() comes after it.
  virtual Status launch(std::uint64_t stream, const std::function<void()>& body) = 0;
  // Finished when what is in the stream now has.
  virtual Result<Ticket> mark() = 0;
  // The same of a stream of the user's, of the same device and context.
  virtual Result<Ticket> mark(std::uint64_t stream) = 0;
};

class Guests {
 public:
  virtual ~Guests() = default;
  // Why such a library cannot use that memory; ok if it can.
  virtual Status admits(const Piece& piece) = 0;
  virtual Result<std::unique_ptr<GuestStream>> open_stream(int device) = 0;
  // A library that sets itself up waits for whatever runs on the devices, and holds up whatever is to run there: held meanwhile. Null: it must
  // not, since streams of this process may wait for other ranks. In any thread, and let go of in any.
  virtual std::shared_ptr<void> begin_setup() = 0;
  // Streams of this process may wait for other ranks, from the first that was said to on.
  virtual bool streams_used() = 0;
  // Is all over that such libraries, and the kind itself, have put into streams and that waits for other ranks?
  virtual bool quiet() = 0;
};

}  // namespace ist
