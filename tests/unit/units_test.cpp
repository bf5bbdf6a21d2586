#include "base/units.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace ist {
namespace {

TEST(Units, lengths_add_subtract_and_compare) {
  EXPECT_EQ(Bytes{3} + Bytes{4}, Bytes{7});
  EXPECT_EQ(Bytes{7} - Bytes{4}, Bytes{3});
  EXPECT_LT(Bytes{3}, Bytes{4});
  Bytes sum{1};
  sum += Bytes{2};
  EXPECT_EQ(sum.value, 3U);
}

TEST(Units, an_offset_moves_by_lengths_and_two_offsets_make_a_length) {
  Offset place{10};
  place += Bytes{5};
  EXPECT_EQ(place, Offset{15});
  EXPECT_EQ(place + Bytes{1}, Offset{16});
  EXPECT_EQ(Offset{16} - Offset{10}, Bytes{6});
}

TEST(Units, lengths_beyond_four_gibibytes_keep_every_digit) {
  const Bytes large = mebibytes(5000) + Bytes{1};
  EXPECT_EQ(large.value, 5242880001U);
  EXPECT_EQ(Offset{} + large - Offset{}, large);
  EXPECT_EQ(kibibytes(1).value, 1024U);
  EXPECT_EQ(smaller(large, Bytes{2}), Bytes{2});
  EXPECT_EQ(smaller(Bytes{std::numeric_limits<std::uint64_t>::max()}, large), large);
}

TEST(Units, a_rank_or_pe_that_was_never_set_is_none) {
  EXPECT_EQ(Rank{}.value, -1);
  EXPECT_EQ(Pe{}.value, -1);
  EXPECT_LT(Rank{0}, Rank{1});
}

}  // namespace
}  // namespace ist
