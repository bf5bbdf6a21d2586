// The timed loops between two ranks, by the OSU method.
//
// Who calls this : bench, on both ranks, after check_bytes.
// Threads        : one.
// Ownership      : looks at the session.
// Errors         : a Failure.
#pragma once

#include "cli/bench_session.hpp"
#include "cli/bench_timing.hpp"

namespace ist::cli {

// Latency: a blocking ping-pong; a time is half a round trip, so the mean of both directions.
// Bandwidth: windows of 64 messages (window_of), then a short answer; a time is that of a window divided by its messages.
// Rate: the same with more windows, of messages that are small unless told otherwise.
// The row is complete on rank 0 only.
Row measure(Session& session, std::uint64_t bytes);

}  // namespace ist::cli
