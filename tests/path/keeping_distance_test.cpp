// When the reader of a pair's slots stays behind its writer, by paces that are made up.
#include "path/shm/keeping_distance.hpp"

#include "test_world.hpp"

namespace ist::test {
namespace {

constexpr std::uint64_t kRound = 1 << 20;
constexpr std::size_t kMessage = 1 << 16;
constexpr std::uint64_t kOfVerdict = KeepingDistance::kLookAfter * KeepingDistance::kLooks;

class Distance : public ::testing::Test {
 protected:
  KeepingDistance distance_{kRound};
  std::uint64_t now_ = 1;

  void copy(std::uint64_t took) {
    now_ += took;
    distance_.copied(kMessage, [this] { return now_; });
  }
  // So many messages until a round begins, of which each takes so long; nothing if more than that.
  std::uint64_t until_round(std::uint64_t took, std::uint64_t most) {
    for (std::uint64_t n = 0; n < most; ++n) {
      if (distance_.keeps(kMessage)) return n;
      copy(took);
    }
    return most;
  }
  // The rest of one.
  std::uint64_t end_round() {
    std::uint64_t messages = 1;
    while (distance_.keeps(kMessage)) ++messages, copy(1000000);
    return messages;
  }
};

TEST_F(Distance, TheFirstVerdictHasARoundBehindIt) {
  const std::uint64_t first = until_round(100, 1000);
  EXPECT_EQ(kOfVerdict + KeepingDistance::kLookAfter, first) << "the first look tells nothing";
  EXPECT_EQ(kRound / kMessage, end_round());
}

TEST_F(Distance, NeverWhereThereIsNoRound) {
  KeepingDistance never{0};
  for (std::uint64_t n = 0; n < 1000; ++n) {
    EXPECT_FALSE(never.keeps(kMessage));
    now_ += n < 500 ? 100 : 200;
    never.copied(kMessage, [this] { return now_; });
  }
}

TEST_F(Distance, SlowMessagesBeginARoundButNotForEver) {
  until_round(100, 1000);
  end_round();
  for (std::uint32_t round = 0; round < KeepingDistance::kRounds; ++round) {
    EXPECT_GT(until_round(150, 1000), kOfVerdict) << round;
    end_round();
  }
  // In vain: that is usual now.
  EXPECT_GE(until_round(150, 10000), KeepingDistance::kFirstRest * kRound / kMessage - kOfVerdict);
}

TEST_F(Distance, WhatIsAsUsualHasARoundTheLessOftenTheLongerItIsSo) {
  until_round(100, 1000);
  end_round();
  std::uint64_t before = 0;
  for (std::uint64_t rest = KeepingDistance::kFirstRest; rest <= 64; rest *= 2) {
    const std::uint64_t messages = until_round(100, 1000000);
    EXPECT_GE(messages, rest * kRound / kMessage) << rest;
    EXPECT_GT(messages, before);
    before = messages;
    end_round();
  }
}

TEST_F(Distance, ARoundThatHelpedIsFollowedByAnotherSoonWhereItIsSlowAgain) {
  until_round(300, 1000);  // what is usual is slow
  end_round();
  EXPECT_EQ(KeepingDistance::kFirstRest * kRound / kMessage, until_round(100, 10000) / kOfVerdict * kOfVerdict);
  end_round();
  until_round(100, KeepingDistance::kFirstRest * kRound / kMessage / 2);
  EXPECT_LE(until_round(200, 1000), 2 * kOfVerdict);
}

TEST_F(Distance, WhatElseAProgramDoesDoesNotCount) {
  until_round(100, 1000);
  end_round();
  for (int i = 0; i < 20; ++i) {
    for (std::uint64_t n = 0; n < 2 * KeepingDistance::kLookAfter; ++n) {
      ASSERT_FALSE(distance_.keeps(kMessage)) << i;
      copy(100);
    }
    now_ += 100000;
    if (i % 2 == 0) distance_.interrupted();
    if (i * 2 * KeepingDistance::kLookAfter > KeepingDistance::kFirstRest * kRound / kMessage / 2) break;
  }
}

// A window ends, and the next one begins later: in three looks of four, or in one, there is nothing of that.
TEST_F(Distance, AProgramThatPausesBetweenWindowsIsNotSlow) {
  until_round(100, 1000);
  end_round();
  for (std::uint64_t n = 0; n < KeepingDistance::kFirstRest * kRound / kMessage - 2 * kOfVerdict; ++n) {
    ASSERT_FALSE(distance_.keeps(kMessage)) << n;
    if (n % kOfVerdict == 0) now_ += 4 * 500;
    copy(100);
  }
}

TEST_F(Distance, FindsOutAnewWhereAllIsMuchSlowerThanItWas) {
  until_round(100, 1000);
  end_round();
  const std::uint64_t messages = until_round(10000, 1000);
  EXPECT_LE(messages,
            KeepingDistance::kLookAfter * (1 + KeepingDistance::kOften) + kOfVerdict + KeepingDistance::kLookAfter);
  end_round();
  EXPECT_GT(until_round(10000, 1000), 4 * kOfVerdict) << "that is usual now";
}

TEST_F(Distance, WhatIsThereOfAWindowThatEndsIsReadAsItIs) {
  until_round(100, 1000);
  distance_.shown_only(4);
  for (int n = 0; n < 3; ++n) EXPECT_FALSE(distance_.keeps(kMessage)) << n;
  EXPECT_TRUE(distance_.keeps(kMessage)) << "the next window's";
}

TEST_F(Distance, AMessageByItselfEndsTheRound) {
  until_round(100, 1000);
  distance_.shown_only(1);
  EXPECT_FALSE(distance_.keeps(kMessage));
  EXPECT_GT(until_round(100, 10000), KeepingDistance::kFirstRest * kRound / kMessage - kOfVerdict);
}

}  // namespace
}  // namespace ist::test
