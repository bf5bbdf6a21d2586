// What messages of a benchmark are put into, and then run in its order: a CUDA stream or an OpenCL queue.
//
// Who calls this : bench_session makes one and puts messages there, bench_ordered waits for it.
// Threads        : one.
// Ownership      : looks at the stream or queue, which outlives it.
// Errors         : of messages, the code of the library's call; else a Failure that names the driver's.
#pragma once

#include <isthmus/isthmus.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "cli/bench_options.hpp"

namespace ist::cli {

// Whom a message goes to or comes from.
struct Partner {
  int rank;
  int tag;
  ist_comm comm;
};

class Lane {
 public:
  // `handle`: a CUstream of the place's device where the benchmark is of streams, else a cl_command_queue.
  static std::unique_ptr<Lane> open(const BenchOptions& options, const Place& place, void* handle);
  Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  virtual ~Lane() = default;

  // Each is behind what the lane holds already, and returns at once.
  virtual int send(const ist_buffer& from, std::size_t bytes, const Partner& partner) = 0;
  virtual int receive(const ist_buffer& into, std::size_t bytes, const Partner& partner) = 0;
  virtual int exchange(const ist_buffer& from, const ist_buffer& into, std::size_t bytes, const Partner& partner) = 0;
  // Until all of it is over.
  virtual void wait() = 0;
  // What `put` puts there as a graph; calling the result launches it, while the lane lives. Empty of a lane that has no graphs.
  virtual std::function<void()> capture(const std::function<void()>& put) = 0;
};

}  // namespace ist::cli
