// Which way to go round a ring, found out by laps: on machines that are invented, of which some are quick and slow by turns.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "base/lap_pace.hpp"

namespace ist::test {
namespace {

enum class Way : std::uint8_t { loops, strings };

// Ticks per byte of message i that goes that way, of which `before` have gone so without one the other way between.
using Machine = std::function<double(Way way, int i, int before)>;

// So many messages, each of which is over when `late` more have begun; how many of them went by strings, of the second half.
int send(LapPace<Way>& pace, const Machine& machine, int messages, int late = 0) {
  std::deque<std::pair<LapPace<Way>::Next, double>> under_way;
  int by_strings = 0;
  int before = 0;
  Way last = Way::loops;
  for (int i = 0; i < messages; ++i) {
    const auto next = pace.next();
    before = next.way == last ? before + 1 : 0;
    last = next.way;
    by_strings += 2 * i >= messages && next.way == Way::strings ? 1 : 0;
    under_way.emplace_back(next, machine(next.way, i, before));
    if (under_way.size() <= static_cast<std::size_t>(late)) continue;
    const auto& [over, took] = under_way.front();
    if (over.timed) pace.took(over, took);
    under_way.pop_front();
  }
  return by_strings;
}

double plain(Way way, double loops, double strings) { return way == Way::loops ? loops : strings; }

TEST(LapPace, BeginsWithTheFirstWay) {
  LapPace<Way> pace{20, 8};
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Way::loops, pace.next().way);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(Way::strings, pace.next().way);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(Way::loops, pace.next().way);
  EXPECT_EQ(Way::strings, pace.next().way);
}

TEST(LapPace, FewerAreTimedOnceManyWentSinceTheLastTrial) {
  constexpr int kTrial = 8;
  LapPace<Way> pace{200, kTrial};
  for (const int pause : {200, 400}) {
    for (int i = 1; i <= pause; ++i) EXPECT_EQ(i % (i < 64 ? 4 : 13) == 0, pace.next().timed) << i << " of " << pause;
    for (int i = 0; i < kTrial; ++i) EXPECT_TRUE(pace.next().timed) << i << " of the trial after " << pause;
  }
}

TEST(LapPace, TheQuickerWayStaysAndTheOtherOneIsTriedNowAndThen) {
  for (const int late : {0, 1, 64, 200}) {
    LapPace<Way> quick_loops{34, 64};
    const int tried = send(
        quick_loops, [](Way way, int, int) { return plain(way, 2, 3); }, 40000, late);
    EXPECT_EQ(Way::loops, quick_loops.way());
    EXPECT_GE(tried, 64) << late;
    EXPECT_LE(tried, 20000 / 25) << late;
    LapPace<Way> quick_strings{34, 64};
    EXPECT_GE(send(
                  quick_strings, [](Way way, int, int) { return plain(way, 3, 2); }, 40000, late),
              20000 - 20000 / 25)
        << late;
  }
}

// Windows of 64 messages, whose last half takes two thirds of the time, since nobody writes meanwhile.
TEST(LapPace, WhoIsQuickAndSlowByTurnsIsComparedOverBoth) {
  for (int phase = 0; phase < 64; phase += 8) {
    const auto turns = [phase](double loops, double strings) {
      return [=](Way way, int i, int) { return plain(way, loops, strings) * ((i + phase) % 64 < 32 ? 3 : 2); };
    };
    LapPace<Way> strings{34, 128};
    EXPECT_GE(send(strings, turns(5, 4), 40000, 64), 20000 * 9 / 10) << phase;
    LapPace<Way> loops{34, 128};
    EXPECT_LE(send(loops, turns(4, 5), 40000, 64), 20000 / 10) << phase;
  }
}

TEST(LapPace, LinesThatTheOtherWayHasLeftDoNotCount) {
  const auto machine = [](Way way, int, int before) { return before < 32 ? 6.0 : plain(way, 4, 3); };
  LapPace<Way> pace{34, 64};
  EXPECT_GE(send(pace, machine, 40000, 64), 20000 * 9 / 10);
}

// Ways that differ by less than they vary would change places for ever, and each change costs a round.
TEST(LapPace, WaysAsGoodAsEqualDoNotChangePlaces) {
  LapPace<Way> pace{34, 64};
  int changes = 0;
  for (int round = 0; round < 400; ++round) {
    const Way before = pace.way();
    send(
        pace, [](Way way, int i, int) { return plain(way, 4.0, 3.9) + (i % 7) * 0.1; }, 100);
    changes += pace.way() == before ? 0 : 1;
  }
  EXPECT_LE(changes, 1);
}

TEST(LapPace, AMachineThatChangesIsFollowed) {
  LapPace<Way> pace{34, 64};
  send(
      pace, [](Way way, int, int) { return plain(way, 3, 2); }, 20000, 64);
  EXPECT_EQ(Way::strings, pace.way());
  send(
      pace, [](Way way, int, int) { return plain(way, 6, 9); }, 5000, 64);
  EXPECT_EQ(Way::loops, pace.way()) << "a processor went away";
  send(
      pace, [](Way way, int, int) { return plain(way, 3, 2); }, 5000, 64);
  EXPECT_EQ(Way::strings, pace.way()) << "it came back";
}

TEST(LapPace, AMessageThatWasHeldUpChangesNothing) {
  LapPace<Way> pace{34, 64};
  send(
      pace, [](Way way, int, int) { return plain(way, 2, 3); }, 20000);
  pace.took({Way::loops, true, 0}, 1e6);
  EXPECT_EQ(Way::loops, pace.way());
  const auto held = [](Way way, int i, int) { return i % 100 == 0 ? 1e4 : plain(way, 2, 3); };
  EXPECT_LE(send(pace, held, 20000, 64), 10000 / 20);
}

TEST(LapPace, TheFirstWayIsGoneUntilTheOtherOneIsMoreThanItsLeadQuicker) {
  const auto strings_first = [] { return LapPace<Way>{34, 64, Way::strings, 1.3}; };
  LapPace<Way> little = strings_first();
  EXPECT_EQ(Way::strings, little.next().way);
  EXPECT_GE(send(
                little, [](Way way, int, int) { return plain(way, 10, 12); }, 40000, 64),
            20000 * 9 / 10);
  LapPace<Way> much = strings_first();
  EXPECT_LE(send(
                much, [](Way way, int, int) { return plain(way, 10, 15); }, 40000, 64),
            20000 / 10);
  send(
      much, [](Way way, int, int) { return plain(way, 10, 12); }, 20000, 64);
  EXPECT_EQ(Way::strings, much.way()) << "it came back";
}

TEST(LapPace, ALongFirstPauseGetsLonger) {
  LapPace<Way> pace{1000, 8, Way::strings, 1.3};
  for (const int pause : {1000, 2000, 4000, 4000}) {
    for (int i = 0; i < pause; ++i) ASSERT_EQ(Way::strings, pace.next().way) << i << " of " << pause;
    for (int i = 0; i < 8; ++i) ASSERT_EQ(Way::loops, pace.next().way) << i << " behind " << pause;
  }
}

TEST(LapPace, FewMessagesAreATrialToo) {
  LapPace<Way> pace{16, 0};
  EXPECT_GE(send(
                pace, [](Way way, int, int) { return plain(way, 3, 2); }, 4000),
            2000 - 40);
}

}  // namespace
}  // namespace ist::test
