#include "cli/bench_overlap.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include "cli/bench_collective.hpp"

namespace ist::cli {
namespace {

// Work that a compiler cannot shorten and that asks nobody for the time.
void compute(std::uint64_t rounds) {
  static volatile std::uint64_t kept = 1;
  std::uint64_t value = kept;
  for (std::uint64_t n = 0; n < rounds; ++n) value = value * 6364136223846793005U + 1442695040888963407U;
  kept = value;
}

// The fastest of a few: what interrupts a calibration must not make the work longer.
double rounds_per_us() {
  constexpr std::uint64_t kRounds = 200000;
  double least = 1e9;
  for (int n = 0; n < 5; ++n) {
    const auto start = Clock::now();
    compute(kRounds);
    least = std::min(least, microseconds_since(start));
  }
  return static_cast<double>(kRounds) / least;
}

// The batches' times of what is between two barriers, averaged over ranks.
std::vector<double> times_of(Session& session, const Plan& plan, const std::function<void()>& timed) {
  std::vector<double> times;
  times.reserve(plan.batches);
  session.meet();
  for (std::uint64_t batch = 0; batch < plan.batches; ++batch) {
    double took = 0;
    for (std::uint64_t n = 0; n < plan.per_batch; ++n) {
      const auto start = Clock::now();
      timed();
      took += microseconds_since(start);
      session.meet();
    }
    times.push_back(took / static_cast<double>(plan.per_batch));
  }
  return average_of_ranks(session.from_all(std::span<const double>{times}), static_cast<std::size_t>(session.size()));
}

}  // namespace

double overlap_percent(double total_us, double compute_us, double alone_us) {
  return std::clamp(100 * (1 - (total_us - compute_us) / alone_us), 0.0, 100.0);
}

Row measure_overlap(Session& session, std::uint64_t bytes) {
  const BenchOptions& options = session.options();
  const CollectiveCall& call = *options.timed_call();
  const CallArguments with = session.arguments(static_cast<std::size_t>(bytes));
  const std::uint64_t wanted = wanted_iterations(options, bytes);
  // Three stretches, of which the last is up to twice as long.
  const double repetition_us = 4 * warm_up_us(session, wanted / 10, [&] { make_call(options, with); });
  const Plan plan = session.from_first(make_plan(options, wanted, repetition_us, false));

  const double alone_us = median_of(times_of(session, plan, [&] { make_call(options, with); }));
  const auto rounds = static_cast<std::uint64_t>(alone_us * session.from_first(rounds_per_us()));
  const double compute_us = median_of(times_of(session, plan, [&] { compute(rounds); }));
  auto total = times_of(session, plan, [&] {
    std::array<ist_request, 2> requests{IST_REQUEST_NULL, IST_REQUEST_NULL};
    must(call.start(with, requests.data()), call.name);
    compute(rounds);
    must(ist_waitall(static_cast<int>(requests.size()), requests.data(), IST_STATUSES_IGNORE), "ist_waitall");
  });
  Row row = make_row(bytes, std::move(total), plan);
  row.path = options.call == "exchange" ? "messages" : "schedule";
  row.added = {alone_us, compute_us, overlap_percent(row.median_us, compute_us, alone_us)};
  return row;
}

}  // namespace ist::cli
