#include "cli/model_trials.hpp"

#include <algorithm>

#include "cli/bench_measure.hpp"

namespace ist::cli {
namespace {

// One repetition is timed so often that a round takes about this long: short, so that most rounds are not interrupted.
constexpr double kRoundSeconds = 0.002;
constexpr double kFewest = 2;
constexpr double kMostRepetitions = 5000;
// On a busy machine there are fewer rounds, but never fewer than these.
constexpr int kFewestRounds = 5;

// Rank 0 finds out how often, and tells.
void plan(Session& session, Trial& trial) {
  constexpr std::uint64_t kWarmUp = 4;
  seconds_for(trial, kWarmUp);
  const double one = seconds_for(trial, kWarmUp) / static_cast<double>(kWarmUp);
  trial.repetitions = session.from_first(repetitions_for(one));
}

}  // namespace

double seconds_for(const Trial& trial, std::uint64_t repetitions) {
  const auto start = Clock::now();
  for (std::uint64_t n = 0; n < repetitions; ++n) trial.once();
  return microseconds_since(start) * 1e-6;
}

std::uint64_t repetitions_for(double seconds) {
  return static_cast<std::uint64_t>(std::clamp(kRoundSeconds / std::max(seconds, 1e-9), kFewest, kMostRepetitions));
}

void run(Session& session, const std::vector<Trials*>& all, int rounds, double longest) {
  const auto start = Clock::now();
  for (Trials* trials : all)
    for (Trial& trial : *trials) plan(session, trial);
  for (int round = 0; round < rounds; ++round) {
    const bool late = round >= kFewestRounds && microseconds_since(start) > longest * 1e6;
    if (session.from_first(late ? 1 : 0) == 1) return;
    for (Trials* trials : all) {
      for (Trial& trial : *trials) {
        session.meet();
        const double share = static_cast<double>(trial.repetitions) * trial.share;
        trial.rounds.push_back(seconds_for(trial, trial.repetitions) / share);
      }
    }
  }
}

double unrest(const std::vector<Trials*>& all) {
  std::vector<double> factors;
  for (const Trials* trials : all)
    for (const Trial& trial : *trials)
      factors.push_back(median_of(trial.rounds) / *std::min_element(trial.rounds.begin(), trial.rounds.end()));
  return median_of(factors);
}

Line line_through(const Trials& trials) {
  std::vector<Point> points;
  for (const Trial& trial : trials) points.push_back({trial.x, median_of(trial.rounds)});
  return fit_line(points);
}

Trials one_way(Session& session, const std::vector<std::size_t>& sizes) {
  Trials trials;
  for (const std::size_t bytes : sizes) {
    const auto round_trip = [&session, bytes] {
      if (session.rank() == 0) session.send(0, bytes);
      session.receive(0, bytes);
      if (session.rank() != 0) session.send(0, bytes);
    };
    trials.push_back({static_cast<double>(bytes), 2, round_trip});
  }
  return trials;
}

Line fit_line(const std::vector<Point>& points) {
  double weights = 0;
  double x = 0;
  double y = 0;
  for (const Point& point : points) {
    const double weight = 1 / (point.seconds * point.seconds);
    weights += weight;
    x += weight * point.x;
    y += weight * point.seconds;
  }
  x /= weights;
  y /= weights;
  double together = 0;
  double spread = 0;
  for (const Point& point : points) {
    const double weight = 1 / (point.seconds * point.seconds);
    together += weight * (point.x - x) * (point.seconds - y);
    spread += weight * (point.x - x) * (point.x - x);
  }
  const double slope = spread > 0 ? together / spread : 0;
  return {y - slope * x, slope};
}

}  // namespace ist::cli
