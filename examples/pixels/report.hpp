// The paper's table, and the same as a file.
//
// Who calls this : pixels.cpp, on rank 0.
// Threads        : one.
// Ownership      : values; refers to the options.
// Errors         : std::runtime_error where the file cannot be written.
#pragma once

#include <string>
#include <vector>

#include "picture.hpp"

namespace pixels {

struct Line {
  std::string way;
  int ranks = 1;
  Times times;
  bool right = false;
};

class Report {
 public:
  Report(const Options& options, std::string memory, double copy_rate);
  // Printed at once. Of each way the first line is of one rank, which the others' efficiency is of.
  void add(const Line& line);
  void write_json(int ranks, bool right) const;

 private:
  // Gpix/s: thousand million pixels that are computed, so that those of the border do not count.
  double rate(const Line& line) const;
  double efficiency(const Line& line) const;

  const Options& options_;
  std::string memory_;
  double copy_rate_;
  std::vector<Line> lines_;
};

}  // namespace pixels
