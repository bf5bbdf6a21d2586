// How much of a call's time the program can use for itself, by the OSU method.
//
// Who calls this : bench, on every rank, after check_call.
// Threads        : one.
// Ownership      : looks at the session.
// Errors         : a Failure.
#pragma once

#include "cli/bench_session.hpp"
#include "cli/bench_timing.hpp"

namespace ist::cli {

// 100 * (1 - (total - compute) / alone), between 0 and 100.
double overlap_percent(double total_us, double compute_us, double alone_us);

// The call alone; then computation of about that length alone; then the call started, that computation, and the wait. The times
// of the row are those of the last. Each is the average over ranks.
Row measure_overlap(Session& session, std::uint64_t bytes);

}  // namespace ist::cli
