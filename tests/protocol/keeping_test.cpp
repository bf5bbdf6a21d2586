// A message whose receive is not there yet is kept; where memory runs out at that moment it stays where it is, and comes later, in its turn.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "base/trace.hpp"
#include "little_memory.hpp"
#include "path/slot_ring.hpp"
#include "protocol/pipelined.hpp"
#include "staged_engine.hpp"
#include "staged_kind.hpp"

namespace ist::test {

int left = kEnough;
int refused = 0;

}  // namespace ist::test

using ist::test::kEnough, ist::test::left, ist::test::refused;

// In place of the C++ library's; sanitizers see the C library's.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (refused > 0) --refused, throw std::bad_alloc();
  void* const memory = left > 0 ? std::malloc(size == 0 ? 1 : size) : nullptr;
  if (memory == nullptr) throw std::bad_alloc();
  if (left != kEnough) --left;
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace ist::test {
namespace {

class Keeping : public StagedEngine {
 protected:
  // Looks until all is done that can be. How many ran out of memory.
  int look_with_little_memory() {
    return with_little_memory([this] { engine_->progress(); });
  }
  // By one clearance, of all the room there is.
  void expect_asked(const Receive& receive) {
    path_->only_link().takes = true;
    look();
    path_->only_link().takes = false;
    EXPECT_FALSE(over(receive));
    const std::vector<Envelope>& all = path_->only_link().all;
    ASSERT_EQ(announced_, all.size());
    EXPECT_EQ(EnvelopeType::clear, all.back().type);
    EXPECT_EQ(announced_ - 1, all.back().sequence);
    EXPECT_EQ(receive.id.wire(), all.back().receiver_op);
    EXPECT_EQ(receive.buffer.size(), all.back().bytes);
  }
  std::uint32_t announced_ = 0;
  void expect_in_order(std::initializer_list<const char*> texts) {
    for (const char* text : texts) {
      Receive receive;
      ASSERT_TRUE(start(receive, 0).ok());
      look();
      ASSERT_TRUE(over(receive)) << text << " is lost";
      EXPECT_EQ(text, receive.text());
      EXPECT_TRUE(outcome(receive).ok());
    }
  }
  void expect_truncated(const Receive& receive) {
    ASSERT_TRUE(over(receive));
    EXPECT_EQ(0, std::memcmp(kLong, receive.buffer.data(), receive.buffer.size()));
    const Status found = outcome(receive);
    EXPECT_EQ(IST_ERR_TRUNCATE, found.code());
    const std::size_t once = found.text().find("met a receive of 16 bytes");
    EXPECT_NE(std::string::npos, once) << found.text();
    EXPECT_EQ(std::string::npos, found.text().find("met a receive of", once + 1)) << found.text();
  }
  static constexpr const char* kLong = "more than sixteen bytes";
};

TEST_F(Keeping, WhatCannotBeKeptStaysInItsSlot) {
  path_->publish(Rank{0}, 0, "first");
  path_->publish(Rank{0}, 1, "second");
  EXPECT_GT(look_with_little_memory(), 1);
  expect_in_order({"first", "second"});
}

TEST_F(Keeping, WhatCannotBeKeptStaysInItsCellWhichIsGivenBackOnce) {
  path_->publish(Rank{0}, 0, "first", true);
  path_->publish(Rank{0}, 1, "second", true);
  EXPECT_GT(look_with_little_memory(), 1);
  EXPECT_EQ(2, path_->released);
  expect_in_order({"first", "second"});
}

TEST_F(Keeping, WhatCannotBePutAsideForItsTurnStaysToo) {
  path_->publish(Rank{0}, 1, "second");
  EXPECT_GT(look_with_little_memory(), 0);
  path_->publish(Rank{0}, 0, "first");
  look();
  expect_in_order({"first", "second"});
}

// Nothing else comes from that rank, which would ask for it.
TEST_F(Keeping, WhatWasPutAsideAndCannotBeKeptInItsTurnIsTakenLater) {
  path_->publish(Rank{0}, 2, "third", true);
  path_->publish(Rank{0}, 1, "second");
  look();
  path_->publish(Rank{0}, 0, "first");
  EXPECT_GT(look_with_little_memory(), 2);
  EXPECT_EQ(1, path_->released);
  expect_in_order({"first", "second", "third"});
}

// Who looks for nobody throws at nobody.
TEST_F(Keeping, WhatALookOfTheLibrarysOwnCannotKeepStaysToo) {
  path_->publish(Rank{0}, 0, "first");
  refused = 1;
  EXPECT_FALSE(look_for_nobody(*engine_));
  EXPECT_EQ(0, refused);
  expect_in_order({"first"});
}

// Who waits while an exception is on its way can take no other one.
TEST_F(Keeping, AWaitForTheEndAloneThrowsNothing) {
  Receive receive;
  ASSERT_TRUE(start(receive, 2).ok());
  path_->publish(Rank{0}, 0, "first");
  path_->publish(Rank{2}, 0, "second");
  refused = 3;
  wait_for_end(*engine_, receive.id);
  EXPECT_EQ(0, refused);
  EXPECT_EQ("second", receive.text());
  EXPECT_EQ(nullptr, engine_->find(receive.id));
  expect_in_order({"first"});
}

// Of a rank that leaves all is taken before what it can end no more is given up, also if that takes two attempts.
TEST_F(Keeping, WhatARankLeftBehindIsLookedForAgain) {
  Receive receive;
  ASSERT_TRUE(start(receive, 2).ok());
  path_->publish(Rank{0}, 0, "first");
  board_.mark(Rank{2}, AbortBoard::Fate::left);
  refused = 1;
  EXPECT_THROW(engine_->progress(), std::bad_alloc);
  EXPECT_FALSE(over(receive));
  look();
  ASSERT_TRUE(over(receive));
  EXPECT_EQ(IST_ERR_PEER_LEFT, outcome(receive).code());
  expect_in_order({"first"});
}

// An announcement is heard once, wherever on the way to the question for its bytes memory runs out.
TEST_F(Keeping, WhatIsAnnouncedToAPostedReceiveIsAskedForOnce) {
  for (const std::size_t bytes : {16U, 100U}) {  // it fits, and does not
    Receive receive;
    ASSERT_TRUE(start(receive, 0).ok());
    path_->announce(Rank{0}, announced_++, bytes);
    EXPECT_GE(look_with_little_memory(), 0);
    expect_asked(receive);
  }
}

TEST_F(Keeping, WhatIsAnnouncedAheadOfItsReceiveIsAskedForOnce) {
  for (const std::size_t bytes : {16U, 100U}) {
    path_->announce(Rank{0}, announced_++, bytes);
    EXPECT_GT(look_with_little_memory(), 0);
    Receive spare;  // so that there is an operation
    ASSERT_TRUE(start(spare, 2).ok() && engine_->cancel_receive(spare.id));
    Receive receive;
    refused = 2;  // on the way from the receive to the question
    ASSERT_TRUE(start(receive, 0).ok());
    refused = 0;
    look_with_little_memory();
    expect_asked(receive);
  }
}

TEST_F(Keeping, WhatIsTooLongForItsReceiveIsTruncatedOnceThereIsMemoryToSaySo) {
  for (const bool in_cell : {false, true}) {
    Receive receive;
    ASSERT_TRUE(start(receive, in_cell ? kAnySource : 0).ok());
    path_->publish(Rank{0}, announced_++, kLong, in_cell);
    path_->publish(Rank{0}, announced_++, "second");
    EXPECT_GT(look_with_little_memory(), 2);
    expect_truncated(receive);
    EXPECT_EQ(in_cell ? 1 : 0, path_->released);
    expect_in_order({"second"});
  }
}

TEST_F(Keeping, WhatWaitsForMemoryToBeTruncatedHasMetItsReceive) {
  Receive receive;
  ASSERT_TRUE(start(receive, kAnySource).ok());
  path_->publish(Rank{0}, 0, kLong);
  refused = 1;
  EXPECT_THROW(engine_->progress(), std::bad_alloc);
  EXPECT_FALSE(over(receive));
  EXPECT_TRUE(engine_->must_poll()) << "nothing else would look for it";
  engine_->cancel(receive.id);
  EXPECT_FALSE(over(receive)) << "what has met a message cannot be cancelled";
  look();
  expect_truncated(receive);
}

TEST_F(Keeping, WhatIsTooLongAndThereAheadOfItsReceiveStaysUntilThereIsMemory) {
  path_->publish(Rank{0}, 0, kLong);
  path_->publish(Rank{0}, 1, "second");
  look();
  Receive receive;
  EXPECT_GT(with_little_memory([&] { ASSERT_TRUE(start(receive, 0).ok()); }), 2);
  expect_truncated(receive);
  expect_in_order({"second"});
}

TEST_F(Keeping, WhatAMatchedProbeFoundStaysUntilThereIsMemory) {
  path_->publish(Rank{0}, 0, kLong);
  look();
  const auto message = engine_->claim(0, kTag, Scope{kContext, nullptr});
  ASSERT_TRUE(message.ok() && message->value != 0);
  Receive receive;
  receive.id = *message;
  const Piece piece = host_piece(receive.buffer.data(), Bytes{receive.buffer.size()});
  EXPECT_GT(with_little_memory([&] { ASSERT_TRUE(engine_->receive_claimed(receive.id, piece).ok()); }), 0);
  expect_truncated(receive);
}

// A receive that is not started takes no message, however far its start came: here to what a rank left behind.
TEST_F(Keeping, AReceiveThatThereIsNoMemoryToStartTakesNoMessage) {
  path_->publish(Rank{2}, 0, "other");
  path_->publish(Rank{0}, 0, "first");
  board_.mark(Rank{0}, AbortBoard::Fate::left);
  Receive receive;
  EXPECT_GT(with_little_memory([&] { ASSERT_TRUE(start(receive, 0).ok()); }), 2);
  ASSERT_TRUE(over(receive));
  EXPECT_EQ("first", receive.text());
}

// Its place in the order is another one's, or whoever comes after it would be waited for in vain.
TEST_F(Keeping, ASendThatThereIsNoMemoryForTakesNoPlace) {
  std::array<char, 8> out{};
  bool done = false;
  const Piece piece = host_piece(out.data(), Bytes{out.size()});
  const auto send = [&] { return engine_->start_send(piece, Rank{0}, kTag, Scope{kContext, nullptr}, &done); };
  EXPECT_GT(with_little_memory([&] { ASSERT_TRUE(send().ok()); }), 1);
  path_->only_link().takes = true;
  ASSERT_TRUE(send().ok());
  look();
  const std::vector<Envelope>& all = path_->only_link().all;
  ASSERT_EQ(2U, all.size());
  for (std::uint32_t i = 0; i < 2; ++i) EXPECT_EQ(i, all[i].sequence);
}

TEST_F(Keeping, ASendThatThereIsNoMemoryToTakeBackStays) {
  constexpr std::uint32_t kSends = 20;  // of which some find no memory for what they leave behind
  std::array<char, 8> out{};
  int failed = 0;
  for (std::uint32_t i = 0; i < kSends; ++i) {
    bool done = false;
    path_->only_link().takes = true;
    const auto sent =
        engine_->start_send(host_piece(out.data(), Bytes{out.size()}), Rank{0}, kTag, Scope{kContext, nullptr}, &done);
    ASSERT_TRUE(sent.ok() && !done);
    path_->only_link().takes = false;
    failed += with_little_memory([&] { engine_->cancel(*sent); });
    EXPECT_TRUE(engine_->take(*sent).cancelled);
  }
  EXPECT_GT(failed, 0);
  path_->only_link().takes = true;
  look();
  std::vector<std::uint32_t> places;
  for (const Envelope& each : path_->only_link().all) places.push_back(each.sequence);
  std::sort(places.begin(), places.end());
  ASSERT_EQ(std::size_t{2 * kSends}, places.size());
  for (std::uint32_t i = 0; i < places.size(); ++i) EXPECT_EQ(i, places[i]);
}

// What a world failed of is not forgotten, because a later look has no memory.
TEST_F(Keeping, AFailedWorldStaysSo) {
  board_.mark(Rank{0}, AbortBoard::Fate::dead);
  look();
  const auto alone = std::make_shared<const Group>(std::vector{kMe}, kRanks, "alone");
  EXPECT_EQ(IST_ERR_PEER_DEAD, engine_->check_source(kAnySource, alone.get()).code());
  path_->publish(Rank{2}, 0, "first");
  board_.mark(Rank{2}, AbortBoard::Fate::left);
  refused = 1;
  EXPECT_THROW(engine_->progress(), std::bad_alloc);
  EXPECT_EQ(IST_ERR_PEER_DEAD, engine_->check_source(kAnySource, alone.get()).code());
  look();
  EXPECT_EQ(IST_ERR_PEER_DEAD, engine_->check_source(kAnySource, alone.get()).code());
}

// Of two messages that a ring brought; a trace takes memory as each of them ends.
TEST_F(Keeping, WhatARingBroughtIsOverOnce) {
  const std::string file = testing::TempDir() + "keeping_trace_%r.json";
  const auto trace = std::move(Trace::open(file, kMe)).value();
  make_engine(trace.get());
  StagedRing ring;
  path_->only_link().ring = &ring.reader;
  std::array<Receive, 2> receives;
  std::array<std::array<char, 16>, 2> sent{};
  path_->only_link().takes = true;
  RingSender sender{*kinds_, ring.writer, 4};
  for (std::uint32_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(start(receives[i], 0).ok());
    path_->announce(Rank{0}, i, sent[i].size());
    look();
    sent[i].fill(static_cast<char>('a' + i));
    sender.add({i, receives[i].id.wire(), host_piece(sent[i].data(), Bytes{sent[i].size()}), Bytes{64}, true});
  }
  std::vector<Finished> ended;
  while (!sender.idle()) sender.step(ended);
  look_with_little_memory();
  for (std::uint32_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(over(receives[i]));
    EXPECT_EQ(sent[i], receives[i].buffer);
    EXPECT_TRUE(outcome(receives[i]).ok());
  }
  EXPECT_EQ(2U, engine_->traffic(Rank{0}).received[static_cast<std::size_t>(Way::ring)].messages);
}

// Of either side's first copy between memory and a slot: every slot is accounted for, and no side takes for whole what is not.
TEST_F(Keeping, ARingsSlotForWhoseCopyThereIsNoMemoryEndsItsMessageOnBothSides) {
  kinds_->add("staged", Result<std::unique_ptr<MemoryKind>>{std::make_unique<StagedKind>()});
  for (const bool fills : {true, false}) {
    SCOPED_TRACE(fills ? "into a slot" : "out of one");
    StagedRing ring;
    std::array<std::byte, 40> sent{};
    std::array<std::byte, 40> got{};
    sent.fill(std::byte{7});
    const Piece in_host = host_piece(fills ? got.data() : sent.data(), Bytes{sent.size()});
    const Piece staged = StagedKind::piece_of(fills ? sent.data() : got.data(), sent.size());
    RingSender sender{*kinds_, ring.writer, 4};
    RingReceiver receiver{*kinds_, 4, "rank 0"};
    receiver.connect(ring.reader);
    std::vector<Finished> ended;
    std::vector<Finished> over;
    ended.reserve(100);
    over.reserve(100);
    for (const bool little : {true, false}) {
      receiver.expect(9, fills ? in_host : staged, false);
      sender.add({3, 9, fills ? staged : in_host, Bytes{16}, false});
      if (!fills) sender.step(ended);
      left = little ? 0 : kEnough;
      if (fills)
        sender.step(ended);
      else
        receiver.step(over);
      left = kEnough;
      for (int i = 0; i < 20; ++i) {
        sender.step(ended);
        receiver.step(over);
      }
      ASSERT_TRUE(sender.idle() && receiver.idle());
      ASSERT_EQ(1U, over.size());
      EXPECT_EQ(over[0].status.ok(), !little);
      EXPECT_TRUE(little || got == sent);
      over.clear();
    }
  }
}

TEST_F(Keeping, WhatIsUnderWayMovesOnMeanwhile) {
  std::array<char, 8> out{};
  bool done = false;
  const auto sent =
      engine_->start_send(host_piece(out.data(), Bytes{out.size()}), Rank{0}, kTag, Scope{kContext, nullptr}, &done);
  ASSERT_TRUE(sent.ok() && !done);
  path_->publish(Rank{0}, 0, "first");
  path_->only_link().takes = true;
  refused = 1;
  EXPECT_THROW(engine_->progress(), std::bad_alloc);
  EXPECT_EQ(1, path_->only_link().taken) << "the announcement that waited for room";
  expect_in_order({"first"});
}

}  // namespace
}  // namespace ist::test
