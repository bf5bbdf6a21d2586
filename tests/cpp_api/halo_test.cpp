// The C++ face of halo exchange: grids, fields of several types, splits, overlap, lists, and errors.
#include "isthmus/halo.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "isthmus/isthmus.hpp"

namespace {

using isthmus::Buffer;
using isthmus::Error;
using isthmus::Halo;
using isthmus::HaloBox;
using isthmus::HaloField;
using isthmus::HaloGrid;
using isthmus::HaloLists;
using isthmus::HaloOptions;
using isthmus::HaloPacking;
using isthmus::HaloRange;
using isthmus::HaloWay;
using isthmus::World;

struct Cell {
  std::int32_t row;
  std::int32_t column;
  std::int16_t what;
  bool operator==(const Cell&) const = default;
};

// Rows are cut over all ranks, around; each has four, and eight columns, with halos of one row before and two behind, and one column.
struct Rows : testing::Test {
  World world;
  HaloGrid grid{world.comm(), std::array{world.size(), 1}, std::array{1, 0}};
  int all = world.size(), me = grid.coords()[0];
  std::array<HaloRange, 2> ranges{HaloRange{1, 2, 1, 4, 7}, HaloRange{1, 0, 1, 8, 9}};
  std::vector<Cell> cells = std::vector<Cell>(7 * 9, Cell{-1, -1, -1});
  std::vector<double> numbers = std::vector<double>(9 * 7, -1);  // columns are neighbours in memory

  Cell& cell(std::int64_t row, std::int64_t column) { return cells[static_cast<std::size_t>(row * 9 + column)]; }
  double& number(std::int64_t row, std::int64_t column) { return numbers[static_cast<std::size_t>(column * 7 + row)]; }
  std::int32_t global_row(std::int64_t row) const {
    return static_cast<std::int32_t>((me * 4 + row - 1 + 4 * all) % (4 * all));
  }
  std::vector<HaloField> fields() {
    return {HaloField::of(cells, ranges), HaloField::of<double>(Buffer::host(numbers.data()), ranges, std::array{1, 0})};
  }
  void fill() {
    for (std::int64_t row = 1; row <= 4; ++row)
      for (std::int64_t column = 1; column <= 8; ++column) {
        cell(row, column) = {global_row(row), static_cast<std::int32_t>(column), 7};
        number(row, column) = global_row(row) * 100.0 + static_cast<double>(column);
      }
  }
  void expect_all() {
    for (std::int64_t row = 0; row < 7; ++row)
      for (std::int64_t column = 0; column < 9; ++column) {
        const bool known = column > 0;
        const Cell expected = known ? Cell{global_row(row), static_cast<std::int32_t>(column), 7} : Cell{-1, -1, -1};
        EXPECT_EQ(cell(row, column), expected) << row << ", " << column;
        EXPECT_EQ(number(row, column), known ? global_row(row) * 100.0 + static_cast<double>(column) : -1)
            << row << ", " << column;
      }
  }
};

TEST_F(Rows, of_structs_and_numbers_travel_together) {
  for (const HaloPacking packing : {HaloPacking::automatic, HaloPacking::calls, HaloPacking::layouts, HaloPacking::loops}) {
    std::fill(cells.begin(), cells.end(), Cell{-1, -1, -1}), std::fill(numbers.begin(), numbers.end(), -1);
    const Halo halo(grid, fields(), {0, packing, HaloWay::messages});
    fill();
    halo.update();
    expect_all();
    EXPECT_NE(halo.text().find("2 fields"), std::string::npos) << halo.text();
  }
}

TEST_F(Rows, go_one_sided_and_step_by_step) {
  const Halo halo(grid, fields(), {1, HaloPacking::layouts, HaloWay::one_sided});
  fill();
  halo.pack();
  halo.start_exchange();
  halo.wait();
  halo.unpack();
  expect_all();
  halo.set_fields(fields());
  halo.update();
  expect_all();
  halo.destroy();
  EXPECT_THROW(halo.pack(), Error);
}

TEST_F(Rows, are_told_of_by_their_grid) {
  EXPECT_TRUE(grid);
  EXPECT_EQ(grid.dims(), (std::vector{all, 1}));
  EXPECT_EQ(grid.periods(), (std::vector{1, 0}));
  EXPECT_EQ(grid.neighbour(std::array{1, 0}), (me + 1) % all);
  EXPECT_EQ(grid.neighbour(std::array{0, 1}), isthmus::proc_null);
  EXPECT_EQ(grid.comm().size(), all);
  const HaloGrid turned(world.comm(), std::array{1, all}, std::array{1, 0}, std::array{1, 0});
  EXPECT_EQ(turned.dims(), (std::vector{all, 1}));
  std::vector<char> bytes(5000);
  const auto ordered = HaloGrid::order(world.comm(), std::array{all, 1}, std::array{1, 0}, Buffer::host(bytes.data()), 5000);
  EXPECT_EQ(ordered.size(), all);
  EXPECT_TRUE(HaloGrid(ordered, std::array{all, 1}, std::array{1, 0}));
  EXPECT_THROW(grid.neighbour(std::array{1}), Error);
  EXPECT_THROW(HaloGrid(world.comm(), std::array{1, 1}, std::array{1}), Error);
  const HaloGrid alone(world.comm(), std::array{1}, std::array{0});
  EXPECT_EQ(static_cast<bool>(alone), world.rank() == 0);
}

TEST_F(Rows, are_swept_with_each_inner_cell_once_and_the_interior_first) {
  const Halo halo(grid, fields());
  fill();
  std::vector<int> seen(7 * 9, 0);
  int boxes = 0;
  halo.overlap(ranges, [&](const HaloBox& box) {
    for (std::int64_t row = box.first[0]; row <= box.last[0]; ++row)
      for (std::int64_t column = box.first[1]; column <= box.last[1]; ++column) {
        ++seen[static_cast<std::size_t>(row * 9 + column)];
        // What a stencil of the ranges' widths reads: of the interior, inner cells; at the borders, those that came.
        for (std::int64_t r = row - 1; r <= row + 2; ++r)
          EXPECT_EQ(cell(r, column).row, global_row(r)) << row << ", " << column << ", box " << boxes;
      }
    ++boxes;
  });
  EXPECT_GT(boxes, 1);
  for (std::int64_t row = 0; row < 7; ++row)
    for (std::int64_t column = 0; column < 9; ++column)
      EXPECT_EQ(seen[static_cast<std::size_t>(row * 9 + column)], row >= 1 && row <= 4 && column >= 1 ? 1 : 0);
}

TEST(HaloSplits, cover_each_inner_cell_once_also_where_there_is_no_interior) {
  for (std::int64_t inner = 0; inner < 6; ++inner)
    for (std::int64_t minus = 0; minus < 4; ++minus)
      for (std::int64_t plus = 0; plus < 4; ++plus) {
        const std::vector<HaloRange> ranges(2, HaloRange{minus, plus, minus, minus + inner - 1, minus + inner + plus});
        const auto split = isthmus::halo_split(ranges);
        const auto cells = [](const HaloBox& box) {
          return box.empty(2) ? 0 : (box.last[0] - box.first[0] + 1) * (box.last[1] - box.first[1] + 1);
        };
        std::int64_t sum = cells(split.interior);
        for (const HaloBox& box : split.border) sum += cells(box);
        EXPECT_EQ(sum, inner * inner) << inner << " cells, " << minus << " and " << plus;
        const std::int64_t left = std::max<std::int64_t>(inner - minus - plus, 0);
        EXPECT_EQ(cells(split.interior), left * left);
      }
}

TEST_F(Rows, listed_by_number_go_to_several_ranks_and_to_this_one) {
  // Every rank sends elements 3, 1 and 7 to each rank, and receives into places of that rank's own.
  std::vector<std::int64_t> values(static_cast<std::size_t>(10 + 3 * all), -1);
  std::iota(values.begin(), values.begin() + 10, me * 1000);
  std::vector<float> more(values.begin(), values.end());
  std::vector<HaloLists> lists;
  for (int rank = 0; rank < all; ++rank) lists.push_back({rank, {3, 1, 7}, {12 + 3 * rank, 10 + 3 * rank, 11 + 3 * rank}});
  const auto listed = std::array{HaloField::listed(values), HaloField::listed(more)};
  for (const HaloPacking packing : {HaloPacking::automatic, HaloPacking::calls, HaloPacking::layouts, HaloPacking::loops}) {
    const Halo halo(world.comm(), lists, listed, {0, packing, HaloWay::messages});
    halo.update();
    for (int rank = 0; rank < all; ++rank) {
      const auto at = static_cast<std::size_t>(10 + 3 * rank);
      EXPECT_EQ((std::vector(values.begin() + static_cast<std::ptrdiff_t>(at),
                             values.begin() + static_cast<std::ptrdiff_t>(at + 3))),
                (std::vector<std::int64_t>{rank * 1000 + 1, rank * 1000 + 7, rank * 1000 + 3}));
      EXPECT_EQ(more[at + 2], static_cast<float>(rank * 1000 + 3));
    }
    EXPECT_EQ(values[5], me * 1000 + 5);
  }
  std::vector<std::int64_t> small(static_cast<std::size_t>(9 + 3 * all));
  EXPECT_THROW(Halo(world.comm(), lists, std::array{HaloField::listed(small)}), Error);
  const Halo bounded(world.comm(), lists, std::array{HaloField::listed(values)});
  EXPECT_THROW(bounded.set_fields(std::array{HaloField::listed(small)}), Error);
  bounded.pack();
  bounded.start_exchange();
  while (!bounded.test()) {
  }
  bounded.unpack();
  lists[0].receives[0] = lists[0].receives[1];
  EXPECT_THROW(Halo(world.comm(), lists, listed), Error);
}

TEST_F(Rows, that_cannot_be_are_refused_with_the_librarys_words) {
  const auto text_of = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  std::vector<double> small(10);
  const std::array three{ranges[0], ranges[1], HaloRange{0, 0, 0, 0, 1}};
  EXPECT_NE(text_of([&] {
              Halo(grid, std::array{HaloField::of(cells, ranges), HaloField::of(cells, three)});
            }).find("field 1 has 3 ranges, and its grid has 2 dimensions"),
            std::string::npos);
  EXPECT_NE(text_of([&] {
              Halo(grid, std::array{HaloField::of(numbers, ranges, std::array{1})});
            }).find("field 0 has 1 entries of a layout map, and its grid has 2 dimensions"),
            std::string::npos);
  EXPECT_NE(text_of([&] { HaloField::of(small, ranges); }).find("the ranges are of 63 elements, and the field has 10"),
            std::string::npos);
  ranges[0].plus = 9, ranges[0].total_length = 14;
  std::vector<double> field(14 * 9);
  EXPECT_NE(text_of([&] { Halo(grid, std::array{HaloField::of(field, ranges)}); }).find("thinner than the halo"),
            std::string::npos);
}

}  // namespace
