// All combinations of how ranks and cells of a halo exchange may be laid: ways to cut, periodicities, orders in memory, and widths in another
// mixture each time.
//
// Who calls this : halo_test.cpp, of host memory; halo_fields_test.cpp, of devices' memory.
// Threads        : one.
// Ownership      : none.
// Errors         : fail the test.
#pragma once

#include <algorithm>
#include <functional>

#include "halo_support.hpp"

namespace rank_test {

// All ways to have so many ranks in so many dimensions.
inline std::vector<std::array<int, 4>> factorings(int ranks, int ndims) {
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

inline std::vector<std::array<int, 4>> permutations(int ndims) {
  std::vector<std::array<int, 4>> all;
  std::array<int, 4> order{0, 1, 2, 3};
  do all.push_back(order);
  while (std::next_permutation(order.begin(), order.begin() + ndims));
  return all;
}

// Asymmetric, one-sided, symmetric and no widths, in another mixture each time.
inline FieldShape shape_number(std::uint64_t number, int ndims, const std::array<int, 4>& order) {
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

// Which of them, and what else is given in turn: one order of memory for each cut and periodicity, or all of them.
struct Combinations {
  std::vector<std::array<int, 4>> orders;
  bool in_turn = false;
  std::vector<ist_kind> kinds{IST_KIND_HOST};  // of all fields of an exchange; another one each time
  bool one_sided = true;
  int steps = 3;
};

inline Wanted wanted_of(const Combinations& combinations, std::uint64_t number) {
  Wanted wanted;
  wanted.packing = static_cast<ist_halo_packing>(1 + number % 3);
  wanted.in_two = number % 2 == 1;
  wanted.steps = combinations.steps;
  wanted.kinds = {combinations.kinds[number % combinations.kinds.size()]};
  if (combinations.one_sided && number % 5 == 4) wanted.way = IST_HALO_ONE_SIDED;
  return wanted;
}

inline void every_combination(int ndims, const Combinations& combinations) {
  std::uint64_t number = 0;
  const auto maps = permutations(ndims);
  for (const auto& dims : factorings(size(), ndims))
    for (int periods = 0; periods < 1 << ndims; ++periods)
      for (const auto& each : combinations.orders) {
        if (combinations.in_turn && &each != &combinations.orders.front()) continue;
        const auto& order = combinations.in_turn ? combinations.orders[number % combinations.orders.size()] : each;
        Cut cut;
        cut.ndims = ndims;
        cut.dims = dims;
        cut.cells = {3, 4, 3, 3};
        cut.process_map = maps[number % maps.size()];
        cut.reach = static_cast<int>(number % 3 == 2 ? 1 + number / 3 % static_cast<std::uint64_t>(ndims) : 0);
        for (int d = 0; d < ndims; ++d) cut.periods[at(d)] = periods >> d & 1;
        std::vector<FieldShape> shapes;
        for (std::uint64_t f = 0; f <= number % 3; ++f) shapes.push_back(shape_number(number * 3 + f, ndims, order));
        exchange(cut, shapes, wanted_of(combinations, number));
        if (testing::Test::HasFailure()) FAIL() << described(cut);
        ++number;
      }
}

// Of devices' memory. Quickly: dimensions up to three, two on many ranks, with all orders in turn; with `all`: of four, too, and every order.
inline void every_combination_of(ist_kind kind, bool all) {
  Combinations combinations;
  combinations.kinds = {kind};
  combinations.one_sided = kind != IST_KIND_OPENCL;
  combinations.steps = all ? 3 : 1;
  for (int ndims = 1; ndims <= (all ? 4 : size() > 4 ? 2 : 3) && !testing::Test::HasFailure(); ++ndims) {
    combinations.orders = permutations(ndims);
    combinations.in_turn = !all || ndims == 4;
    every_combination(ndims, combinations);
  }
}

}  // namespace rank_test
