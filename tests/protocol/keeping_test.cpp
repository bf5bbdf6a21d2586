// A message whose receive is not there yet is kept; where memory runs out at that moment it stays where it is, and comes later, in its turn.
#include <cstdlib>
#include <limits>
#include <new>

#include "staged_engine.hpp"

namespace {

constexpr int kEnough = std::numeric_limits<int>::max();
int left = kEnough;  // times that memory is given
int refused = 0;     // times that it is not, before

}  // namespace

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
  // Calls that move messages, the first of which gets memory once, the next one twice and so on, until all is done that can be. How many ran out of it.
  int look_with_little_memory() {
    int failed = 0;
    for (int given = 0; given < 100; ++given) {
      left = given;
      try {
        engine_->progress();
        left = kEnough;
        return failed;
      } catch (const std::bad_alloc&) {
        left = kEnough;
        ++failed;
      }
    }
    return failed;
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
