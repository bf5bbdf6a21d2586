// Calls of symmetric heaps by the processor, beside bare loops on the same memory, or the driver's own copies of it.
//
// Who calls this : bench_one_sided, on both ranks.
// Threads        : one.
// Ownership      : heaps and memory of its own, destroyed when it returns.
// Errors         : a Failure; the library's own Error.
#pragma once

#include "cli/bench_one_sided_rows.hpp"

namespace ist::cli {

void measure_host_side(OneSidedBench& bench);

}  // namespace ist::cli
