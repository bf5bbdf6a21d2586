#include "cli/bench_timing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ist::cli {
namespace {

constexpr std::uint64_t kSmallLimit = 8192;
constexpr std::uint64_t kBatches = 100;
// A row of a slow pair is cut short here, or a table would take an hour: but not to fewer than kFewestBatches, unless those took longer
// than the second limit, and never to fewer than kLeastBatches.
constexpr double kLongestRow = 3e6;
constexpr double kLongestQuickRow = 0.15e6;
constexpr std::uint64_t kFewestBatches = 10;
constexpr double kLongestFewest = 10e6;
constexpr double kLongestQuickFewest = 1.5e6;
constexpr std::uint64_t kLeastBatches = 3;
constexpr std::uint64_t kLongestWindow = std::uint64_t{4} << 30;
constexpr int kFewestMessages = 4;

}  // namespace

std::vector<std::string> added_names(const BenchOptions& options) {
  std::vector<std::string> names;
  if (options.stream_latency())
    return {"graph_us", "limit_us", "limit_graph_us", "limit_ratio", "limit_graph_ratio", "copy_us", "copy_ratio"};
  if (options.limits()) return names;
  if (options.stream()) names = {"graph_us"};
  if (options.rate()) names = {"messages_per_s"};
  if (options.pairs()) names = {"messages_per_s", "pairs"};
  if (options.overlap()) names = {"alone_us", "compute_us", "overlap_percent"};
  if (options.timed_call() && !options.overlap()) names = {"average_us", "min_us", "max_us"};
  if (options.timed_call() && options.timed_call()->in_stream()) names.insert(names.end(), {"ahead_us", "graph_us"});
  if (options.limited_by_memcpy() && !options.latency())
    names.insert(names.end(), {"two_copies_gbs", "read_gbs", "one_copy_gbs"});
  names.insert(names.end(), {options.limited_by_memcpy() ? "limit_gbs" : "limit_us", "limit_ratio"});
  return names;
}

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

std::uint64_t wanted_iterations(const BenchOptions& options, std::uint64_t bytes) {
  if (options.iterations != 0) return options.iterations;
  const bool small = bytes <= kSmallLimit;
  std::uint64_t full = small ? 100 : 20;
  if (options.one_at_a_time()) full = small ? 10000 : 1000;
  if (options.rate() || options.timed_call()) full = small ? 1000 : 100;
  return options.quick ? std::max<std::uint64_t>(full / 20, 10) : full;
}

Plan make_plan(const BenchOptions& options, std::uint64_t wanted, double repetition_us, bool alone) {
  const auto within = [&](double us) { return static_cast<std::uint64_t>(us / std::max(repetition_us, 0.01)); };
  const std::uint64_t affordable = within(options.quick ? kLongestQuickRow : kLongestRow);
  const std::uint64_t fewest =
      std::clamp(within(options.quick ? kLongestQuickFewest : kLongestFewest), kLeastBatches, kFewestBatches);
  if (options.iterations == 0) wanted = std::min(wanted, std::max(affordable, fewest));
  const std::uint64_t per_batch = alone ? 1 : std::max<std::uint64_t>(wanted / kBatches, 1);
  return {(wanted + per_batch - 1) / per_batch, per_batch};
}

int window_of(std::uint64_t bytes) {
  const std::uint64_t fit = kLongestWindow / std::max<std::uint64_t>(bytes, 1);
  return static_cast<int>(std::clamp<std::uint64_t>(fit, kFewestMessages, kWindowMessages));
}

double limit_ratio(double us, double limit_us) {
  return limit_us > 0 ? us / limit_us : std::numeric_limits<double>::quiet_NaN();
}

double bare_median_us(const std::function<void()>& repetition) {
  constexpr double kEnough = 20e3;
  constexpr double kLong = 300e3;
  constexpr std::size_t kFewest = 3;
  constexpr std::size_t kMost = 101;
  std::vector<double> times;
  const auto begin = Clock::now();
  repetition();
  if (const double first = microseconds_since(begin); first > kLong) return first;
  while (times.size() < kMost && (times.size() < kFewest || microseconds_since(begin) < kEnough)) {
    const auto start = Clock::now();
    repetition();
    times.push_back(microseconds_since(start));
  }
  return median_of(std::move(times));
}

double percentile(const std::vector<double>& sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - std::floor(position));
}

double median_of(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  return percentile(values, 0.5);
}

Row make_row(std::uint64_t bytes, std::vector<double> times, const Plan& plan) {
  std::sort(times.begin(), times.end());
  Row row;
  row.bytes = bytes;
  row.median_us = percentile(times, 0.5);
  row.p10_us = percentile(times, 0.1);
  row.p90_us = percentile(times, 0.9);
  row.gbps = row.median_us > 0 ? static_cast<double>(bytes) / (row.median_us * 1e3) : 0;
  row.iterations = plan.iterations();
  return row;
}

}  // namespace ist::cli
