// Neighbours as kernels know them: places and strides in a field that lies alike at all ranks.
#include "face/halo/halo_pattern.hpp"

namespace ist::halo {
namespace {

struct Strides {
  PerDimension<std::int64_t> of{};        // elements, by dimension
  PerDimension<std::size_t> dimension{};  // by place, the largest stride first
};

Strides strides_of(const Shape& shape, std::size_t dimensions) {
  Strides strides;
  for (std::size_t d = 0; d < dimensions; ++d) strides.dimension[static_cast<std::size_t>(shape.order[d])] = d;
  std::int64_t stride = 1;
  for (std::size_t place = dimensions; place-- > 0;) {
    const std::size_t d = strides.dimension[place];
    strides.of[d] = stride;
    stride *= shape.ranges[d].total_length;
  }
  return strides;
}

std::int64_t first_of(const Box& box, const Strides& strides) {
  std::int64_t first = 0;
  for (std::size_t d = 0; d < kMost; ++d) first += box.first[d] * strides.of[d];
  return first;
}

// Status what(int rank, int number), for each neighbour that gets something or sends it.
template <class What>
Status for_each_side(const Grid& grid, const Shape& shape, int reach, const What& what) {
  const std::size_t dimensions = grid.dimensions;
  for (int number = 0; number < directions(dimensions); ++number) {
    const Direction step = direction(number, dimensions);
    if (!in_reach(step, reach)) continue;
    const int rank = neighbour(grid, step);
    if (rank == IST_PROC_NULL) continue;
    if (sent(shape, step, dimensions).cells() + received(shape, step, dimensions).cells() == 0) continue;
    IST_TRY(what(rank, number));
  }
  return {};
}

}  // namespace

Result<ist_halo_sides> sides_of(const Grid& grid, const Shape& shape, int reach) {
  const std::size_t dimensions = grid.dimensions;
  const Strides strides = strides_of(shape, dimensions);
  ist_halo_sides sides{};
  sides.flags = directions(dimensions);
  IST_TRY(for_each_side(grid, shape, reach, [&](int rank, int number) -> Status {
    if (sides.count == IST_HALO_MOST_SIDES)
      return {IST_ERR_ARGUMENT, "there are more than " + std::to_string(IST_HALO_MOST_SIDES) +
                                    " neighbours; ist_halo_all_sides_of has room for all of them"};
    const Direction step = direction(number, dimensions), back = direction(opposite(number, dimensions), dimensions);
    const Box out = sent(shape, step, dimensions);
    ist_halo_side& side = sides.side[sides.count++];
    side.pe = rank, side.number = number, side.opposite = opposite(number, dimensions);
    side.cells = out.cells();
    side.from = first_of(out, strides);
    side.to = first_of(received(shape, back, dimensions), strides);
    for (std::int64_t& count : side.count) count = 1;
    for (std::size_t place = 0; place < dimensions; ++place) {
      const std::size_t d = strides.dimension[place], at = place + kMost - dimensions;
      side.count[at] = out.count[d], side.stride[at] = strides.of[d];
    }
    return {};
  }));
  return sides;
}

Result<ist_halo_all_sides> all_sides_of(const Grid& grid, const Shape& shape, int reach) {
  const std::size_t dimensions = grid.dimensions;
  const Strides strides = strides_of(shape, dimensions);
  ist_halo_all_sides sides{};
  sides.flags = directions(dimensions);
  for (std::size_t at = 0; at < kMost; ++at) {
    sides.digit[at] = 1;
    for (std::int64_t& cells : sides.cells[at]) cells = 1;
  }
  for (std::size_t place = 0; place < dimensions; ++place) {
    const std::size_t d = strides.dimension[place], at = place + kMost - dimensions;
    sides.stride[at] = strides.of[d];
    sides.digit[at] = directions(dimensions - 1 - d);
    for (int step = -1; step <= 1; ++step) {
      Direction along{}, back{};
      along[d] = step, back[d] = -step;
      const Box out = sent(shape, along, dimensions), in = received(shape, back, dimensions);
      const auto column = static_cast<std::size_t>(step) + 1;
      sides.cells[at][column] = out.count[d];
      sides.from[at][column] = out.first[d] * strides.of[d];
      sides.to[at][column] = in.first[d] * strides.of[d];
    }
  }
  IST_TRY(for_each_side(grid, shape, reach, [&](int rank, int number) -> Status {
    sides.pe[sides.count] = rank;
    sides.number[sides.count++] = static_cast<std::uint8_t>(number);
    return {};
  }));
  return sides;
}

}  // namespace ist::halo
