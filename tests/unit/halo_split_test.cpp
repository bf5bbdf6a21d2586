// Inner cells in an interior and borders: every cell counted, in all numbers of dimensions.
#include <gtest/gtest.h>
#include <isthmus/halo.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kMost = IST_HALO_MOST_DIMENSIONS;
using Cell = std::array<std::int64_t, kMost>;
using Ranges = std::array<ist_halo_range, kMost>;

template <class Do>
void each_cell(const ist_halo_box& box, const Do& of_cell) {
  for (std::int64_t i = box.first[0]; i <= box.last[0]; ++i)
    for (std::int64_t j = box.first[1]; j <= box.last[1]; ++j)
      for (std::int64_t k = box.first[2]; k <= box.last[2]; ++k)
        for (std::int64_t l = box.first[3]; l <= box.last[3]; ++l) of_cell(Cell{i, j, k, l});
}

// Asymmetric and no widths, few cells and none, with padding.
Ranges random_ranges(std::mt19937_64& random, std::size_t ndims) {
  const auto pick = [&](std::int64_t most) { return std::uniform_int_distribution<std::int64_t>{0, most}(random); };
  Ranges ranges{};
  for (std::size_t d = 0; d < ndims; ++d) {
    const std::int64_t minus = pick(3), plus = pick(3), begin = minus + pick(1), inner = pick(6);
    ranges[d] = {minus, plus, begin, begin + inner - 1, begin + inner + plus + pick(1)};
  }
  return ranges;
}

// Swept as often as it is an inner cell: once or never; and in the interior where its whole stencil is among inner cells.
void check(const Ranges& ranges, std::size_t ndims) {
  ist_halo_box interior, border[2 * kMost];
  int boxes = -1;
  ASSERT_EQ(IST_OK, ist_halo_split(static_cast<int>(ndims), ranges.data(), &interior, border, &boxes)) << ist_error_text();
  ASSERT_GE(boxes, 0);
  ASSERT_LE(boxes, static_cast<int>(2 * ndims));
  std::vector<Cell> inside, expected_inside, all, expected;
  each_cell(interior, [&](const Cell& cell) { inside.push_back(cell), all.push_back(cell); });
  for (int b = 0; b < boxes; ++b) {
    const std::size_t before = all.size();
    each_cell(border[b], [&](const Cell& cell) { all.push_back(cell); });
    EXPECT_GT(all.size(), before) << "a box without cells";
  }
  ist_halo_box whole{}, kept{};
  for (std::size_t d = 0; d < ndims; ++d) {
    whole.first[d] = ranges[d].begin, whole.last[d] = ranges[d].end;
    kept.first[d] = ranges[d].begin + ranges[d].minus, kept.last[d] = ranges[d].end - ranges[d].plus;
  }
  each_cell(whole, [&](const Cell& cell) { expected.push_back(cell); });
  each_cell(kept, [&](const Cell& cell) { expected_inside.push_back(cell); });
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, expected);
  EXPECT_EQ(inside, expected_inside);
}

TEST(HaloSplit, has_each_inner_cell_once_and_those_inside_whose_stencil_is_among_them) {
  std::mt19937_64 random{20261127};
  for (std::size_t ndims = 1; ndims <= kMost; ++ndims)
    for (int i = 0; i < 500 && !testing::Test::HasFailure(); ++i) check(random_ranges(random, ndims), ndims);
}

TEST(HaloSplit, says_what_does_not_fit) {
  ist_halo_range ranges[] = {{1, 1, 1, 4, 6}, {1, -1, 1, 4, 6}};
  ist_halo_box interior, border[4];
  int boxes = 0;
  const auto refused = [&](int code, const std::string& words) {
    EXPECT_EQ(IST_ERR_ARGUMENT, code);
    EXPECT_NE(std::string{ist_error_text()}.find("ist_halo_split: " + words), std::string::npos) << ist_error_text();
  };
  refused(ist_halo_split(0, ranges, &interior, border, &boxes), "ndims is 0; it must be 1 to 4");
  refused(ist_halo_split(5, ranges, &interior, border, &boxes), "ndims is 5");
  refused(ist_halo_split(2, ranges, &interior, border, &boxes), "dimension 1 has minus 1, plus -1");
  refused(ist_halo_split(1, nullptr, &interior, border, &boxes), "ranges is null");
  refused(ist_halo_split(1, ranges, nullptr, border, &boxes), "interior is null");
  refused(ist_halo_split(1, ranges, &interior, nullptr, &boxes), "border is null");
  refused(ist_halo_split(1, ranges, &interior, border, nullptr), "boxes is null");
  ranges[0].end = -1;
  refused(ist_halo_split(1, ranges, &interior, border, &boxes), "dimension 0 has");
}

}  // namespace
