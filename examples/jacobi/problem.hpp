// What is to be solved, and what a solution has to say.
//
// Who calls this : all of jacobi.
// Threads        : values.
// Ownership      : values.
// Errors         : none.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>

namespace jacobi {

struct Problem {
  std::int64_t nx = 1024, ny = 1024;  // the outermost rows are the neighbours' on the other side
  int iterations = 100, nccheck = 1;
  double tolerance = 1e-8;
  int compare = 0;  // iterations that are compared with the serial loop; 0: all
  std::string device = "host", exchange = "all", spoil = "no", json;
  int batch = 0,
      height = 0;  // of a device's kernels: rows that a thread loads at a time, and rows of a tile; 0: the quickest

  std::int64_t cut_rows() const { return ny - 2; }
  float factor() const { return spoil == "factor" ? 0.26F : 0.25F; }
  double start(std::int64_t x, std::int64_t y) const {
    if (x > 0 && x < nx - 1) return 0;
    return std::sin(2 * std::numbers::pi * static_cast<double>(y) / static_cast<double>(ny - 1));
  }
  // In the first iteration two columns change, by a quarter of the sine beside them, whose squares are (ny - 1) / 2 in sum.
  double first_norm() const { return 0.25 * std::sqrt(static_cast<double>(ny - 1)); }
  // Of cells that are updated.
  double gigapixels(double seconds) const {
    return static_cast<double>(nx - 2) * static_cast<double>(cut_rows()) / seconds / 1e9;
  }
  bool compares_all() const { return compare == 0 || compare >= iterations; }
};

struct Solved {
  int iterations = 0;
  float first_norm = 0, norm = 0;
  double seconds = 0;  // an iteration's, of the slowest rank
};

}  // namespace jacobi
