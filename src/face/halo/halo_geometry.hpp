// Which cells go where: ranges, directions and boxes, in the user's order of dimensions.
//
// Who calls this : halo_grid.cpp, halo_pattern.cpp, halo_agreement.cpp.
// Threads        : pure functions.
// Ownership      : values.
// Errors         : IST_ERR_ARGUMENT with dimension, value and what would do.
#pragma once

#include <isthmus/halo.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.hpp"
#include "layout/layout.hpp"

namespace ist::halo {

inline constexpr std::size_t kMost = IST_HALO_MOST_DIMENSIONS;
template <class T>
using PerDimension = std::array<T, kMost>;

// What a field is, without where it lies.
struct Shape {
  std::int64_t element = 0;
  PerDimension<ist_halo_range> ranges{};
  PerDimension<int> order{0, 1, 2, 3};  // the layout map
  std::int64_t elements = -1;           // of which cells are listed; -1: nobody says
};
bool same(const Shape& one, const Shape& other, std::size_t dimensions);

// -1, 0 or 1 in each dimension; directions are numbered with the last dimension running fastest, and the opposite of the first is the last.
using Direction = PerDimension<int>;
int directions(std::size_t dimensions);
Direction direction(int number, std::size_t dimensions);
inline int opposite(int number, std::size_t dimensions) { return directions(dimensions) - 1 - number; }
// In how many dimensions it steps.
int steps(const Direction& direction);
// `reach`: in how many dimensions at once a neighbour may lie; 0: in all.
inline bool in_reach(const Direction& direction, int reach) {
  return steps(direction) > 0 && (reach == 0 || steps(direction) <= reach);
}

struct Box {
  PerDimension<std::int64_t> first{};
  PerDimension<std::int64_t> count{1, 1, 1, 1};
  std::int64_t cells() const { return count[0] * count[1] * count[2] * count[3]; }
};
Box sent(const Shape& shape, const Direction& to, std::size_t dimensions);
Box received(const Shape& shape, const Direction& from, std::size_t dimensions);

// The inner cells in those whose stencil stays among them and boxes with the rest; at most two for each dimension.
Status split(std::span<const ist_halo_range> ranges, ist_halo_box& interior, ist_halo_box* border, int& boxes);

// Bytes from the beginning of the field, in the order in which they lie; null: none.
Result<SharedLayout> layout_of(const Shape& shape, const Box& box, std::size_t dimensions);

// Ranges and layout map as the user gave them.
Result<Shape> shape_of(const ist_halo_field& field, std::size_t dimensions);
// `map` is null, or a permutation of the first numbers, which `name` is called.
Result<PerDimension<int>> permutation(const char* name, const int* map, std::size_t dimensions);

}  // namespace ist::halo
