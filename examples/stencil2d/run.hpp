// The timed loop: steps, with an exchange every `halo` steps, and what it measured.
//
// Who calls this : main.cpp, on all ranks.
// Threads        : one.
// Ownership      : a Job looks at a back-end that has its memory and at the start values.
// Errors         : isthmus::Error, and the back-end's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "exchange.hpp"
#include "options.hpp"
#include "serial.hpp"

namespace stencil {

struct Job {
  const Options& options;
  isthmus::Comm comm;
  Extent field;
  Extent grid;
  Tile tile;
  Layout layout;
  Backend& backend;
  const std::vector<double>& start;  // this rank's tile
};

struct Measured {
  std::string exchange;
  double seconds = 0;         // the loop alone, slowest rank
  double upload_seconds = 0;  // the first copies
  std::vector<double> field;  // after the last step, on rank 0
  Comparison comparison;      // on rank 0, if it was compared
};

// Called on rank 0 with the whole field.
using OnFrame = std::function<void(int step, const std::vector<double>& field)>;
Measured run(const Job& job, const std::string& exchange, const OnFrame& on_frame);

// Seconds of one step without any exchange, slowest rank: what a loop costs above this, exchange costs. Asking the clock
// around each exchange would say less, because kernels are queued and an exchange waits for them.
double seconds_per_bare_step(const Job& job);

}  // namespace stencil
