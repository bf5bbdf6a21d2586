// What all timed loops have in common: how often, and what becomes of the times.
//
// Who calls this : bench_measure, bench_collective and bench_overlap; bench_report for the rows.
// Threads        : values.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/bench_options.hpp"

namespace ist::cli {

struct Row {
  std::uint64_t bytes = 0;
  double median_us = 0;
  double p10_us = 0;
  double p90_us = 0;
  double gbps = 0;  // 1e9 bytes a second, from the median
  std::uint64_t iterations = 0;
  std::string path;
  std::vector<double> added = {};  // as added_names() calls them
  int window = 0;                  // messages of one; 0: none, or as many as the report says
};

// What the rows of a benchmark have beside the names that all have.
std::vector<std::string> added_names(const BenchOptions& options);

// Microseconds: what takes longer than this needs no more warming up.
constexpr double kLongestWarmUp = 300e3;

using Clock = std::chrono::steady_clock;
double microseconds_since(Clock::time_point start);

// Every rank must run the same loops, so rank 0 makes the plan and tells it.
struct Plan {
  std::uint64_t batches = 0;
  std::uint64_t per_batch = 0;
  std::uint64_t iterations() const { return batches * per_batch; }
};
// Repetitions by the method for a size, or as many as were asked for.
std::uint64_t wanted_iterations(const BenchOptions& options, std::uint64_t bytes);
// No fewer than wanted, from a hundred on in 100 to 199 batches of as many each; fewer if one takes so long that a row would take seconds.
// `alone`: one is long enough to be a batch.
// A row takes 3 s at most (--quick: 0.15 s), or as long as ten batches, but those no longer than 10 s (1.5 s), or as long as three.
Plan make_plan(const BenchOptions& options, std::uint64_t wanted, double repetition_us, bool alone);

// Messages in a window of the method, and in one of that size: fewer of long ones, so that a window moves 4 GiB at most.
constexpr int kWindowMessages = 64;
int window_of(std::uint64_t bytes);

// How many times as long as the limit allows: 1 is the limit itself. No number where there is none.
double limit_ratio(double us, double limit_us);
// Microseconds of a repetition of what is no row by itself, the median: 20 ms of them and three at least, or one that takes 0.3 s.
double bare_median_us(const std::function<void()>& repetition);
double percentile(const std::vector<double>& sorted, double fraction);
// No number of none.
double median_of(std::vector<double> values);
// Sorts the times of the batches. gbps counts `bytes` for each.
Row make_row(std::uint64_t bytes, std::vector<double> times, const Plan& plan);

}  // namespace ist::cli
