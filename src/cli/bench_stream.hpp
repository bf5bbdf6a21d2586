// How long messages in streams take, as plain calls and in a graph, beside a bare pair of kernels in the same run.
//
// Who calls this : bench, on both ranks, after check_bytes.
// Threads        : one.
// Ownership      : looks at the session.
// Errors         : a Failure, also where the CUDA parts were left out.
#pragma once

#include "cli/bench_session.hpp"
#include "cli/bench_timing.hpp"

namespace ist::cli {

// The row is of plain calls; it has beside them graph_us, and limits and ratios to them, which are no number where there is no limit: of
// messages that are longer than the packets' longest, and between ranks that share a device.
Row measure_stream(Session& session, std::uint64_t bytes);

}  // namespace ist::cli
