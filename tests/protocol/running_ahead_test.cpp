// When the sender of a window runs ahead, and how it leaves it where that is slow: paces that are invented.
#include <gtest/gtest.h>

#include "protocol/running_ahead.hpp"

namespace ist::test {
namespace {

enum class Way : std::uint8_t { loops, strings };
using Ahead = RunningAhead<Way>;

// A window of so many timed slots; how many of them it ran ahead for.
int window(Ahead& ahead, double pace, int slots = 256, Way way = Way::loops) {
  if (!ahead.begin()) return 0;
  for (int i = 1; i <= slots; ++i)
    if (!ahead.filled_ahead(way, pace)) return i;
  return slots;
}

TEST(RunningAhead, IsDoneWhereItIsNotSlow) {
  Ahead ahead;
  for (int i = 0; i < 20; ++i) ahead.filled_near(Way::loops, 2);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(256, window(ahead, 2.9));
}

TEST(RunningAhead, EndsInTheMiddleOfASlowWindowAndRestsEachTimeForTwiceAsMany) {
  Ahead ahead;
  ahead.filled_near(Way::loops, 2);
  for (std::uint32_t rest = Ahead::kFirstRest; rest < 4 * Ahead::kLongestRest; rest *= 2) {
    EXPECT_EQ(static_cast<int>(Ahead::kJudged), window(ahead, 8));
    for (std::uint32_t i = 0; i < std::min(rest, Ahead::kLongestRest); ++i) EXPECT_EQ(0, window(ahead, 8)) << rest;
  }
}

TEST(RunningAhead, IsOftenTriedAgainOnlyOnceItWasQuickForLong) {
  Ahead ahead;
  ahead.filled_near(Way::loops, 2);
  for (int i = 0; i < 5; ++i)
    while (window(ahead, 8) == 0) continue;
  while (window(ahead, 2, static_cast<int>(Ahead::kJudged)) == 0) continue;  // one good verdict is not enough
  EXPECT_EQ(static_cast<int>(Ahead::kJudged), window(ahead, 8));
  int rested = 0;
  while (window(ahead, 2) == 0) ++rested;
  EXPECT_EQ(32, rested);
  for (std::uint32_t i = 0; i < Ahead::kQuick * Ahead::kJudged / 256; ++i) EXPECT_EQ(256, window(ahead, 2));
  EXPECT_EQ(static_cast<int>(Ahead::kJudged), window(ahead, 8));
  EXPECT_EQ(0, window(ahead, 2));
  EXPECT_EQ(256, window(ahead, 2)) << "the first rest again";
}

TEST(RunningAhead, IsComparedWithSlotsOfItsWayAndJudgedOnlyOnceThoseAreKnown) {
  Ahead ahead;
  ahead.filled_near(Way::loops, 8);
  EXPECT_EQ(256, window(ahead, 8, 256, Way::strings));
  ahead.filled_near(Way::strings, 2);
  EXPECT_EQ(256, window(ahead, 8, 256, Way::loops));
  EXPECT_EQ(static_cast<int>(Ahead::kJudged), window(ahead, 8, 256, Way::strings));
}

TEST(RunningAhead, ASlotThatWasHeldUpIsNoSlowWindow) {
  Ahead ahead;
  for (int i = 0; i < 20; ++i) ahead.filled_near(Way::loops, i % 10 == 5 ? 1e6 : 2);
  EXPECT_TRUE(ahead.begin());
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(ahead.filled_ahead(Way::loops, i % 16 == 3 ? 1e6 : 2)) << i;
}

TEST(RunningAhead, TimesOneSlotOfFour) {
  Ahead ahead;
  int timed = 0;
  for (int i = 0; i < 400; ++i) timed += ahead.is_timed() ? 1 : 0;
  EXPECT_EQ(100, timed);
}

}  // namespace
}  // namespace ist::test
