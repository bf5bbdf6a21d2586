#include "cli/bench_pairs.hpp"

#include <algorithm>

namespace ist::cli {
namespace {

// A window of one pair, and its answer.
void window_once(Session& session, std::size_t bytes) {
  if (session.side() == 0) {
    session.send_window(window_of(bytes), 0, bytes);
    session.hear<std::int32_t>();
  } else {
    session.receive_window(window_of(bytes), 0, bytes);
    session.tell(std::int32_t{0});
  }
}

double batch_us(Session& session, std::size_t bytes, std::uint64_t windows) {
  session.meet();
  const auto start = Clock::now();
  for (std::uint64_t n = 0; n < windows; ++n) window_once(session, bytes);
  return microseconds_since(start);
}

}  // namespace

Row measure_pairs(Session& session, std::uint64_t bytes) {
  const BenchOptions& options = session.options();
  const auto size = static_cast<std::size_t>(bytes);
  const std::uint64_t wanted = wanted_iterations(options, bytes);
  session.meet();
  const double repetition_us = warm_up_us(session, wanted / 10, [&] { window_once(session, size); });
  const Plan plan = session.from_first(make_plan(options, wanted, repetition_us, false));
  std::vector<double> mine;
  mine.reserve(plan.batches);
  for (std::uint64_t batch = 0; batch < plan.batches; ++batch) mine.push_back(batch_us(session, size, plan.per_batch));
  // All pairs began together, and a batch is over when the last of them is through.
  const auto all = session.from_all(std::span<const double>{mine});
  std::vector<double> times(mine.size());
  for (std::size_t n = 0; n < all.size(); ++n) times[n % times.size()] = std::max(times[n % times.size()], all[n]);
  const int pairs = session.size() / 2;
  for (double& one : times) one /= static_cast<double>(plan.per_batch) * window_of(bytes) * pairs;
  const int carrier = session.carrier();
  const auto carriers = session.from_all(std::span<const int>{&carrier, 1});
  Row row = make_row(bytes, std::move(times), plan);
  row.window = window_of(bytes);
  row.added = {1e6 / row.median_us, static_cast<double>(pairs)};
  row.path = session.path_name(carriers[static_cast<std::size_t>(pairs)]);
  return row;
}

}  // namespace ist::cli
