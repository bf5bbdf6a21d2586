// How a cell begins, on the host and in kernels, by the same arithmetic.
#ifndef LBM_BEGIN_HPP
#define LBM_BEGIN_HPP

#include <array>
#include <cstddef>
#include <utility>

#include "lattice.hpp"

namespace lbm {

struct State {
  double density = 0;                          // beyond 1
  std::array<double, 3> velocity{}, strain{};  // strain: of each velocity along its own dimension; the others are 0
};

// Vortices in the plane of dimensions 1 (y) and 2 (x). Without a speed: a fluid at rest.
struct Vortices {
  double speed = 0, wave = 0;
};
// Of one place along a dimension.
struct Angle {
  double sine = 0, cosine = 0, twice = 0;  // twice: the cosine of twice the angle
};

// `across`: the sine of a wave along dimension 0, a thousandth as strong.
LBM_BOTH inline State vortex(const Vortices& of, const Angle& x, const Angle& y, double across) {
  State made;
  made.density = -0.75 * of.speed * of.speed * (x.twice + y.twice);
  made.velocity = {0, of.speed * x.sine * y.cosine, -of.speed * x.cosine * y.sine + 1e-3 * of.speed * across};
  const double strain = of.wave * of.speed * x.sine * y.sine;
  made.strain = {0, -strain, strain};
  return made;
}

// Equilibrium, and what the strain adds to it, after the collision.
template <class Lattice, std::size_t Q>
LBM_BOTH float begun(const State& state, double tau) {
  constexpr Velocity velocity = Lattice::kVelocities[Q];
  constexpr double weight = Lattice::weight(Q);
  double along = 0, square = 0, strain = 0;
  for (std::size_t d = 0; d < 3; ++d) {
    const double c = velocity[d];
    along += c * state.velocity[d];
    square += state.velocity[d] * state.velocity[d];
    strain += c * c * state.strain[d];
  }
  const double rho = 1 + state.density;
  return static_cast<float>(
      weight * (state.density + rho * (3 * along + 4.5 * along * along - 1.5 * square) - 3 * rho * (tau - 1) * strain));
}

// put(q, value) of each population.
template <class Lattice, class Put, std::size_t... Q>
LBM_BOTH void begin_cell(const State& state, double tau, const Put& put, std::index_sequence<Q...> /*all*/) {
  (put(Q, begun<Lattice, Q>(state, tau)), ...);
}
template <class Lattice, class Put>
LBM_BOTH void begin_cell(const State& state, double tau, const Put& put) {
  begin_cell<Lattice>(state, tau, put, std::make_index_sequence<Lattice::kCount>{});
}

}  // namespace lbm
#endif
