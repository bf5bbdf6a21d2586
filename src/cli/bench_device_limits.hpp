// `isthmus bench limits`: what the machine itself allows, measured as the benchmarks are and without the library in the way.
//
// Who calls this : bench.
// Threads        : one, and one beside it for the cache line.
// Ownership      : values.
// Errors         : a Failure, also where a pair was asked for whose memory is not there.
#pragma once

#include <vector>

#include "cli/bench_options.hpp"
#include "cli/bench_report.hpp"

namespace ist::cli {

// Reports whose rows are copies by the CUDA driver alone, or by memcpy between host memory, or what kernels do that do nothing else, and
// what the path says they are:
//   limit-latency        one copy until the processor knows that it is over: by waiting for the stream, by asking after an event, or by a
//                        word in page-locked memory that the stream writes, or that a kernel does which copies; a row of each size for each
//   limit-bandwidth      64 copies in flight, in one stream, in several, and between devices by calls of 8 and by store kernels, a launch a
//                        copy or one for all: a row of each size for each; gbps of one
//   limit-bidirectional  the same both ways at once; gbps of both together
//   limit-calls          calls of the driver without bytes; among them launches of an empty kernel
//   limit-kernels        between two devices: kernels that wait for each other, and time themselves
//   limit-residents      between the processor and kernels that stay on their devices; fixed sizes, as of limit-kernels
// What cannot be measured here is named in the report's left_out, and printed.
// `pair`: those of options.from and options.to only; else of each pair of host, pinned and CUDA memory that has a device in it.
std::vector<BenchReport> measure_device_limits(const BenchOptions& options, bool pair);

// Measures, prints a table and writes the reports as one list.
void run_limits(const BenchOptions& options, bool pair);

}  // namespace ist::cli
