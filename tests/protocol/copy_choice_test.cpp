// One copy or two: both are tried, and the quicker one stays.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "protocol/copy_beliefs.hpp"

namespace ist {
namespace {

using Way = CopyChoice::Way;

// Lets the choice learn about messages of that size; the times per message of either way.
void teach(CopyChoice& choice, Bytes size, double ring, double single) {
  for (int i = 0; i < 2 * CopyChoice::first_trials(size); ++i) {
    EXPECT_TRUE(choice.learns(size)) << i;
    const Way way = choice.next(size);
    choice.took(way, size, way == Way::ring ? ring : single);
  }
  EXPECT_FALSE(choice.learns(size));
}

TEST(CopyChoice, each_way_is_tried_as_often_as_the_other) {
  CopyChoice choice;
  int single = 0;
  for (int i = 0; i < 2 * CopyChoice::first_trials(mebibytes(1)); ++i)
    single += choice.next(mebibytes(1)) == Way::single ? 1 : 0;
  EXPECT_EQ(single, CopyChoice::first_trials(mebibytes(1)));
  // Again, and of other numbers of trials.
  for (const std::uint64_t kilobytes : {64U, 128U, 256U, 512U, 16384U}) {
    const Bytes size = kibibytes(kilobytes);
    const int trials = CopyChoice::first_trials(size);
    std::vector<Way> ways;
    for (int i = 0; i < 2 * trials; ++i) ways.push_back(choice.next(size));
    EXPECT_EQ(trials, std::count(ways.begin(), ways.end(), Way::single)) << kilobytes;
    EXPECT_EQ(
        std::vector<Way>(ways.begin(), ways.begin() + 8),
        (std::vector<Way>{Way::ring, Way::ring, Way::ring, Way::ring, Way::single, Way::single, Way::single, Way::single}));
  }
}

// A copy out of the same bytes as the one before is quick, as it is where all go so.
TEST(CopyChoice, a_way_that_is_quick_behind_itself_is_found) {
  CopyChoice choice;
  constexpr Bytes kSize = kibibytes(256);
  Way before = Way::ring;
  const auto go = [&] {
    const bool learns = choice.learns(kSize);
    const Way way = learns ? choice.next(kSize) : choice.chosen(kSize);
    const double single = before == Way::single ? 12e-6 : 25e-6;
    if (learns) choice.took(way, kSize, way == Way::ring ? 17e-6 : single);
    before = way;
    return way;
  };
  for (int i = 0; i < 1000; ++i) go();
  int found = 0;
  for (int i = 0; i < 1000; ++i) found += go() == Way::single ? 1 : 0;
  EXPECT_GT(found, 950);
}

TEST(CopyChoice, the_quicker_way_stays) {
  CopyChoice choice;
  teach(choice, mebibytes(1), 100e-6, 60e-6);
  teach(choice, mebibytes(8), 800e-6, 900e-6);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(choice.next(mebibytes(1)), Way::single);
    EXPECT_EQ(choice.next(mebibytes(8)), Way::ring);
  }
}

TEST(CopyChoice, a_rank_that_sends_as_well_counts_both_copies_of_the_ring) {
  const auto taught = [](double both) {
    CopyChoice choice;
    for (int i = 0; i < 2 * CopyChoice::kTrials; ++i) {
      const Way way = choice.next(mebibytes(1));
      choice.took(way, mebibytes(1), way == Way::ring ? 60e-6 : 80e-6, way == Way::ring ? both : 0);
    }
    return choice;
  };
  for (const double both : {0.0, 100e-6}) {  // not told: twice as long
    EXPECT_EQ(taught(both).chosen(mebibytes(1)), Way::ring);
    EXPECT_EQ(taught(both).chosen(mebibytes(1), true), Way::single);
  }
  EXPECT_EQ(taught(70e-6).chosen(mebibytes(1), true), Way::ring) << "the sender's copy took next to nothing";
  EXPECT_EQ(copy_choice_of(MachineProfile{}).chosen(mebibytes(1), true), Way::ring) << "nothing is known";
}

// What `isthmus model fit` found, in seconds per byte.
MachineProfile machine_where(double ring_2m, double single_2m) {
  MachineProfile machine;
  machine.two_copies_2m = ring_2m;
  machine.one_copy_2m = single_2m;
  machine.two_copies_8m = 0.1e-9;
  return machine;
}

TEST(CopyChoice, begins_with_what_was_measured_on_the_machine) {
  for (const bool single : {true, false}) {
    CopyChoice choice = copy_choice_of(single ? machine_where(0.2e-9, 0.1e-9) : machine_where(0.1e-9, 0.2e-9));
    for (const Bytes size : {mebibytes(1), mebibytes(2), Bytes{(4 << 20) - 1}}) {
      EXPECT_EQ(choice.chosen(size), single ? Way::single : Way::ring) << size.value;
      for (int i = 0; i < CopyChoice::kFirstPause / 2; ++i)
        EXPECT_FALSE(choice.learns(size)) << "the first messages try nothing";
    }
    // Of these nothing was measured, or only one of two.
    for (const Bytes size : {kibibytes(64), Bytes{(1 << 20) - 1}, mebibytes(4), mebibytes(64)})
      EXPECT_TRUE(choice.learns(size)) << size.value;
  }
}

TEST(CopyChoice, of_long_messages_the_longest_that_was_measured_tells) {
  MachineProfile machine;
  machine.two_copies_8m = 0.2e-9;
  machine.one_copy_8m = 0.1e-9;
  const CopyChoice choice = copy_choice_of(machine);
  for (const Bytes size : {mebibytes(4), mebibytes(8), mebibytes(1 << 20)}) EXPECT_EQ(choice.chosen(size), Way::single);
  EXPECT_EQ(choice.chosen(Bytes{(4 << 20) - 1}), Way::ring);
  EXPECT_EQ(belief_about(Bytes{65535}), nullptr);
  EXPECT_EQ(belief_about(Bytes{65536})->size, kibibytes(128));
  EXPECT_EQ(belief_about(Bytes{~std::uint64_t{0}})->size, mebibytes(8));
}

TEST(CopyChoice, what_was_measured_is_tried_again_and_not_believed_for_ever) {
  CopyChoice choice = copy_choice_of(machine_where(0.1e-9, 0.2e-9));
  const Bytes size = mebibytes(2);
  for (int round = 0; round < 2; ++round) {
    while (!choice.learns(size)) {
    }
    for (int i = 0; i < 2 * (round == 0 ? CopyChoice::first_trials(size) : CopyChoice::kTrialsAgain); ++i) {
      const Way way = choice.next(size);
      choice.took(way, size, (way == Way::ring ? 0.3e-9 : 0.2e-9) * static_cast<double>(size.value));
    }
  }
  EXPECT_EQ(choice.chosen(size), Way::single) << "the ring is slower than it was, for two rounds now";
}

// In pages that are touched for the first time the ring is slow, which says nothing of it once it has gone round.
TEST(CopyChoice, a_ring_that_nobody_used_is_tried_until_it_has_gone_round) {
  EXPECT_EQ(CopyChoice::first_trials(kibibytes(128)), 66);
  EXPECT_EQ(CopyChoice::first_trials(kibibytes(255)), 66);
  EXPECT_EQ(CopyChoice::first_trials(mebibytes(64)), CopyChoice::kTrials);
  MachineProfile believed;
  believed.two_copies_128k = 0.2e-9;
  believed.one_copy_128k = 0.1e-9;
  const Bytes size = kibibytes(128);
  for (CopyChoice choice : {CopyChoice{}, copy_choice_of(believed)}) {
    std::uint64_t through = 0;
    for (int n = 0; n < 600; ++n) {
      const bool timed = choice.learns(size);
      const Way way = timed ? choice.next(size) : choice.chosen(size);
      if (way == Way::ring) through += size.value;
      const bool cold = through <= kMostLap;
      if (timed) choice.took(way, size, way == Way::single ? 20e-6 : cold ? 70e-6 : 9e-6);
    }
    EXPECT_EQ(choice.chosen(size), Way::ring);
  }
}

// One more round of trials, of which there are fewer; how many messages went before it.
int teach_again(CopyChoice& choice, Bytes size, double ring, double single) {
  int carried = 1;
  while (!choice.learns(size)) ++carried;
  for (int i = 0; i < 2 * CopyChoice::kTrialsAgain; ++i) {
    const Way way = choice.next(size);
    choice.took(way, size, way == Way::ring ? ring : single);
  }
  return carried;
}

TEST(CopyChoice, a_bad_moment_of_the_quicker_way_is_not_believed_for_ever) {
  CopyChoice choice;
  const Bytes size = kibibytes(128);
  teach(choice, size, 20e-6, 13e-6);
  EXPECT_EQ(choice.chosen(size), Way::single);
  // The first call of learns() after teaching is in teach().
  EXPECT_EQ(teach_again(choice, size, 2.4e-6, 13e-6), CopyChoice::kFirstPause);
  EXPECT_EQ(choice.chosen(size), Way::ring);
  // One bad round does not turn it back, a second one does.
  EXPECT_EQ(teach_again(choice, size, 20e-6, 13e-6), 4 * CopyChoice::kFirstPause + 1);
  EXPECT_EQ(choice.chosen(size), Way::ring);
  EXPECT_EQ(teach_again(choice, size, 20e-6, 13e-6), 16 * CopyChoice::kFirstPause + 1);
  EXPECT_EQ(choice.chosen(size), Way::single);
  for (int round = 0; round < 6; ++round) EXPECT_LE(teach_again(choice, size, 20e-6, 13e-6), CopyChoice::kLongestPause + 1);
}

TEST(CopyChoice, what_is_not_tried_meanwhile_goes_the_way_known_so_far) {
  CopyChoice choice;
  const Bytes size = mebibytes(1);
  EXPECT_EQ(choice.chosen(size), Way::ring);
  teach(choice, size, 100e-6, 60e-6);
  while (!choice.learns(size)) {
  }
  EXPECT_EQ(choice.chosen(size), Way::single);
}

TEST(CopyChoice, octaves_are_learned_apart_and_sizes_within_one_together) {
  CopyChoice choice;
  teach(choice, kibibytes(128), 10e-6, 5e-6);
  EXPECT_FALSE(choice.learns(kibibytes(200)));
  EXPECT_EQ(choice.next(kibibytes(200)), Way::single);
  EXPECT_TRUE(choice.learns(kibibytes(256)));
  EXPECT_TRUE(choice.learns(Bytes{(std::uint64_t{1} << 40) + 1}));
}

TEST(CopyChoice, one_late_sender_does_not_spoil_a_way) {
  CopyChoice choice;
  const Bytes size = mebibytes(2);
  int singles = 0;
  for (int i = 0; i < 2 * CopyChoice::kTrials; ++i) {
    const Way way = choice.next(size);
    const bool late = way == Way::single && singles++ == 0;
    choice.took(way, size, late ? 1.0 : (way == Way::single ? 50e-6 : 70e-6));
  }
  EXPECT_EQ(choice.next(size), Way::single);
}

TEST(CopyChoice, a_way_that_was_never_timed_is_not_taken) {
  CopyChoice choice;
  for (int i = 0; i < 2 * CopyChoice::kTrials; ++i)
    if (choice.next(mebibytes(1)) == Way::ring) choice.took(Way::ring, mebibytes(1), 1.0);
  EXPECT_EQ(choice.next(mebibytes(1)), Way::ring);
}

}  // namespace
}  // namespace ist
