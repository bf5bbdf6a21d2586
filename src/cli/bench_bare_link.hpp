// The same bytes between the same kinds of memory, and nothing of the library: what the rows of a benchmark are measured beside.
//
// Who calls this : bench_row_limit, on rank 0, while the other ranks sleep.
// Threads        : one.
// Ownership      : memory, streams and queues of its own, which go with the object.
// Errors         : a Failure that names the call which the machine has no way for, or which failed.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "cli/bench_options.hpp"
#include "memory/kinds.hpp"

namespace ist::cli {

// How many at once: one, until this processor knows that it is over; a window of them (window_of); a window each way.
enum class BareForm { single, window, both_ways };

// Where the bytes are, devices by their numbers in this process.
struct BareEnds {
  Place from;
  Place to;
  std::size_t most;      // bytes of the longest
  bool both_ways;        // whether that form is asked for
  double cache_line_us;  // between the processors of the ranks; 0: not known
};

class BareLink {
 public:
  // Of host memory memcpy; of CUDA memory, of every class, copies by the driver between memory of cuMemAlloc; of OpenCL memory commands in
  // queues; between those two the slower of both.
  static std::unique_ptr<BareLink> open(const BareEnds& ends, const Kinds& kinds);
  virtual ~BareLink() = default;

  // Microseconds of one of them: the quickest of the ways there are, of each the median.
  virtual double us(std::size_t bytes, BareForm form) = 0;
  // What that is.
  virtual std::string words(BareForm form) const = 0;
};

}  // namespace ist::cli
