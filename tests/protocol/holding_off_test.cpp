// A sender that runs ahead and holds its reader off: when it does, and which slots it shows.
#include "protocol/holding_off.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ring_pair.hpp"

namespace ist::test {
namespace {

using Holding = HoldingOff<RingWay>;
constexpr std::uint64_t kRound = 64;
constexpr std::uint64_t kBurst = 24;

// So many slots that are filled so, of which there always are enough. How many rounds began.
int fill(Holding& holding, std::uint64_t slots, bool ahead, RingWay way = RingWay::loops) {
  int begun = 0;
  for (std::uint64_t i = 0; i < slots; ++i) {
    holding.filled(ahead, way);
    if (!holding.is_wanted()) continue;
    holding.begin(kRound, kBurst);
    ++begun;
  }
  return begun;
}

TEST(HoldingOff, BeginsBehindSlotsThatWereFilledNearUnlessThoseWereFew) {
  Holding holding;
  EXPECT_EQ(0, fill(holding, 1000, true)) << "nothing was filled near";
  fill(holding, Holding::kForgotten - 1, false);
  EXPECT_EQ(0, fill(holding, 1000, true));
  fill(holding, Holding::kForgotten, false);
  EXPECT_EQ(1, fill(holding, 1000, true)) << "once";
}

TEST(HoldingOff, BeginsWhereTheWayChangesButNotEveryFewSlots) {
  Holding holding;
  fill(holding, 100, true);
  EXPECT_EQ(1, fill(holding, 100, true, RingWay::strings));
  for (int i = 0; i < 10; ++i) {
    fill(holding, 3, true, RingWay::loops);
    EXPECT_EQ(0, fill(holding, 3, true, RingWay::strings)) << i;
  }
}

TEST(HoldingOff, ShowsNoneOfARoundBeforeABurstIsFull) {
  Holding holding;
  fill(holding, 100, false);
  EXPECT_FALSE(holding.holds(0));
  fill(holding, 1, true);
  for (std::uint64_t slot = 0; slot < kRound; ++slot) {
    ASSERT_TRUE(holding.is_going_on()) << slot;
    EXPECT_TRUE(holding.holds(kBurst - 1));
    EXPECT_FALSE(holding.holds(kBurst));
    fill(holding, 1, true);
  }
  EXPECT_FALSE(holding.is_going_on());
  EXPECT_FALSE(holding.holds(0));
  holding.want();
  fill(holding, 1, true);
  EXPECT_TRUE(holding.holds(23)) << "the last slots were slow";
  fill(holding, 1, false);
  EXPECT_FALSE(holding.holds(23)) << "it runs ahead no more";
}

TEST(HoldingOff, StaysWantedUntilThereIsEnoughToBeFilledOrItRunsAheadNoMore) {
  Holding holding;
  fill(holding, 100, false);
  for (int i = 0; i < 100; ++i) {
    holding.filled(true, RingWay::loops);
    EXPECT_TRUE(holding.is_wanted()) << i;
    EXPECT_FALSE(holding.holds(0)) << i;
  }
  holding.filled(false, RingWay::loops);
  EXPECT_FALSE(holding.is_wanted());
  EXPECT_EQ(0, fill(holding, 1, true));
}

// A ring of 64 places for slots of windows, whose sender knows how long slots take that are near. Few windows each: how slow a slot was, a clock says.
class HeldRing : public testing::Test {
 protected:
  HeldRing() {
    EXPECT_EQ(0U, most_held(8)) << "how long slots take that are near is not known";
    for (int i = 0; i < 40; ++i) EXPECT_EQ(0U, most_held(1));
  }
  static RingShape shape() {
    RingShape made;
    made.slots = 8;
    made.slot_bytes = 65536;
    made.few_sources = true;
    return made;
  }
  // Eight slots each, or thirty-two in a window that does not run ahead.
  void send(int messages, std::uint64_t bytes = 65536) {
    for (int i = 0; i < messages; ++i) pair_.prepare_and_send(bytes, messages == 1 ? 8192 : 2048, false, false);
  }
  // Most slots that were full and not shown between two steps of eight, while these went.
  std::uint64_t most_held(int messages, std::uint64_t bytes = 65536) {
    const std::size_t first = pair_.size();
    send(messages, bytes);
    std::uint64_t most = 0;
    while (pair_.step_sender()) most = std::max(most, pair_.writer().pending());
    EXPECT_EQ(0U, pair_.writer().pending()) << "the window has ended, or the ring is full";
    pair_.run();
    for (std::size_t i = first; i < pair_.size(); ++i) pair_.expect_whole(i);
    return most;
  }
  RingPair pair_{17, shape()};
};

TEST_F(HeldRing, AWindowIsShownInBurstsForARound) {
  EXPECT_EQ(16U, most_held(8)) << "eight slots a step, of 24 of a round of 64";
  EXPECT_EQ(0U, most_held(8)) << "the round is over";
}

TEST_F(HeldRing, AFewSlotsNearLeaveTheOthersAsTheyWere) {
  EXPECT_EQ(16U, most_held(8));
  EXPECT_EQ(0U, most_held(1));
  EXPECT_EQ(0U, most_held(8));
}

TEST_F(HeldRing, AWindowOfLessThanTwoBurstsIsShownAtOnce) {
  EXPECT_EQ(0U, most_held(8, 40960)) << "forty slots in all, of which 24 would be too many";
  EXPECT_EQ(16U, most_held(9, 49152)) << "fifty-four";
}

TEST_F(HeldRing, AMessageOfADeviceBehindEndsIt) {
  const std::size_t first = pair_.size();
  send(8);
  EXPECT_TRUE(pair_.step_sender());
  EXPECT_EQ(8U, pair_.writer().pending());
  pair_.prepare_and_send(65536, 4096, false, true);
  pair_.step_sender();
  EXPECT_EQ(0U, pair_.writer().pending()) << "it runs ahead no more";
  pair_.run();
  for (std::size_t i = first; i < pair_.size(); ++i) pair_.expect_whole(i);
}

TEST_F(HeldRing, AnAbandonedSenderEndsMessagesOnceWhoseSlotsAreHeldBack) {
  const std::size_t first = pair_.size();
  send(8);
  EXPECT_TRUE(pair_.step_sender());
  EXPECT_EQ(8U, pair_.writer().pending());
  pair_.abandon_sender({IST_ERR_PEER_DEAD, "rank 7 of the test has died"});
  EXPECT_TRUE(pair_.sender().idle());
  for (std::size_t i = first; i < pair_.size(); ++i) {
    EXPECT_TRUE(pair_[i].sent) << i;
    EXPECT_EQ(pair_[i].sender.status.code(), IST_ERR_PEER_DEAD) << i;
  }
}

}  // namespace
}  // namespace ist::test
