// Isthmus, C++ interface: messages of layouts in CUDA streams and OpenCL queues. Beside isthmus.hpp, which has the communicators;
// isthmus/layout_stream.h says what each does, and isthmus/stream.h and isthmus/queue.h what is true of all.
//
// Who calls this : programs.
// Threads        : of each end of a channel one thread, and one stream or queue, at a time.
// Ownership      : a buffer belongs to the stream until the work that the call put there is over; a layout is read before a call returns.
// Errors         : Error, with the code and the library's text.
#ifndef ISTHMUS_LAYOUT_STREAM_HPP
#define ISTHMUS_LAYOUT_STREAM_HPP

#include <cstdint>

#include "isthmus/layout.hpp"
#include "isthmus/layout_stream.h"

namespace isthmus {

// A column of a matrix to the right, and the left one's into this one's first, when the stream comes to it:
//
//   const LayoutStreams streams(world.comm());
//   streams.sendrecv_on(stream, {Buffer::cuda(matrix + columns - 2), column}, right, {Buffer::cuda(matrix), column}, left);
template <class Comm>
class LayoutStreams {
 public:
  explicit LayoutStreams(const Comm& comm) : comm_(comm) {}

  // Into a CUDA stream (a CUstream or cudaStream_t).
  void send_on(void* stream, const Laid& data, int dest, int tag = 0) const {
    detail::check(ist_send_layout_on(stream, data.buffer.c(), data.count, c(data), dest, tag, comm_.c()));
  }
  void recv_on(void* stream, const Laid& data, int source, int tag = 0) const {
    detail::check(ist_recv_layout_on(stream, data.buffer.c(), data.count, c(data), source, tag, comm_.c()));
  }
  void sendrecv_on(void* stream, const Laid& out, int dest, const Laid& in, int source, int out_tag = 0,
                   int in_tag = 0) const {
    detail::check(ist_sendrecv_layout_on(stream, out.buffer.c(), out.count, c(out), dest, out_tag, in.buffer.c(), in.count,
                                         c(in), source, in_tag, comm_.c()));
  }
  // sides: IST_SENDS, IST_RECEIVES, or both added.
  void prepare_on(void* stream, const Layout& layout, std::int64_t count, int partner, int tag = 0,
                  int sides = IST_SENDS + IST_RECEIVES) const {
    detail::check(ist_prepare_layout_on(stream, count, layout.commit().c(), partner, tag, sides, comm_.c()));
  }

  // Into an OpenCL queue (a cl_command_queue).
  void send_on_queue(void* queue, const Laid& data, int dest, int tag = 0, const QueueEvents& events = {}) const {
    detail::check(ist_send_layout_on_queue(queue, data.buffer.c(), data.count, c(data), dest, tag, comm_.c(), events.waits,
                                           events.wait_list, events.event));
  }
  void recv_on_queue(void* queue, const Laid& data, int source, int tag = 0, const QueueEvents& events = {}) const {
    detail::check(ist_recv_layout_on_queue(queue, data.buffer.c(), data.count, c(data), source, tag, comm_.c(), events.waits,
                                           events.wait_list, events.event));
  }
  void sendrecv_on_queue(void* queue, const Laid& out, int dest, const Laid& in, int source, int out_tag = 0, int in_tag = 0,
                         const QueueEvents& events = {}) const {
    detail::check(ist_sendrecv_layout_on_queue(queue, out.buffer.c(), out.count, c(out), dest, out_tag, in.buffer.c(),
                                               in.count, c(in), source, in_tag, comm_.c(), events.waits, events.wait_list,
                                               events.event));
  }

 private:
  static ist_layout c(const Laid& data) { return data.layout.commit().c(); }

  Comm comm_;
};

}  // namespace isthmus
#endif
