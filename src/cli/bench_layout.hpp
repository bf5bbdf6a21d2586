// `isthmus bench layout`: messages with layouts between two ranks, beside the same bytes in one piece, a message for each block, and
// packing by hand.
//
// Who calls this : bench.
// Threads        : one.
// Ownership      : values.
// Errors         : a Failure.
#pragma once

#include "cli/bench_options.hpp"

namespace ist::cli {

// `kind`: of the memory of both ranks. Starts the ranks itself where it was not started as one.
void run_layout(const BenchOptions& options, const std::string& kind);

}  // namespace ist::cli
