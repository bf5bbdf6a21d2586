// The serial run that every result is compared with: the whole field on one processor, in double.
//
// Who calls this : main.cpp on rank 0, the tests.
// Threads        : pure functions.
// Ownership      : values.
// Errors         : none.
#pragma once

#include <vector>

#include "field.hpp"

namespace stencil {

// The field after `steps` steps.
//
// A wall has a halo too, `halo` points wide, which begins as 0 and evolves like the inside, all but its outermost ring, so
// results near walls depend on the width. Beyond that no cut into tiles can be seen: what a tile computes in the halo it
// shares with a neighbour is replaced before it could reach the inside. So the serial run is the field with a frame of
// `halo` points around it, whose outermost ring stays 0.
std::vector<double> serial_run(const Extent& field, const std::vector<double>& start, int halo, int steps,
                               const Weights& weights);

struct Comparison {
  double largest_error = 0;  // NaN if a point of the result is
  double tolerance = 0;
  bool within() const { return largest_error <= tolerance; }  // NaN is not
};

// Weights and start are not negative, so every rounding error grows and spreads no faster than the values themselves. A
// step rounds each point at most 7 times (six sums and products, and the weights), half a unit each: after n steps no
// point is off by more than 3.5 n epsilon times its value. The serial run has its own rounding.
Comparison compare(const std::vector<double>& result, const std::vector<double>& expected, int steps, Precision precision);

}  // namespace stencil
