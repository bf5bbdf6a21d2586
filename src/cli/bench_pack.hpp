// `isthmus bench pack`: packing and unpacking of layouts of several shapes, beside a copy for each block and one of them all.
//
// Who calls this : bench.
// Threads        : one.
// Ownership      : values.
// Errors         : a Failure.
#pragma once

#include "cli/bench_options.hpp"

namespace ist::cli {

// `kind`: of the memory on both sides.
void run_pack(const BenchOptions& options, const std::string& kind);

}  // namespace ist::cli
