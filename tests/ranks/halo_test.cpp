// Halo exchanges: every cell of every field says where it comes from, and every byte of the memory is compared, for all numbers of
// dimensions, periodicities, orders in memory, ways to cut, and many widths. Run on 1, 2, 3, 4, 6 and 8 ranks.
#include "halo_combinations.hpp"

namespace {

using namespace rank_test;

TEST(Halo, in_one_dimension_every_cell_comes_from_its_neighbour) { every_combination(1, {}); }
TEST(Halo, in_two_dimensions_every_cell_comes_from_its_neighbour) { every_combination(2, {}); }
TEST(Halo, in_three_dimensions_every_cell_comes_from_its_neighbour) { every_combination(3, {}); }
TEST(Halo, in_four_dimensions_every_cell_comes_from_its_neighbour) {
  // There are 24 orders: each way to cut has three of them, with many ranks one.
  every_combination(4, {.orders = size() > 4 ? 1 : 3});
}

}  // namespace
