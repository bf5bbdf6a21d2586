// What a rank published before it left is received, whoever else publishes or leaves at that moment; what it did not is given up.
#include "staged_engine.hpp"

namespace ist::test {
namespace {

using LastMessages = StagedEngine;

TEST_F(LastMessages, AReceiveFromARankThatLeftIsGivenUp) {
  Receive receive;
  ASSERT_TRUE(start(receive, 0).ok());
  look();
  EXPECT_FALSE(over(receive));
  board_.mark(Rank{0}, AbortBoard::Fate::left);
  look();
  ASSERT_TRUE(over(receive));
  EXPECT_EQ(IST_ERR_PEER_LEFT, outcome(receive).code());
  EXPECT_EQ(IST_ERR_PEER_LEFT, start(receive, 0).code());
}

TEST_F(LastMessages, OfARankThatLeavesWhileTheLastOnesOfAnotherAreTakenAreReceived) {
  Receive receive;
  Receive any;
  ASSERT_TRUE(start(receive, 0).ok());
  ASSERT_TRUE(start(any, kAnySource).ok());
  board_.mark(Rank{2}, AbortBoard::Fate::left);
  path_->when_empty = [this] {  // after the look at the board, before the operations are gone through
    path_->publish(Rank{0}, 0, "first");
    path_->publish(Rank{0}, 1, "second");
    board_.mark(Rank{0}, AbortBoard::Fate::left);
  };
  look();
  ASSERT_TRUE(over(receive) && over(any));
  EXPECT_TRUE(outcome(receive).ok());
  EXPECT_EQ("first", receive.text());
  EXPECT_TRUE(outcome(any).ok());
  EXPECT_EQ("second", any.text());
  EXPECT_EQ(IST_ERR_PEER_LEFT, start(any, kAnySource).code());
}

TEST_F(LastMessages, BehindAnotherRanksUnfinishedCellAreWaitedFor) {
  Receive before;
  Receive after;
  ASSERT_TRUE(start(before, 0).ok());
  path_->gap = true;
  board_.mark(Rank{0}, AbortBoard::Fate::left);
  look();
  EXPECT_FALSE(over(before));
  ASSERT_TRUE(start(after, 0).ok());
  look();
  EXPECT_FALSE(over(before) || over(after));
  path_->publish(Rank{0}, 0, "hidden");
  path_->gap = false;
  look();
  ASSERT_TRUE(over(before) && over(after));
  EXPECT_TRUE(outcome(before).ok());
  EXPECT_EQ("hidden", before.text());
  EXPECT_EQ(IST_ERR_PEER_LEFT, outcome(after).code());
}

// A blocking receive has no operation that could be ended: it asks, however much else comes.
TEST_F(LastMessages, ABlockingReceiveFromAnybodyEndsThoughAnotherCommunicatorKeepsItBusy) {
  const auto both = std::make_shared<const Group>(std::vector<Rank>{kMe, Rank{0}}, kRanks, "both");
  std::array<std::byte, 16> buffer{};
  AwaitedReceive receive;
  receive.pattern = {kContext + 1, kAnySource, kTag};
  receive.buffer = buffer.data();
  receive.room = Bytes{buffer.size()};
  receive.group = both.get();
  std::uint32_t number = 0;
  const auto look_busily = [&] {
    path_->publish(Rank{2}, number++, "for somebody else");
    bool moved = false;
    return engine_->look_for(receive, moved);
  };
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(look_busily());
  board_.mark(Rank{0}, AbortBoard::Fate::left);
  bool open = true;
  for (int i = 0; i < 3 && open; ++i) open = look_busily();
  EXPECT_FALSE(open) << "nobody is left who could send";
  EXPECT_FALSE(receive.received);
}

TEST_F(LastMessages, AreWaitedForNoMoreWhenSomebodyDied) {
  Receive receive;
  ASSERT_TRUE(start(receive, 0).ok());
  path_->gap = true;
  board_.mark(Rank{0}, AbortBoard::Fate::left);
  look();
  EXPECT_FALSE(over(receive));
  board_.mark(Rank{2}, AbortBoard::Fate::dead);
  look();
  ASSERT_TRUE(over(receive));
  EXPECT_EQ(IST_ERR_PEER_DEAD, outcome(receive).code());
}

}  // namespace
}  // namespace ist::test
