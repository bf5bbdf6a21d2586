// Halo exchanges: every cell of every field says where it comes from, and every byte of the memory is compared, for all numbers of
// dimensions, periodicities, orders in memory, ways to cut, and many widths. Run on 1, 2, 4, 6 and 8 ranks.
#include "halo_combinations.hpp"

namespace {

using namespace rank_test;

TEST(Halo, in_one_dimension_every_cell_comes_from_its_neighbour) { every_combination(1, {permutations(1)}); }
TEST(Halo, in_two_dimensions_every_cell_comes_from_its_neighbour) { every_combination(2, {permutations(2)}); }
TEST(Halo, in_three_dimensions_every_cell_comes_from_its_neighbour) { every_combination(3, {permutations(3)}); }
TEST(Halo, in_four_dimensions_every_cell_comes_from_its_neighbour) {
  // With many ranks there are so many ways to cut that each has one order in turn.
  every_combination(4, {{{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}}, size() > 4});
}

}  // namespace
