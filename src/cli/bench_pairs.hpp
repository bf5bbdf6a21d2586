// Windows of messages between several pairs of ranks at once, as osu_mbw_mr measures them.
//
// Who calls this : bench; all ranks make the same calls in the same order.
// Threads        : one.
// Ownership      : none.
// Errors         : a Failure.
#pragma once

#include "cli/bench_session.hpp"
#include "cli/bench_timing.hpp"

namespace ist::cli {

// The row is rank 0's: all pairs together, by the slowest of them.
Row measure_pairs(Session& session, std::uint64_t bytes);

}  // namespace ist::cli
