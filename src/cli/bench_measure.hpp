// The timed loops, by the OSU method.
//
// Who calls this : bench, on both ranks, after check_bytes.
// Threads        : one.
// Ownership      : looks at the session.
// Errors         : a Failure.
#pragma once

#include <cstdint>
#include <string>

#include "cli/bench_session.hpp"

namespace ist::cli {

struct Row {
  std::uint64_t bytes = 0;
  double median_us = 0;
  double p10_us = 0;
  double p90_us = 0;
  double gbps = 0;  // 1e9 bytes a second, from the median
  std::uint64_t iterations = 0;
  std::string path;
};

// Latency: a blocking ping-pong; a time is half a round trip, so the mean of both directions.
// Bandwidth: windows of 64 messages, then a short answer; a time is that of a window divided by 64.
// The row is complete on rank 0 only.
Row measure(Session& session, std::uint64_t bytes);

}  // namespace ist::cli
