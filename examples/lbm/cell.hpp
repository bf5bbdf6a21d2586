// The step of one cell, in registers: pulled, collided (BGK), stored. The arithmetic, and its order, are collide.hpp's, so that the bits are
// the same; compile without contraction.
//
// Who calls this : kernels.cu; the tests.
// Threads        : each cell for itself.
// Ownership      : none.
// Errors         : none.
#ifndef LBM_CELL_HPP
#define LBM_CELL_HPP

#include "shape.hpp"

namespace lbm {

template <class Lattice>
struct Cell {
  float f[Lattice::kCount];
};

template <int Step>
LBM_BOTH constexpr float added(float to, float what) {
  return Step > 0 ? to + what : Step < 0 ? to - what : to;
}

struct CellMoments {
  float density, u[3], square;
};

template <class Lattice, std::size_t Q>
LBM_BOTH void gather(const Cell<Lattice>& cell, CellMoments& of) {
  constexpr Velocity c = Lattice::kVelocities[Q];
  const float one = cell.f[Q], other = cell.f[Q + 1], difference = one - other;
  of.density += one + other;
  of.u[0] = added<c[0]>(of.u[0], difference);
  of.u[1] = added<c[1]>(of.u[1], difference);
  of.u[2] = added<c[2]>(of.u[2], difference);
}

template <class Lattice, std::size_t Q>
LBM_BOTH void relax(Cell<Lattice>& cell, const CellMoments& of, float omega) {
  constexpr Velocity c = Lattice::kVelocities[Q];
  constexpr auto weight = static_cast<float>(Lattice::weight(Q));
  const float along = added<c[2]>(added<c[1]>(added<c[0]>(0.0F, of.u[0]), of.u[1]), of.u[2]);
  const float rho = 1.0F + of.density, one = cell.f[Q], other = cell.f[Q + 1];
  const float even = weight * (of.density + rho * (0.5F * along * along - of.square)), odd = weight * rho * along;
  cell.f[Q] = one + omega * (even + odd - one);
  cell.f[Q + 1] = other + omega * (even - odd - other);
}

template <class Lattice, std::size_t... Pair>
LBM_BOTH void collide(Cell<Lattice>& cell, float omega, std::index_sequence<Pair...> /*of opposites*/) {
  CellMoments of{cell.f[0], {0, 0, 0}, 0};
  (gather<Lattice, 2 * Pair + 1>(cell, of), ...);
  const float scale = 3.0F / (1.0F + of.density);
  const float u0 = of.u[0] * scale, u1 = of.u[1] * scale, u2 = of.u[2] * scale;
  of.u[0] = u0, of.u[1] = u1, of.u[2] = u2;
  of.square = (u0 * u0 + u1 * u1 + u2 * u2) * (1.0F / 6.0F);
  constexpr auto weight = static_cast<float>(Lattice::weight(0));
  const float even = weight * (of.density - (1.0F + of.density) * of.square);
  cell.f[0] = cell.f[0] + omega * (even - cell.f[0]);
  (relax<Lattice, 2 * Pair + 1>(cell, of, omega), ...);
}

template <class Lattice, bool kWalls, class Memory, std::size_t... Q>
LBM_BOTH void pull(Cell<Lattice>& cell, const float* from, int size, const Place& place, float lid,
                   std::index_sequence<Q...> /*all*/) {
  ((cell.f[Q] = pull<Lattice, kWalls, Memory, Q>(from, size, place, lid)), ...);
}

template <class Lattice, bool kWalls, class Memory>
LBM_BOTH Cell<Lattice> stepped(const float* from, const Shape& shape, const Place& place, float omega, float lid) {
  Cell<Lattice> cell;
  pull<Lattice, kWalls, Memory>(cell, from, shape.size, place, lid, std::make_index_sequence<Lattice::kCount>{});
  collide(cell, omega, std::make_index_sequence<Lattice::kCount / 2>{});
  return cell;
}

template <class Memory, class Lattice, std::size_t... Q>
LBM_BOTH void store(const Cell<Lattice>& cell, float* to, const Shape& shape, const Place& place,
                    std::index_sequence<Q...> /*all*/) {
  (Memory::write(to + static_cast<std::size_t>(shape.size) * Q + static_cast<std::size_t>(place.at), cell.f[Q]), ...);
}
template <class Memory, class Lattice>
LBM_BOTH void store(const Cell<Lattice>& cell, float* to, const Shape& shape, const Place& place) {
  store<Memory>(cell, to, shape, place, std::make_index_sequence<Lattice::kCount>{});
}

template <class Lattice, std::size_t... Q>
LBM_BOTH void cross(const Cell<Lattice>& cell, const Crossing& crossing, const Shape& shape, const Place& place,
                    std::index_sequence<Q...> /*all*/) {
  (cross<Lattice, Q>(crossing, shape.size, place, cell.f[Q], std::make_integer_sequence<unsigned, 7>{}), ...);
}
template <class Lattice>
LBM_BOTH void cross(const Cell<Lattice>& cell, const Crossing& crossing, const Shape& shape, const Place& place) {
  cross(cell, crossing, shape, place, std::make_index_sequence<Lattice::kCount>{});
}

}  // namespace lbm
#endif
