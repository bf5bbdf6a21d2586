// Messages between two ranks, timed round after round, and the straight line through their times.
//
// Who calls this : model_measure and model_devices, on both ranks.
// Threads        : one.
// Ownership      : values; a trial looks at its session.
// Errors         : a Failure of the session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "cli/bench_session.hpp"

namespace ist::cli {

// Of a straight line through times: what is paid in any case, and what each byte, or each further message, adds.
struct Line {
  double start = 0;
  double slope = 0;
};
struct Point {
  double x = 0;
  double seconds = 0;
};
// By least squares of the errors relative to each time, so that long times do not drown the short ones.
Line fit_line(const std::vector<Point>& points);

// Something that both ranks do together, over and over; x: bytes, or messages.
struct Trial {
  double x = 0;
  double share = 1;  // how many of what is looked for one repetition has
  std::function<void()> once;
  std::uint64_t repetitions = 0;
  std::vector<double> rounds = {};  // seconds, by rank 0
};
using Trials = std::vector<Trial>;

double seconds_for(const Trial& trial, std::uint64_t repetitions);
// How often a trial that takes so long is repeated in one round.
std::uint64_t repetitions_for(double seconds);
// Round after round through all of them, so that a busy moment of the machine spoils a little of each and not all of one. On a busy machine
// there are fewer rounds, so that it takes not much longer than `longest` seconds.
void run(Session& session, const std::vector<Trials*>& all, int rounds, double longest);
// How much longer than the quickest round the usual one took, over all trials; 1 where nothing else runs.
double unrest(const std::vector<Trials*>& all);
Line line_through(const Trials& trials);
// Half round trips of messages of these sizes.
Trials one_way(Session& session, const std::vector<std::size_t>& sizes);

}  // namespace ist::cli
