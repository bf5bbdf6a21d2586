// What a step does to one particle, on the processor and in kernels: the same operations in the same order, so that the bits are the same.
//
// Who calls this : host.cpp, kernels.cuh, store.hpp; nvcc with --expt-relaxed-constexpr and without contraction.
// Threads        : each particle for itself.
// Ownership      : none.
// Errors         : none.
#pragma once

namespace particles {

// Position in the box, from 0 up to 1 in each dimension; velocity, in boxes a step; which one it is, a number that a double holds exactly.
enum Word : int { position = 0, velocity = 3, id = 6, words = 7 };

constexpr double moved(double from, double by) {
  double to = from + by;
  // Less than nothing by so little that it becomes 1 goes on to 0.
  if (to < 0) to += 1;
  if (to >= 1) to -= 1;
  return to;
}

// Of equal parts of the box, so many in each dimension, the last of which runs fastest.
constexpr int part_at(const int* parts, const double* at) {
  int part = 0;
  for (int d = 0; d < 3; ++d) part = part * parts[d] + static_cast<int>(at[d] * parts[d]);
  return part;
}

}  // namespace particles
