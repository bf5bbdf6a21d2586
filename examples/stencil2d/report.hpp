// What people and programs read: progress, the table, the results as JSON.
//
// Who calls this : run.cpp and main.cpp; only rank 0 prints.
// Threads        : one.
// Ownership      : values.
// Errors         : std::runtime_error if the JSON file cannot be written.
#pragma once

#include <string>
#include <vector>

#include "run.hpp"

namespace stencil {

// A bar that is redrawn on a terminal; elsewhere a line for each quarter.
class Progress {
 public:
  Progress(bool shown, std::string name, int steps);
  void show(int step, double seconds);

 private:
  bool shown_;
  bool terminal_;
  std::string name_;
  int steps_;
  int quarter_ = 0;
};

// Rank 0's account of the whole run.
struct Report {
  const Job& job;
  int ranks = 1;
  double allocation_seconds = 0;
  double bare_step_seconds = 0;
  std::vector<Measured> runs;

  void print_head() const;
  void print_table() const;
  void write_json(const std::string& path) const;
  // The last line: "verified: ..." on the output, or what is wrong on the error output. True if nothing is.
  bool print_verdict() const;

 private:
  double share_in_exchange(const Measured& run) const;
  double points_per_second(double seconds) const;
  std::string conditions() const;
};

}  // namespace stencil
