// Ranks are put in an order in which those side by side have quick links: on invented machines.
#include "face/halo/halo_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace ist::halo {
namespace {

std::vector<double> machine(std::size_t ranks, const std::function<double(std::size_t, std::size_t)>& time) {
  std::vector<double> times(ranks * ranks, 0);
  for (std::size_t a = 0; a < ranks; ++a)
    for (std::size_t b = 0; b < ranks; ++b)
      if (a != b) times[a * ranks + b] = time(std::min(a, b), std::max(a, b));
  return times;
}

double cost(const std::vector<double>& times, std::size_t ranks, const std::vector<Edge>& edges,
            const std::vector<std::size_t>& order) {
  double sum = 0;
  for (const auto& [one, other] : edges) sum += times[order[one] * ranks + order[other]];
  return sum;
}

double least_cost(const std::vector<double>& times, std::size_t ranks, const std::vector<Edge>& edges) {
  std::vector<std::size_t> order(ranks);
  std::iota(order.begin(), order.end(), std::size_t{0});
  double least = cost(times, ranks, edges, order);
  while (std::next_permutation(order.begin(), order.end())) least = std::min(least, cost(times, ranks, edges, order));
  return least;
}

TEST(HaloOrder, edges_are_those_of_the_grid) {
  EXPECT_EQ(edges_of({3}, {0}), (std::vector<Edge>{{0, 1}, {1, 2}}));
  EXPECT_EQ(edges_of({3}, {1}), (std::vector<Edge>{{0, 1}, {1, 2}, {2, 0}}));
  EXPECT_EQ(edges_of({2}, {1}), (std::vector<Edge>{{0, 1}})) << "twice the same neighbour";
  EXPECT_EQ(edges_of({2, 3}, {0, 0}).size(), 3U + 4U);
  EXPECT_EQ(edges_of({1, 1}, {1, 1}).size(), 0U);
}

TEST(HaloOrder, of_two_islands_only_a_cut_is_slow) {
  // Even and odd ranks have quick links among themselves.
  const auto times = machine(8, [](std::size_t a, std::size_t b) { return (a + b) % 2 == 0 ? 1.0 : 10.0; });
  const auto edges = edges_of({2, 4}, {0, 0});
  const auto order = best_order(times, 8, edges);
  auto sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t r = 0; r < 8; ++r) EXPECT_EQ(sorted[r], r) << "each rank once";
  EXPECT_EQ(cost(times, 8, edges, order), least_cost(times, 8, edges));
}

TEST(HaloOrder, ranks_stay_where_nothing_is_gained_or_little) {
  const std::vector<std::size_t> plain{0, 1, 2, 3, 4, 5};
  const auto edges = edges_of({6}, {0});
  EXPECT_EQ(best_order(machine(6, [](std::size_t, std::size_t) { return 3.0; }), 6, edges), plain);
  EXPECT_EQ(best_order(machine(6, [](std::size_t a, std::size_t b) { return (a * b) % 3 == 0 ? 3.0 : 2.9; }), 6, edges),
            plain);
  EXPECT_NE(best_order(machine(6, [](std::size_t a, std::size_t b) { return b - a == 2 ? 1.0 : 3.0; }), 6, edges), plain);
}

TEST(HaloOrder, a_rank_that_is_far_from_all_is_left_out_of_a_smaller_grid) {
  const auto times = machine(5, [](std::size_t a, std::size_t) { return a == 0 ? 50.0 : 1.0; });
  EXPECT_EQ(best_order(times, 5, edges_of({2, 2}, {1, 1}))[4], 0U);
}

}  // namespace
}  // namespace ist::halo
