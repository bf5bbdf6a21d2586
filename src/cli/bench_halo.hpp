// `isthmus bench halo`: halo exchanges under every packing and way, side by side, and `isthmus bench halo lists` of cells that are listed.
//
// Who calls this : bench.
// Threads        : one.
// Ownership      : values.
// Errors         : a Failure; of what a rank of several cannot do, with its text.
#pragma once

#include "cli/bench_options.hpp"

namespace ist::cli {

// Starts ranks of its own, or is one of them. `kind`: memory of every rank.
void run_halo(const BenchOptions& options, const std::string& kind);

}  // namespace ist::cli
