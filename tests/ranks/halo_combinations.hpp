// All combinations of how ranks and cells of a halo exchange may be laid: ways to cut, periodicities and orders in memory. What else is chosen,
// such as packing, process map and number of fields, is another mixture each time, in which every two choices meet.
//
// Who calls this : halo_test.cpp, of host memory; halo_fields_test.cpp, of devices' memory.
// Threads        : one.
// Ownership      : none.
// Errors         : fail the test.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>

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

// splitmix64: what is chosen by one of these numbers says nothing about what is chosen by another.
inline std::uint64_t mixed(std::uint64_t number) {
  number += 0x9e3779b97f4a7c15ULL;
  number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9ULL;
  number = (number ^ number >> 27) * 0x94d049bb133111ebULL;
  return number ^ number >> 31;
}

// What is chosen for an exchange beside its cut and periodicity.
enum Choice { kOrder, kProcessMap, kPacking, kFields, kInTwo, kReach, kWay, kChoices };
constexpr const char* kChoiceNames[] = {"order",          "process map", "packing", "number of fields",
                                        "start and wait", "reach",       "way"};
using Choices = std::array<std::size_t, kChoices>;

// Which two choices have met so far, and each by itself.
class Pairs {
 public:
  explicit Pairs(const Choices& levels) : levels_(levels) {
    for_each([&](std::size_t a, std::size_t b) { met_[a][b].resize(levels_[a] * levels_[b]); });
  }
  std::size_t new_in(const Choices& one) const {
    std::size_t found = 0;
    for_each([&](std::size_t a, std::size_t b) { found += met_[a][b][one[a] * levels_[b] + one[b]] ? 0 : 1; });
    return found;
  }
  void add(const Choices& one) {
    for_each([&](std::size_t a, std::size_t b) { met_[a][b][one[a] * levels_[b] + one[b]] = true; });
    ++exchanges_;
  }
  // None is missing of those for which there were exchanges enough.
  void expect_all() const {
    for_each([&](std::size_t a, std::size_t b) {
      const std::size_t all = a == b ? levels_[a] : levels_[a] * levels_[b];
      const auto met = static_cast<std::size_t>(std::count(met_[a][b].begin(), met_[a][b].end(), true));
      const std::string what = std::string{kChoiceNames[a]} + " and " + kChoiceNames[b];
      EXPECT_TRUE(met == all || exchanges_ < (b == kWay ? kEnoughOneSided : kEnough) * all)
          << what << ": " << met << " of " << all << " pairs in " << exchanges_ << " exchanges";
    });
  }

 private:
  static constexpr std::size_t kEnough = 3, kEnoughOneSided = 8;
  template <class Do>
  static void for_each(const Do& of_pair) {
    for (std::size_t a = 0; a < kChoices; ++a)
      for (std::size_t b = a; b < kChoices; ++b) of_pair(a, b);
  }
  Choices levels_;
  std::array<std::array<std::vector<bool>, kChoices>, kChoices> met_;
  std::size_t exchanges_ = 0;
};

// Asymmetric, one-sided, symmetric and no widths, in another mixture each time.
inline FieldShape shape_number(std::uint64_t number, int ndims, const std::array<int, 4>& order) {
  constexpr std::int64_t kElements[] = {8, 4, 1, 12, 2, 24, 16, 3};
  constexpr std::int64_t kMinus[] = {1, 2, 0, 3, 1, 0}, kPlus[] = {2, 1, 3, 0, 1, 0};
  FieldShape shape;
  shape.element = kElements[mixed(number) % 8];
  shape.order = order;
  for (int d = 0; d < ndims; ++d) {
    const std::uint64_t which = mixed(number * 4 + static_cast<std::uint64_t>(d));
    shape.minus[at(d)] = kMinus[which % 6], shape.plus[at(d)] = kPlus[which % 6];
    shape.before[at(d)] = static_cast<std::int64_t>(which / 6 % 2),
    shape.behind[at(d)] = static_cast<std::int64_t>(which / 12 % 3);
  }
  return shape;
}

struct Combinations {
  int orders = 0;  // for each cut and periodicity: so many of all orders, those that are missing first; 0: every one
  ist_kind kind = IST_KIND_HOST;
  bool one_sided = true;
  int steps = 3;
};

// Of some that are drawn, the one in which most choices meet for the first time; with this order, or with any. Every fifth is one-sided, which
// takes longer, and of those that are drawn a third has less than the whole reach, but for some in which anything is as likely.
inline Choices next_choices(std::uint64_t number, const Choices& levels, const Pairs& pairs,
                            std::optional<std::size_t> order) {
  constexpr std::uint64_t kDraws = 64;
  Choices best{};
  for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
    const std::uint64_t drawn = (at(size()) << 32) + number * kDraws + draw;
    Choices one{};
    for (std::size_t c = 0; c < kChoices; ++c) one[c] = mixed(drawn * 16 + c) % levels[c];
    if (draw % 4 != 3 && mixed(drawn * 16 + kChoices) % 3 != 2) one[kReach] = 0;
    one[kWay] = number % 5 == 4 ? levels[kWay] - 1 : 0;
    if (order) one[kOrder] = *order;
    if (draw == 0 || pairs.new_in(one) > pairs.new_in(best)) best = one;
  }
  return best;
}

inline void exchange_as_chosen(Cut cut, const Choices& chosen, std::uint64_t number, const Combinations& combinations) {
  const auto permuted = permutations(cut.ndims);
  cut.process_map = permuted[chosen[kProcessMap]];
  cut.reach = static_cast<int>(chosen[kReach]);
  std::vector<FieldShape> shapes;
  for (std::uint64_t f = 0; f <= chosen[kFields]; ++f) {
    const std::uint64_t which = number * 3 + f;
    const std::size_t order = f == 0 ? chosen[kOrder] : mixed(~which) % permuted.size();
    shapes.push_back(shape_number(which, cut.ndims, permuted[order]));
  }
  Wanted wanted;
  wanted.packing = static_cast<ist_halo_packing>(1 + chosen[kPacking]);
  wanted.in_two = chosen[kInTwo] == 1;
  wanted.steps = combinations.steps;
  wanted.kinds = {combinations.kind};
  if (chosen[kWay] == 1) wanted.way = IST_HALO_ONE_SIDED;
  exchange(cut, shapes, wanted);
  if (testing::Test::HasFailure()) {
    std::string text;
    for (std::size_t c = 0; c < kChoices; ++c) text += std::string{", "} + kChoiceNames[c] + ' ' + std::to_string(chosen[c]);
    FAIL() << described(cut) << text;
  }
}

inline void every_combination(int ndims, const Combinations& combinations) {
  const std::size_t orders = permutations(ndims).size();
  const Choices levels{orders, orders, 3, 3, 2, at(ndims) + 1, combinations.one_sided ? 2U : 1U};
  const int each = combinations.orders == 0 ? static_cast<int>(orders) : combinations.orders;
  Pairs pairs(levels);
  std::uint64_t number = 0;
  for (const auto& dims : factorings(size(), ndims))
    for (int periods = 0; periods < 1 << ndims; ++periods)
      for (int order = 0; order < each; ++order, ++number) {
        Cut cut;
        cut.ndims = ndims;
        cut.dims = dims;
        cut.cells = {3, 4, 3, 3};
        for (int d = 0; d < ndims; ++d) cut.periods[at(d)] = periods >> d & 1;
        const auto wanted = combinations.orders == 0 ? std::optional{at(order)} : std::nullopt;
        const Choices chosen = next_choices(number, levels, pairs, wanted);
        pairs.add(chosen);
        exchange_as_chosen(cut, chosen, number, combinations);
        if (testing::Test::HasFailure()) return;
      }
  pairs.expect_all();
}

// Of devices' memory. Quickly: dimensions up to three, two on many ranks, with one order for each cut; with `all`: of four, too, and every
// order up to three.
inline void every_combination_of(ist_kind kind, bool all) {
  const Combinations every{0, kind, kind != IST_KIND_OPENCL, all ? 3 : 1};
  Combinations one = every;
  one.orders = 1;
  for (int ndims = 1; ndims <= (all ? 4 : size() > 4 ? 2 : 3) && !testing::Test::HasFailure(); ++ndims)
    every_combination(ndims, all && ndims < 4 ? every : one);
}

}  // namespace rank_test
