// One copy or two: both are tried, and the quicker one stays.
#include <gtest/gtest.h>

#include "protocol/copy_choice.hpp"

namespace ist {
namespace {

using Way = CopyChoice::Way;

// Lets the choice learn about messages of that size; the times per message of either way.
void teach(CopyChoice& choice, Bytes size, double ring, double single) {
  for (int i = 0; i < 2 * CopyChoice::kTrials; ++i) {
    EXPECT_TRUE(choice.learns(size)) << i;
    const Way way = choice.next(size);
    choice.took(way, size, way == Way::ring ? ring : single);
  }
  EXPECT_FALSE(choice.learns(size));
}

TEST(CopyChoice, each_way_is_tried_as_often_as_the_other) {
  CopyChoice choice;
  int single = 0;
  for (int i = 0; i < 2 * CopyChoice::kTrials; ++i) single += choice.next(mebibytes(1)) == Way::single ? 1 : 0;
  EXPECT_EQ(single, CopyChoice::kTrials);
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
