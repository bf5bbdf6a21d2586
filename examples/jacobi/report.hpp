// What the ways took, as a table and as a file.
//
// Who calls this : jacobi.cpp, on rank 0.
// Threads        : one.
// Ownership      : values.
// Errors         : std::runtime_error where the file cannot be written.
#pragma once

#include <string>
#include <vector>

#include "problem.hpp"

namespace jacobi {

struct Row {
  std::string exchange;
  Solved solved;
  std::string fault;    // empty: bits and norms were right
  std::string refusal;  // why nothing was solved
};

class Report {
 public:
  Report(const Problem& problem, std::string memory, int ranks)
      : problem_(problem), memory_(std::move(memory)), ranks_(ranks) {}
  void copies(double seconds, double seconds_alone);
  // Each is printed at once.
  void alone(const Solved& solved, const std::string& fault);
  void add(const Row& row);
  void write_json(bool right) const;

 private:
  double rate(const Solved& solved) const { return problem_.gigapixels(solved.seconds); }
  std::string norm_of(const Solved& solved) const;

  const Problem& problem_;
  std::string memory_;
  int ranks_;
  double copied_ = 0, copied_alone_ = 0;  // Gpix/s that copying the same cells allows
  Solved alone_;
  bool alone_is_right_ = false;
  std::vector<Row> rows_;
};

}  // namespace jacobi
