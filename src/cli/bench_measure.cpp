#include "cli/bench_measure.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

namespace ist::cli {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// Both ranks must run the same loops, so rank 0 decides and tells.
struct Plan {
  std::uint64_t batches = 0;
  std::uint64_t per_batch = 0;
};

constexpr std::uint64_t kSmallLimit = 8192;
constexpr std::uint64_t kBatches = 100;
// A row of a slow pair is cut short here, or a table would take an hour: but never to fewer than kFewestBatches.
constexpr double kLongestRow = 3e6;
constexpr double kLongestQuickRow = 0.15e6;
constexpr std::uint64_t kFewestBatches = 10;

// One repetition: a round trip, or a window and its answer.
void repeat_once(Session& session, std::size_t bytes) {
  if (session.options().latency()) {
    if (session.rank() == 0) {
      session.send(0, bytes);
      session.receive(0, bytes);
    } else {
      session.receive(0, bytes);
      session.send(0, bytes);
    }
  } else if (session.rank() == 0) {
    session.send_window(Session::kWindow, 0, bytes);
    session.hear<std::int32_t>();
  } else {
    session.receive_window(Session::kWindow, 0, bytes);
    session.tell(std::int32_t{0});
  }
}

std::uint64_t wanted_iterations(const BenchOptions& options, std::uint64_t bytes) {
  if (options.iterations != 0) return options.iterations;
  const bool small = bytes <= kSmallLimit;
  const std::uint64_t full = options.latency() ? (small ? 10000 : 1000) : (small ? 100 : 20);
  return options.quick ? std::max<std::uint64_t>(full / 20, 10) : full;
}

Plan make_plan(const BenchOptions& options, std::uint64_t wanted, double repetition_us) {
  const double longest = options.quick ? kLongestQuickRow : kLongestRow;
  const auto affordable = static_cast<std::uint64_t>(longest / std::max(repetition_us, 0.01));
  if (options.iterations == 0) wanted = std::min(wanted, std::max(affordable, std::min(wanted, kFewestBatches)));
  // A window is long enough to be timed alone; round trips are timed in batches.
  const std::uint64_t batches = options.latency() ? std::min(wanted, kBatches) : wanted;
  return {batches, wanted / batches};
}

double percentile(const std::vector<double>& sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - std::floor(position));
}

std::string path_name(const Session& session, int carrier) {
  const bool by_hand = session.options().staged && (session.place(0).on_device() || session.place(1).on_device());
  return std::string{by_hand ? "staged+" : ""} + "shm/" + ist_carrier_name(carrier);
}

}  // namespace

Row measure(Session& session, std::uint64_t bytes) {
  const BenchOptions& options = session.options();
  const auto size = static_cast<std::size_t>(bytes);
  const std::uint64_t wanted = wanted_iterations(options, bytes);
  // The method's warm-up is a hundredth for latency, a tenth for bandwidth; its last half tells how long one takes.
  const std::uint64_t warm_up = std::max<std::uint64_t>(wanted / (options.latency() ? 100 : 10), 2);
  Clock::time_point start = Clock::now();
  for (std::uint64_t n = 0; n < warm_up; ++n) {
    if (n == warm_up / 2) start = Clock::now();
    repeat_once(session, size);
  }
  const std::uint64_t half = warm_up - warm_up / 2;
  const double repetition_us = microseconds_since(start) / static_cast<double>(half);
  Plan plan = make_plan(options, wanted, repetition_us);
  if (session.rank() == 0)
    session.tell(plan);
  else
    plan = session.hear<Plan>();

  const double share = static_cast<double>(plan.per_batch) * (options.latency() ? 2.0 : Session::kWindow);
  std::vector<double> times;
  times.reserve(plan.batches);
  for (std::uint64_t batch = 0; batch < plan.batches; ++batch) {
    start = Clock::now();
    for (std::uint64_t n = 0; n < plan.per_batch; ++n) repeat_once(session, size);
    times.push_back(microseconds_since(start) / share);
  }
  if (session.rank() == 1) {
    session.tell(session.carrier());
    return {};
  }
  std::sort(times.begin(), times.end());
  Row row;
  row.bytes = bytes;
  row.median_us = percentile(times, 0.5);
  row.p10_us = percentile(times, 0.1);
  row.p90_us = percentile(times, 0.9);
  row.gbps = row.median_us > 0 ? static_cast<double>(bytes) / (row.median_us * 1e3) : 0;
  row.iterations = plan.batches * plan.per_batch;
  row.path = path_name(session, session.hear<int>());
  return row;
}

}  // namespace ist::cli
