// `isthmus bench one-sided`: puts, gets, atomics and barriers of symmetric heaps, by the host and inside kernels, beside bare loops.
//
// Who calls this : bench.
// Threads        : one.
// Ownership      : makes a world and heaps of its own.
// Errors         : a Failure.
#pragma once

#include <string>

#include "cli/bench_options.hpp"

namespace ist::cli {

// `kind`: of the heap; empty: what the side usually has.
void run_one_sided(const BenchOptions& options, const std::string& kind);

}  // namespace ist::cli
