// The formula of the Himeno benchmark, once for processors and devices, in one order of operations: results are compared bit by bit.
//
// Who calls this : host.hpp, and the kernels (cuda_quad.cuh).
// Threads        : a pure function.
// Ownership      : none.
// Errors         : none.
#pragma once

#ifdef __CUDACC__
#define HIMENO_CODE __device__ __forceinline__
#else
#define HIMENO_CODE inline
#endif

namespace himeno {

// The coefficients of one cell.
template <class Real>
struct Cell {
  Real a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bnd, wrk1;
};

// What the cell's value is off by, of which 0.8 is added to it. p(di, dj, dk) is the value so many cells away.
template <class Real, class Values>
HIMENO_CODE Real change_of(const Cell<Real>& cell, const Values& p) {
  const Real s0 = cell.a0 * p(1, 0, 0) + cell.a1 * p(0, 1, 0) + cell.a2 * p(0, 0, 1) +
                  cell.b0 * (p(1, 1, 0) - p(1, -1, 0) - p(-1, 1, 0) + p(-1, -1, 0)) +
                  cell.b1 * (p(0, 1, 1) - p(0, -1, 1) - p(0, 1, -1) + p(0, -1, -1)) +
                  cell.b2 * (p(1, 0, 1) - p(-1, 0, 1) - p(1, 0, -1) + p(-1, 0, -1)) + cell.c0 * p(-1, 0, 0) +
                  cell.c1 * p(0, -1, 0) + cell.c2 * p(0, 0, -1) + cell.wrk1;
  return (s0 * cell.a3 - p(0, 0, 0)) * cell.bnd;
}
template <class Real>
HIMENO_CODE Real changed(Real value, Real change) {
  return value + Real{0.8F} * change;
}

}  // namespace himeno
