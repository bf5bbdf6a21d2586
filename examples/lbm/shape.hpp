// Where the cells of a rank's part lie in memory that kernels work on, and where a cell's populations come from and go to. Row by row, with a
// layer beyond a side only where the box is cut there: what is periodic is looked up at the other side, and walls need no memory. The same on
// the host, so that every index is tested without a device.
//
// Who calls this : kernels.cu; cut.hpp, which fills a Shape in; the tests.
// Threads        : values that never change.
// Ownership      : none.
// Errors         : none.
#ifndef LBM_SHAPE_HPP
#define LBM_SHAPE_HPP

#include <cstddef>
#include <cstdint>
#include <utility>

#include "lattice.hpp"

namespace lbm {

enum class Beyond : int { self, wall, neighbour };  // what lies beyond a side of the part

// Cells count from 0 in each dimension; the neighbours' are -1 and cells[d]. Places and strides count elements, within one population.
struct Shape {
  int cells[3];
  Beyond beyond[3][2];  // at the near and at the far side
  int margin[3];        // elements ahead of cell 0, of the dimension
  int lengths[3];       // of the memory; the same on all ranks, so that a place here means the same cell everywhere
  int strides[3];
  int size;  // of one population
  LBM_BOTH int place(int z, int y, int x) const {
    return (z + margin[0]) * strides[0] + (y + margin[1]) * strides[1] + x + margin[2];
  }
};

struct Box {
  int first[3], count[3];
  LBM_BOTH int cells() const { return count[0] * count[1] * count[2]; }
};

// One cell: how far it is to the neighbours from which it pulls.
struct Place {
  int at;
  int low[3], high[3];  // to the one before it, and to the one behind it
  unsigned walls;       // bit 2 d: there is a wall before it in dimension d; 2 d + 1: behind it
  unsigned ends;        // the same of neighbours
};

LBM_BOTH inline Place look(const Shape& shape, int z, int y, int x) {
  const int cell[3] = {z, y, x};
  Place place{shape.place(z, y, x), {}, {}, 0, 0};
  for (int d = 0; d < 3; ++d) {
    const int stride = shape.strides[d], around = (shape.cells[d] - 1) * stride;
    const bool is_first = cell[d] == 0, is_last = cell[d] == shape.cells[d] - 1;
    place.low[d] = is_first && shape.beyond[d][0] == Beyond::self ? around : -stride;
    place.high[d] = is_last && shape.beyond[d][1] == Beyond::self ? -around : stride;
    const unsigned near = is_first ? 1U << (2 * d) : 0, far = is_last ? 2U << (2 * d) : 0;
    place.walls |= (shape.beyond[d][0] == Beyond::wall ? near : 0) | (shape.beyond[d][1] == Beyond::wall ? far : 0);
    place.ends |= (shape.beyond[d][0] == Beyond::neighbour ? near : 0) | (shape.beyond[d][1] == Beyond::neighbour ? far : 0);
  }
  return place;
}

// Bits as in Place: the sides over which it leaves, of those dimensions that `among` has a bit for.
LBM_BOTH constexpr unsigned leaves_over(const Velocity& velocity, unsigned among = 7) {
  unsigned bits = 0;
  for (unsigned d = 0; d < 3; ++d)
    if ((among >> d & 1U) != 0 && velocity[d] != 0) bits |= (velocity[d] > 0 ? 2U : 1U) << (2 * d);
  return bits;
}
LBM_BOTH constexpr unsigned comes_over(const Velocity& velocity) {
  return leaves_over({-velocity[0], -velocity[1], -velocity[2]});
}

// The 27 directions; the opposite one is 26 less it.
constexpr int kDirections = 27;
LBM_BOTH constexpr int direction(int z, int y, int x) { return (z + 1) * 9 + (y + 1) * 3 + x + 1; }
LBM_BOTH constexpr int direction(const Velocity& velocity, unsigned among = 7) {
  return direction((among & 1U) != 0 ? velocity[0] : 0, (among & 2U) != 0 ? velocity[1] : 0,
                   (among & 4U) != 0 ? velocity[2] : 0);
}

// The wall at the far side of dimension 1 moves along dimension 2.
constexpr unsigned kLidBit = 2U << 2U;

template <int Step>
LBM_BOTH int step_back(const Place& place, int d) {
  return Step > 0 ? place.low[d] : Step < 0 ? place.high[d] : 0;
}
// How populations are read and written. kAgain: neighbouring threads read the same 32 bytes, too.
struct PlainMemory {
  template <bool kAgain>
  LBM_BOTH static float read(const float* at) {
    return *at;
  }
  LBM_BOTH static void write(float* at, float value) { *at = value; }
};

// Half-way bounce-back at walls; what would come from two of them comes from the lid.
template <class Lattice, bool kWalls, class Memory, std::size_t Q>
LBM_BOTH float pull(const float* from, int size, const Place& place, float lid) {
  constexpr Velocity c = Lattice::kVelocities[Q];
  const int at = place.at + step_back<c[0]>(place, 0) + step_back<c[1]>(place, 1) + step_back<c[2]>(place, 2);
  if constexpr (kWalls) {
    constexpr unsigned over = comes_over(c);
    if ((place.walls & over) != 0) {
      constexpr auto weight = static_cast<float>(Lattice::weight(Q));
      const float pushed = (place.walls & over & kLidBit) != 0 ? 6 * weight * static_cast<float>(c[2]) * lid : 0.0F;
      return Memory::template read<true>(from + static_cast<std::size_t>(size) * opposite(Q) +
                                         static_cast<std::size_t>(place.at)) +
             pushed;
    }
  }
  return Memory::template read<c[2] != 0>(from + static_cast<std::size_t>(size) * Q + static_cast<std::size_t>(at));
}

// Where a cell's populations go in the neighbours' halos, by the direction in which the neighbour lies: what is stored at [place] there is read
// by the neighbour. Null where there is none.
struct Crossing {
  float* to[kDirections];
};

template <class Lattice, std::size_t Q, unsigned kAmong>
LBM_BOTH void cross_one(const Crossing& crossing, int size, const Place& place, float value) {
  constexpr Velocity c = Lattice::kVelocities[Q];
  constexpr unsigned moving = (c[0] != 0 ? 1U : 0U) | (c[1] != 0 ? 2U : 0U) | (c[2] != 0 ? 4U : 0U);
  // Each set of dimensions once: those along which it stands still are no reason.
  if constexpr ((kAmong & ~moving) == 0) {
    constexpr unsigned over = leaves_over(c, kAmong);
    if ((place.ends & over) == over)
      crossing.to[direction(c, kAmong)][static_cast<std::ptrdiff_t>(size) * static_cast<std::ptrdiff_t>(Q) + place.at] =
          value;
  }
}
// What leaves the part, to each neighbour that reads it: at an edge up to three.
template <class Lattice, std::size_t Q, unsigned... kAmong>
LBM_BOTH void cross(const Crossing& crossing, int size, const Place& place, float value,
                    std::integer_sequence<unsigned, kAmong...> /*sets*/) {
  (cross_one<Lattice, Q, kAmong + 1>(crossing, size, place, value), ...);
}

// What says which bits a population has at a cell of the whole box. Sums of it, of cells in any order, are the same if and, but for one chance
// in 2^64, only if all the bits are.
LBM_BOTH inline std::uint64_t print_of(std::uint32_t bits, std::uint64_t cell, std::uint64_t population) {
  std::uint64_t word = (cell * 32 + population) * 0x9E3779B97F4A7C15ULL ^ static_cast<std::uint64_t>(bits) << 17U;
  word = (word ^ word >> 30U) * 0xBF58476D1CE4E5B9ULL;
  word = (word ^ word >> 27U) * 0x94D049BB133111EBULL;
  return word ^ word >> 31U;
}

}  // namespace lbm
#endif
