// Collision (BGK) of a stretch of cells, whose populations are pulled from where they come from. Populations are kept without their weights,
// the part that a fluid at rest has: single precision is spent on what changes. Each loop is over cells and has no branches, so that it
// becomes vector code, and no sum's order depends on where a stretch begins.
#ifndef LBM_COLLIDE_HPP
#define LBM_COLLIDE_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "lattice.hpp"

namespace lbm {

constexpr std::ptrdiff_t kStretch = 128;  // cells whose populations stay in the first cache

struct Moments {
  float density[kStretch];  // beyond 1
  float u[3][kStretch];     // momentum, then velocity in units of cs^2
  float square[kStretch];   // 1.5 u^2
};

template <int Step>
constexpr float add(float to, float what) {
  return Step > 0 ? to + what : Step < 0 ? to - what : to;
}

template <class Lattice, std::size_t Q>
void gather(const float* __restrict one, const float* __restrict other, Moments& __restrict of, std::ptrdiff_t count) {
  constexpr Velocity c = Lattice::kVelocities[Q];
  for (std::ptrdiff_t n = 0; n < count; ++n) {
    const float difference = one[n] - other[n];
    of.density[n] += one[n] + other[n];
    of.u[0][n] = add<c[0]>(of.u[0][n], difference);
    of.u[1][n] = add<c[1]>(of.u[1][n], difference);
    of.u[2][n] = add<c[2]>(of.u[2][n], difference);
  }
}

inline void to_velocity(Moments& __restrict of, std::ptrdiff_t count) {
  for (std::ptrdiff_t n = 0; n < count; ++n) {
    const float scale = 3.0F / (1.0F + of.density[n]);
    const float u0 = of.u[0][n] * scale, u1 = of.u[1][n] * scale, u2 = of.u[2][n] * scale;
    of.u[0][n] = u0, of.u[1][n] = u1, of.u[2][n] = u2;
    of.square[n] = (u0 * u0 + u1 * u1 + u2 * u2) * (1.0F / 6.0F);
  }
}

template <class Lattice, std::size_t Q>
void relax(const float* __restrict one, const float* __restrict other, float* __restrict to_one, float* __restrict to_other,
           const Moments& __restrict of, float omega, std::ptrdiff_t count) {
  constexpr Velocity c = Lattice::kVelocities[Q];
  constexpr auto weight = static_cast<float>(Lattice::weight(Q));
  for (std::ptrdiff_t n = 0; n < count; ++n) {
    const float along = add<c[2]>(add<c[1]>(add<c[0]>(0.0F, of.u[0][n]), of.u[1][n]), of.u[2][n]);
    const float density = of.density[n], rho = 1.0F + density;
    const float even = weight * (density + rho * (0.5F * along * along - of.square[n])), odd = weight * rho * along;
    to_one[n] = one[n] + omega * (even + odd - one[n]);
    to_other[n] = other[n] + omega * (even - odd - other[n]);
  }
}

template <class Lattice, std::size_t... Pair>
void collide(const std::array<const float*, Lattice::kCount>& from, const std::array<float*, Lattice::kCount>& to,
             float omega, std::ptrdiff_t count, std::index_sequence<Pair...> /*of opposites*/) {
  Moments of;
  constexpr auto weight = static_cast<float>(Lattice::weight(0));
  const float* __restrict const rest = from[0];
  float* __restrict const to_rest = to[0];
  std::copy(rest, rest + count, of.density);
  for (auto& u : of.u) std::fill(u, u + count, 0.0F);
  (gather<Lattice, 2 * Pair + 1>(from[2 * Pair + 1], from[2 * Pair + 2], of, count), ...);
  to_velocity(of, count);
  for (std::ptrdiff_t n = 0; n < count; ++n) {
    const float even = weight * (of.density[n] - (1.0F + of.density[n]) * of.square[n]);
    to_rest[n] = rest[n] + omega * (even - rest[n]);
  }
  (relax<Lattice, 2 * Pair + 1>(from[2 * Pair + 1], from[2 * Pair + 2], to[2 * Pair + 1], to[2 * Pair + 2], of, omega,
                                count),
   ...);
}

}  // namespace lbm
#endif
