// What the steps took, as a table and as a file.
//
// Who calls this : particles.cpp, on rank 0.
// Threads        : one.
// Ownership      : values; refers to the options.
// Errors         : std::runtime_error where the file cannot be written.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "check.hpp"

namespace particles {

struct Options {
  std::int64_t count = 200000;
  int steps = 50;
  double speed = 0.02;
  std::string store = "both", device = "host", json, spoil = "no";
};

struct Times {
  double moving = 0;
  double migrating = 0;
};

struct Line {
  std::string store;
  double seconds = 0, seconds_alone = 0;  // of all steps, of the slowest rank, and by one rank
  Times times;                            // of a step, the mean over ranks
  std::int64_t left = 0;                  // in all steps
  Faults faults, faults_alone;            // alone: of one rank, beside the processor
};

class Report {
 public:
  Report(const Options& options, std::string memory, const std::array<int, 3>& parts);
  // Printed at once.
  void add(const Line& line);
  void write_json(bool right) const;

 private:
  double rate(double seconds) const;  // millions of particles that are moved in a second
  double efficiency(const Line& line) const { return line.seconds_alone / line.seconds / ranks(); }
  double share(const Line& line) const;  // of particles that leave a part in a step
  double bytes(const Line& line) const;  // that a rank sends in a step
  int ranks() const { return parts_[0] * parts_[1] * parts_[2]; }

  const Options& options_;
  std::string memory_;
  std::array<int, 3> parts_;
  std::vector<Line> lines_;
};

}  // namespace particles
