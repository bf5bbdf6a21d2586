// The numbers of a machine's profile, from times of messages between two ranks and of arithmetic.
//
// Who calls this : model, on both ranks.
// Threads        : one.
// Ownership      : none.
// Errors         : a Failure if the times make no sense, time after time; rank 0 tells.
#pragma once

#include <vector>

#include "cli/bench_session.hpp"
#include "collective/profile.hpp"

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
double median_of(std::vector<double> values);

struct Measured {
  Profile profile;
  double unrest = 1;  // how much longer than the quickest round the usual one took: 1 where nothing else runs
};
// Messages between host buffers and combining there; what has to do with devices stays as it is built in.
Measured measure_profile(Session& session, const Settings& settings, int rounds);

}  // namespace ist::cli
