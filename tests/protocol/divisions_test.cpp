// How a buffer is divided among ranks.
#include <gtest/gtest.h>

#include "collective/collectives.hpp"

namespace ist {
namespace {

TEST(Divisions, as_equal_as_possible_cover_the_whole_without_a_gap) {
  for (const int ranks : {1, 2, 3, 5, 6}) {
    for (const std::uint64_t count : {0ULL, 1ULL, 4ULL, 5ULL, 6ULL, 1000ULL, 1001ULL}) {
      const Elements all{count, Bytes{8}};
      const Division layout = Division::split(all, ranks);
      const Parts parts = Parts::even(all, ranks);
      std::uint64_t end = 0;
      Bytes most;
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(layout.place(rank), Bytes{end});
        EXPECT_EQ(layout.elements(rank).count, parts.elements(rank).count);
        end += layout.elements(rank).bytes().value;
        most = std::max(most, layout.elements(rank).bytes());
      }
      EXPECT_EQ(end, all.bytes().value);
      EXPECT_EQ(layout.total(), all.bytes());
      EXPECT_EQ(layout.span(), all.bytes());
      EXPECT_EQ(layout.largest(), most);
      EXPECT_EQ(layout.ranks(), ranks);
    }
  }
}

TEST(Divisions, of_unequal_parts_reach_as_far_as_the_last_one_that_is_not_empty) {
  const Division layout = Division::varied({{3, Bytes{80}}, {0, Bytes{800}}, {2, Bytes{0}}}, Bytes{8});
  EXPECT_EQ(layout.ranks(), 3);
  EXPECT_EQ(layout.elements(0).bytes(), Bytes{24});
  EXPECT_EQ(layout.place(1), Bytes{800});
  EXPECT_EQ(layout.largest(), Bytes{24});
  EXPECT_EQ(layout.total(), Bytes{40});
  EXPECT_EQ(layout.span(), Bytes{104});
  const Division even = Division::even({5, Bytes{4}}, 3);
  EXPECT_EQ(even.place(2), Bytes{40});
  EXPECT_EQ(even.elements(2).count, 5U);
  EXPECT_EQ(even.span(), Bytes{60});
}

// ---- in streams ----

}  // namespace
}  // namespace ist
