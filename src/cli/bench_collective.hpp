// Calls that all ranks make together: checked, then timed by the OSU method.
//
// Who calls this : bench, on every rank.
// Threads        : one.
// Ownership      : looks at the session.
// Errors         : a Failure on every rank; rank 0's names the size, the rank and the first byte that is wrong.
#pragma once

#include <functional>
#include <vector>

#include "cli/bench_session.hpp"
#include "cli/bench_timing.hpp"

namespace ist::cli {

// One call of the benchmark, complete when this returns; overlap starts it and waits.
void make_call(const BenchOptions& options, const CallArguments& with);

// Makes the call for each size with fresh random inputs, with results that are wrong at first and guarded behind, and compares
// every byte of every rank's buffers, also those that the call must not touch.
void check_call(Session& session, const std::vector<std::uint64_t>& sizes, const std::function<void(std::size_t)>& progress);

// What every rank measured, batch by batch: the averages over ranks.
std::vector<double> average_of_ranks(const std::vector<double>& all, std::size_t ranks);
double mean(std::span<const double> values);

// Every rank times its calls, with an untimed barrier after each. A time is the average over ranks; minimum and maximum are
// those of the ranks' own means.
Row measure_call(Session& session, std::uint64_t bytes);

}  // namespace ist::cli
