// `isthmus bench NAME --every-pair`: the same messages between every two classes of memory that this machine has, or the same call out of
// every one and into every one.
//
// Who calls this : bench.
// Threads        : one; every pair is measured by `isthmus bench` in processes of its own.
// Ownership      : values.
// Errors         : a Failure with status 2 for what does not go together; a pair that fails does not stop the others, and is told last.
#pragma once

#include "cli/bench_options.hpp"

namespace ist::cli {

// Refuses what is of no pairs of memory; `told`: whether --from, --to or --kind were given.
void must_go_together(const BenchOptions& options, bool told);
// Prints one table for each of some sizes, and writes all reports as one list.
void run_every_pair(const BenchOptions& options);

}  // namespace ist::cli
