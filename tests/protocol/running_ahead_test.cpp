// When the sender of a window runs ahead, and how it leaves it where that is slow: paces that are invented.
#include <gtest/gtest.h>

#include "protocol/running_ahead.hpp"

namespace ist::test {
namespace {

enum class Way : std::uint8_t { loops, strings };
using Ahead = RunningAhead<Way>;

// A window of so many timed slots; how many of them it ran ahead for.
int window(Ahead& ahead, double pace, int slots = 256, Way way = Way::loops) {
  if (!ahead.begin(way)) return 0;
  for (int i = 1; i <= slots; ++i)
    if (ahead.filled_ahead(way, pace) == Ahead::Verdict::leave) return i;
  return slots;
}

// Slots until a slow window is left: the reader has been held off in vain.
constexpr int kLeft = static_cast<int>((Ahead::kHolds + 1) * Ahead::kJudged);

// Known is how long slots take that are near; the first ones were slow.
void know(Ahead& ahead, double pace, Way way = Way::loops) {
  for (std::uint32_t i = 0; i < Ahead::kFresh; ++i) ahead.filled_near(way, 100);
  for (std::uint32_t i = 0; i < Ahead::kJudged; ++i) {
    EXPECT_FALSE(ahead.begin(way)) << i;
    ahead.filled_near(way, pace);
  }
}

TEST(RunningAhead, ShorterPiecesAreAsManyMoreAhead) {
  EXPECT_EQ(kMostAhead, most_ahead(kibibytes(256)));
  EXPECT_EQ(kMostAhead, most_ahead(kibibytes(128)));
  EXPECT_EQ(2 * kMostAhead, most_ahead(kibibytes(64)));
  EXPECT_EQ(kAhead.value, most_ahead(Bytes{}));
}

TEST(RunningAhead, IsDoneWhereItIsNotSlowBySixtyThreeWindowsOfSixtyFour) {
  Ahead ahead;
  know(ahead, 2);
  int near = 0;
  for (int i = 0; i < 640; ++i) {
    const int slots = window(ahead, 2.9);
    EXPECT_TRUE(slots == 0 || slots == 256);
    near += slots == 0 ? 1 : 0;
  }
  EXPECT_EQ(10, near);
}

TEST(RunningAhead, EndsInTheMiddleOfASlowWindowAndRestsEachTimeForTwiceAsMany) {
  Ahead ahead;
  know(ahead, 2);
  std::uint32_t windows = 0;
  for (std::uint32_t rest = Ahead::kFirstRest; rest < 4 * Ahead::kLongestRest; rest *= 2) {
    std::uint32_t rested = 0;
    int slots = 0;
    while ((slots = window(ahead, 8)) == 0) rested += ++windows % Ahead::kNearOf == 0 ? 0 : 1;
    ++windows;
    EXPECT_EQ(kLeft, slots);
    EXPECT_EQ(rest == Ahead::kFirstRest ? 0 : std::min(rest / 2, Ahead::kLongestRest), rested);
  }
}

TEST(RunningAhead, IsOftenTriedAgainOnlyOnceItWasQuickForLong) {
  Ahead ahead;
  know(ahead, 2);
  const auto rests = [&](double pace, int slots) {
    int rested = 0;
    while (window(ahead, pace, slots) == 0) ++rested;
    return rested;
  };
  constexpr int kVerdict = static_cast<int>(Ahead::kJudged);
  for (int i = 0; i < 5; ++i) rests(8, kLeft);
  EXPECT_EQ(16, rests(2, kVerdict));  // one good verdict is not enough
  EXPECT_EQ(0, rests(8, kLeft));
  EXPECT_GE(rests(2, 256), 31);
  for (std::uint32_t i = 0; i < Ahead::kQuick * Ahead::kJudged / 256; ++i) rests(2, 256);
  rests(8, kLeft);
  EXPECT_LE(rests(2, 256), 2) << "the first rest again, and perhaps a window that is near in its turn";
}

// Held off kHolds times in a row before it is left; a good verdict begins that anew.
TEST(RunningAhead, HoldsTheReaderOffBeforeItIsLeft) {
  Ahead ahead;
  know(ahead, 2);
  ASSERT_TRUE(ahead.begin(Way::loops));
  const auto verdict = [&](double pace) {
    Ahead::Verdict last = Ahead::Verdict::none;
    for (std::uint32_t i = 1; i <= Ahead::kJudged; ++i) {
      EXPECT_EQ(Ahead::Verdict::none, last) << "in the middle of it";
      last = ahead.filled_ahead(Way::loops, pace);
    }
    return last;
  };
  for (int times = 0; times < 2; ++times) {
    for (std::uint32_t i = 0; i < Ahead::kHolds; ++i) EXPECT_EQ(Ahead::Verdict::hold, verdict(8)) << i;
    if (times == 0) {
      EXPECT_EQ(Ahead::Verdict::none, verdict(2));
    }
  }
  EXPECT_EQ(Ahead::Verdict::leave, verdict(8));
}

TEST(RunningAhead, IsComparedWithSlotsOfItsWayOnceThoseAreKnown) {
  Ahead ahead;
  know(ahead, 8);
  EXPECT_FALSE(ahead.begin(Way::strings));
  for (std::uint32_t i = 0; i < Ahead::kJudged; ++i) ahead.filled_near(Way::strings, 2);
  EXPECT_EQ(256, window(ahead, 8, 256, Way::loops));
  EXPECT_EQ(kLeft, window(ahead, 8, 256, Way::strings));
}

TEST(RunningAhead, ASlotThatWasHeldUpIsNoSlowWindow) {
  Ahead ahead;
  know(ahead, 2);
  for (int i = 0; i < 40; ++i) ahead.filled_near(Way::loops, i % 20 == 5 ? 1e6 : 2);
  EXPECT_TRUE(ahead.begin(Way::loops));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(Ahead::Verdict::none, ahead.filled_ahead(Way::loops, i % 16 == 3 ? 1e6 : 2)) << i;
}

TEST(RunningAhead, TimesOneSlotOfFourUntilItIsKnownHowLongTheyTake) {
  Ahead ahead;
  const auto timed = [&](Way way, bool is_ahead) {
    int all = 0;
    for (int i = 0; i < 520; ++i) all += ahead.is_timed(way, is_ahead) ? 1 : 0;
    return all;
  };
  EXPECT_EQ(130, timed(Way::loops, false));
  know(ahead, 2);
  EXPECT_EQ(74, timed(Way::loops, false));
  EXPECT_EQ(130, timed(Way::strings, false)) << "of that way nothing is known";
  EXPECT_EQ(130, timed(Way::loops, true)) << "nor whether it may run ahead";
  for (std::uint32_t i = 0; i < Ahead::kSure; ++i)
    EXPECT_EQ(static_cast<int>(Ahead::kJudged), window(ahead, 2, Ahead::kJudged));
  EXPECT_EQ(74, timed(Way::loops, true));
  EXPECT_EQ(kLeft, window(ahead, 8));
  EXPECT_EQ(130, timed(Way::loops, true)) << "that one was slow";
}

}  // namespace
}  // namespace ist::test
