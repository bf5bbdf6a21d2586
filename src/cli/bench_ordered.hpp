// The timed loops of messages that are put into CUDA streams and OpenCL queues, but for those beside bare kernels (bench_stream).
//
// Who calls this : bench, on both ranks, after check_bytes.
// Threads        : one.
// Ownership      : looks at the session.
// Errors         : a Failure.
#pragma once

#include "cli/bench_session.hpp"
#include "cli/bench_timing.hpp"

namespace ist::cli {

// Latency: round trips, many in the queue at once; a time is half of one.
// Bandwidth: a window, then a short answer, all of it in the stream or queue, which is then waited for; a time is that of a window
// divided by its messages. Of streams the row has beside it graph_us, the same as a graph: no number of messages beyond 4 MiB.
Row measure_ordered(Session& session, std::uint64_t bytes);

}  // namespace ist::cli
