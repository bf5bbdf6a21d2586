// Which of two ways is quicker, found out by runs, on machines that are invented: a clock that goes on as they say.
#include "base/run_pace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>

namespace ist::test::run_pace {
namespace {

enum class Way : std::uint8_t { lines, string };

// Ticks that message i takes so, of which `before` have gone that way without the other one between.
using Machine = std::function<double(Way way, int i, int before)>;

struct Went {
  int by_string = 0;  // of the second half
  double took = 0;    // all of them
};
Went send(RunPace<Way>& pace, const Machine& machine, int messages) {
  Went went;
  static double now = 1e6;
  int before = 0;
  Way last = Way::lines;
  for (int i = 0; i < messages; ++i) {
    const Way way = pace.way();
    before = way == last ? before + 1 : 0;
    last = way;
    const double took = machine(way, i, before);
    went.took += took;
    now += took;
    went.by_string += 2 * i >= messages && way == Way::string ? 1 : 0;
    pace.did(32768, [] { return static_cast<std::uint64_t>(now); });
  }
  return went;
}

double plain(Way way, double lines, double string) { return way == Way::lines ? lines : string; }

TEST(RunPace, goes_the_quicker_way_nearly_always) {
  RunPace<Way> pace;
  EXPECT_GT(send(
                pace, [](Way way, int, int) { return plain(way, 1000, 800); }, 20000)
                .by_string,
            9700);
  RunPace<Way> other;
  EXPECT_LT(send(
                other, [](Way way, int, int) { return plain(way, 1000, 1200); }, 20000)
                .by_string,
            100);
}

// Of two that take turns, message by message, either goes its best way; a trial that nothing ends would be gone for ever.
TEST(RunPace, a_trial_ends_where_something_else_is_done) {
  RunPace<Way> pace;
  const auto slow_string = [](Way way, int, int) { return plain(way, 1000, 1200); };
  int sent = 0;
  for (; pace.way() == Way::lines && sent < 20000; ++sent) send(pace, slow_string, 1);
  ASSERT_EQ(Way::string, pace.way()) << "nothing was tried";
  pace.interrupted();
  EXPECT_EQ(Way::lines, pace.way());
  for (int i = 0; i < 20000; ++i) {
    send(pace, slow_string, 1);
    pace.interrupted();
    ASSERT_EQ(Way::lines, pace.way()) << i;
  }
}

TEST(RunPace, does_not_change_for_less_than_is_seen) {
  RunPace<Way> pace;
  EXPECT_LT(send(
                pace, [](Way way, int, int) { return plain(way, 1000, 985); }, 20000)
                .by_string,
            150);
}

// What the one way leaves makes the first of the other slow: these do not count.
TEST(RunPace, lets_a_way_settle) {
  RunPace<Way> pace;
  const auto settles = [](Way way, int, int before) { return plain(way, 1000, 800) * (before < 8 ? 1.4 : 1); };
  EXPECT_GT(send(pace, settles, 20000).by_string, 9700);
}

// A way that is hopeless is left before a run of it is over, and costs little.
TEST(RunPace, pays_little_for_trials_of_a_way_that_is_much_slower) {
  RunPace<Way> pace;
  const Went went = send(
      pace, [](Way way, int, int) { return plain(way, 1000, 3000); }, 100000);
  EXPECT_LT(went.took, 1.01 * 1000 * 100000);
}

TEST(RunPace, ends_a_trial_early_that_is_surely_worse) {
  RunPace<Way> pace;
  int tried = 0;
  send(
      pace,
      [&](Way way, int, int) {
        tried += way == Way::string ? 1 : 0;
        return plain(way, 1000, 1250);
      },
      4000);
  // Four trials, behind 4, 8, 16 and 32 runs and more: two looks to settle and three that count, of four messages each.
  EXPECT_LE(tried, 5 * 5 * 4);
  EXPECT_GE(tried, 3 * 5 * 4);
}

TEST(RunPace, leaves_a_way_that_becomes_slow_at_once_and_comes_back_to_it) {
  RunPace<Way> pace;
  const auto quick = [](Way way, int, int) { return plain(way, 1000, 800); };
  send(pace, quick, 5000);
  EXPECT_EQ(pace.way(), Way::string);
  const auto slow = [](Way way, int, int) { return plain(way, 1000, 3000); };
  const Went lost = send(pace, slow, 5000);
  EXPECT_LT(lost.took, 1.06 * 1000 * 5000);
  EXPECT_EQ(lost.by_string, std::min(lost.by_string, 100));
  EXPECT_GT(send(pace, quick, 30000).by_string, 14000);
}

// What is done between windows is not told from a slow message: it does not count.
TEST(RunPace, does_not_count_what_else_a_program_does) {
  RunPace<Way> pace;
  const auto with_pauses = [](Way way, int i, int) { return plain(way, 1000, 800) + (i % 64 == 63 ? 100000 : 0); };
  EXPECT_GT(send(pace, with_pauses, 20000).by_string, 9000);
}

// Messages of programs that come one by one take as long either way: nothing is lost by whichever is gone.
TEST(RunPace, stays_sound_where_the_pace_of_messages_changes) {
  RunPace<Way> pace;
  const auto changes = [](Way way, int i, int) { return plain(way, 1000, 800) * (i / 1000 % 2 == 0 ? 1 : 4); };
  const Went went = send(pace, changes, 40000);
  EXPECT_LT(went.took, 1.05 * 800 * 2.5 * 40000);
}

// By more than what else a program does would account for: whichever way was gone, or tried, then.
TEST(RunPace, finds_out_anew_where_all_is_much_slower_than_it_was) {
  for (const int quick : {5000, 5040, 5080, 5120, 5160}) {
    RunPace<Way> pace;
    send(
        pace, [](Way way, int, int) { return plain(way, 1000, 900); }, quick);
    const auto slow = [](Way way, int, int) { return plain(way, 9000, 90000); };
    EXPECT_LT(send(pace, slow, 20000).by_string, 200) << quick;
    const auto other = [](Way way, int, int) { return plain(way, 900000, 90000); };
    EXPECT_GT(send(pace, other, 20000).by_string, 9000) << quick;
  }
}

// With strings first, until lines are 1.3 times as quick for 8 runs of 32 messages in a row.
constexpr int kRun = 32;
constexpr std::uint32_t kPatience = 8;
RunPace<Way> strings_first() { return RunPace<Way>{Way::string, 1.3, kPatience}; }

TEST(RunPace, the_first_way_is_gone_up_to_its_lead_and_left_beyond) {
  EXPECT_EQ(Way::string, strings_first().way());
  const auto by_string = [](double slower) {
    RunPace<Way> pace = strings_first();
    return send(
               pace, [&](Way way, int, int) { return plain(way, 1000, 1000 * slower); }, 40000)
        .by_string;
  };
  EXPECT_GT(by_string(1.25), 19600);
  EXPECT_LT(by_string(1.4), 2000);
}

TEST(RunPace, the_first_way_is_left_where_the_other_one_is_much_quicker) {
  RunPace<Way> pace = strings_first();
  const Went went = send(
      pace, [](Way way, int, int) { return plain(way, 1000, 3000); }, 40000);
  EXPECT_LT(went.by_string, 500);
  EXPECT_LT(went.took, 1.06 * 1000 * 40000);
}

TEST(RunPace, a_first_way_that_is_slow_for_a_while_is_not_left) {
  RunPace<Way> pace = strings_first();
  // Every 40 runs slow for 6.
  const auto at_times = [](Way way, int i, int) { return plain(way, 1000, i / kRun % 40 < 6 ? 3000 : 800); };
  Went went = send(pace, at_times, 40000);
  EXPECT_GT(went.by_string, 19000);
  RunPace<Way> other{Way::string, 1.3};
  went = send(other, at_times, 40000);
  EXPECT_LT(went.by_string, 19000) << "without patience it is";
}

// Whoever comes back in vain rests the longer, and all of that is forgotten once it was quick for long.
TEST(RunPace, the_first_way_is_tried_the_less_the_more_often_it_was_slow_again) {
  RunPace<Way> pace = strings_first();
  // The first runs of a stay are quick, as lines leave them, and the others are not.
  const auto relapses = [](Way way, int, int before) { return plain(way, 1000, before < 2 * kRun ? 800 : 3000); };
  send(pace, relapses, 20000);
  const Went went = send(pace, relapses, 80000);
  EXPECT_LT(went.took, 1.25 * 1000 * 80000);
  const auto quick = [](Way way, int, int) { return plain(way, 1000, 800); };
  EXPECT_GT(send(pace, quick, 40000).by_string, 19000);
  EXPECT_EQ(Way::string, pace.way());
}

}  // namespace
}  // namespace ist::test::run_pace
