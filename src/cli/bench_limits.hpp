// What the machine itself allows, measured in the same run and without the library in the way.
//
// Who calls this : bench, on rank 0, while rank 1 sleeps.
// Threads        : starts one and joins it.
// Ownership      : none.
// Errors         : none; what cannot be measured is 0.
#pragma once

#include <cstdint>

namespace ist::cli {

struct Limits {
  double cache_line_us = 0;  // half a round trip of one cache line between two processors; 0: they are one
  double memcpy_gbps = 0;    // one thread, memory to memory
  std::uint64_t memcpy_bytes = 0;
};

// `other_processor`: the one rank 1 ran on.
Limits measure_limits(int other_processor);

}  // namespace ist::cli
