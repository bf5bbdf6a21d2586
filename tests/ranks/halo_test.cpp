// Halo exchanges: every cell of every field says where it comes from, and every byte of the memory is compared, for all numbers of
// dimensions, periodicities, orders in memory, ways to cut, and many widths. Run on 1, 2, 4, 6 and 8 ranks.
#include <algorithm>
#include <functional>

#include "halo_support.hpp"

namespace {

using namespace rank_test;

// All ways to have so many ranks in so many dimensions.
std::vector<std::array<int, 4>> factorings(int ranks, int ndims) {
  std::vector<std::array<int, 4>> all;
  const std::function<void(int, int, std::array<int, 4>)> go = [&](int d, int left, std::array<int, 4> dims) {
    if (d + 1 == ndims) {
      dims[at(d)] = left;
      all.push_back(dims);
      return;
    }
    for (int extent = 1; extent <= left; ++extent)
      if (left % extent == 0) {
        dims[at(d)] = extent;
        go(d + 1, left / extent, dims);
      }
  };
  go(0, ranks, {1, 1, 1, 1});
  return all;
}

std::vector<std::array<int, 4>> permutations(int ndims) {
  std::vector<std::array<int, 4>> all;
  std::array<int, 4> order{0, 1, 2, 3};
  do all.push_back(order);
  while (std::next_permutation(order.begin(), order.begin() + ndims));
  return all;
}

// Asymmetric, one-sided, symmetric and no widths, in another mixture each time.
FieldShape shape_number(std::uint64_t number, int ndims, const std::array<int, 4>& order) {
  constexpr std::int64_t kElements[] = {8, 4, 1, 12, 2, 24, 16, 3};
  constexpr std::int64_t kMinus[] = {1, 2, 0, 3, 1, 0}, kPlus[] = {2, 1, 3, 0, 1, 0};
  FieldShape shape;
  shape.element = kElements[number % 8];
  shape.order = order;
  for (int d = 0; d < ndims; ++d) {
    const std::uint64_t which = number / (d == 0 ? 1 : d == 1 ? 7 : d == 2 ? 5 : 11) + static_cast<std::uint64_t>(d);
    shape.minus[at(d)] = kMinus[which % 6], shape.plus[at(d)] = kPlus[which % 6];
    shape.before[at(d)] = static_cast<std::int64_t>(which % 2), shape.behind[at(d)] = static_cast<std::int64_t>(which % 3);
  }
  return shape;
}

void every_combination(int ndims, const std::vector<std::array<int, 4>>& orders, bool in_turn = false) {
  std::uint64_t number = 0;
  const auto maps = permutations(ndims);
  for (const auto& dims : factorings(size(), ndims))
    for (int periods = 0; periods < 1 << ndims; ++periods)
      for (const auto& each : orders) {
        if (in_turn && &each != &orders.front()) continue;
        const auto& order = in_turn ? orders[number % orders.size()] : each;
        Cut cut;
        cut.ndims = ndims;
        cut.dims = dims;
        cut.cells = {3, 4, 3, 3};
        cut.process_map = maps[number % maps.size()];
        cut.reach = static_cast<int>(number % 3 == 2 ? 1 + number / 3 % static_cast<std::uint64_t>(ndims) : 0);
        for (int d = 0; d < ndims; ++d) cut.periods[at(d)] = periods >> d & 1;
        std::vector<FieldShape> shapes;
        for (std::uint64_t f = 0; f <= number % 3; ++f) shapes.push_back(shape_number(number * 3 + f, ndims, order));
        Wanted wanted;
        wanted.packing = static_cast<ist_halo_packing>(1 + number % 3);
        wanted.in_two = number % 2 == 1;
        if (number % 5 == 4) wanted.way = IST_HALO_ONE_SIDED;
        exchange(cut, shapes, wanted);
        if (testing::Test::HasFailure()) FAIL() << described(cut);
        ++number;
      }
}

TEST(Halo, in_one_dimension_every_cell_comes_from_its_neighbour) { every_combination(1, permutations(1)); }
TEST(Halo, in_two_dimensions_every_cell_comes_from_its_neighbour) { every_combination(2, permutations(2)); }
TEST(Halo, in_three_dimensions_every_cell_comes_from_its_neighbour) { every_combination(3, permutations(3)); }
TEST(Halo, in_four_dimensions_every_cell_comes_from_its_neighbour) {
  // With many ranks there are so many ways to cut that each has one order in turn.
  every_combination(4, {{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}}, size() > 4);
}

}  // namespace
