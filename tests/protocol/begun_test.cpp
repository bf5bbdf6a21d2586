// Receives of a message that is being written: what they copy before it is whole, and whose it is where its writer does not get on. One thread, which
// writes the words of the slots itself.
#include <algorithm>
#include <thread>

#include "path/shm/pair_slots.hpp"
#include "staged_engine.hpp"

namespace ist::test {
namespace {

constexpr std::size_t kSize = 3 * kPieceShown;
constexpr Rank kFrom{0};
constexpr std::byte kUntouched{0xa5};

class Begun : public StagedEngine {
 protected:
  Begun() {
    path_->only_link().slots = &reader_;
    path_->only_link().slot_limit = Bytes{shape_.longest};
    for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<std::byte>(i * 31 + i / 256);
    buffer_.assign(kSize + 100, kUntouched);
  }
  Envelope eager(std::uint32_t number) const {
    Envelope envelope;
    envelope.sequence = number;
    envelope.context = kContext;
    envelope.tag = kTag;
    envelope.bytes = bytes_.size();
    return envelope;
  }
  // So many of its bytes are there.
  void begin(const Envelope& envelope, std::size_t shown) {
    slots_[0].whole.envelope = envelope;
    std::memcpy(room(), bytes_.data(), shown);
    slots_[0].turn = begun_at(0, shown);
  }
  // The path would find it now, and shows it.
  void end(const Envelope& envelope) {
    std::memcpy(room(), bytes_.data(), bytes_.size());
    slots_[0].turn = turn_at(0, bytes_.size());
    path_->publish(kFrom, envelope.sequence, {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()});
  }
  std::byte* room() { return reinterpret_cast<std::byte*>(slots_.data() + shape_.slots); }
  BriefReceive brief(std::int32_t tag = kTag) {
    return {buffer_.data(), Bytes{buffer_.size()}, kContext, kFrom, tag, &scope_};
  }
  AwaitedReceive awaited(std::int32_t source) {
    AwaitedReceive receive{buffer_.data(), Bytes{buffer_.size()}, {kContext, source, kTag}};
    receive.scope = &scope_;
    return receive;
  }
  void expect_first_bytes(std::size_t count) const {
    EXPECT_TRUE(std::equal(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(count), buffer_.begin()));
    EXPECT_EQ(static_cast<std::ptrdiff_t>(buffer_.size() - count),
              std::count(buffer_.begin() + static_cast<std::ptrdiff_t>(count), buffer_.end(), kUntouched));
  }

  const PairSlotShape shape_ = pair_slot_shape(2, kUsualEager);
  std::vector<PairSlot> slots_ = std::vector<PairSlot>(shape_.in_memory());
  std::atomic<std::uint64_t> consumed_{0};
  PairSlotReader reader_{slots_.data(), &consumed_, shape_};
  Scope scope_{kContext, nullptr};
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kSize);
  std::vector<std::byte> buffer_;
};

TEST_F(Begun, WhatIsThereIsCopiedAndTheReceivePostedWhereItsWriterDoesNotGetOn) {
  begin(eager(0), 2 * kPieceShown);
  BriefReceive receive = brief();
  EXPECT_FALSE(engine_->receive_brief(receive));
  ASSERT_NE(0U, receive.posted.value);
  expect_first_bytes(2 * kPieceShown);
  // One that is posted behind it gets the next message, and nothing of this one.
  Receive next;
  ASSERT_TRUE(start(next, kFrom.value).ok());
  end(eager(0));
  path_->publish(kFrom, 1, "next");
  look();
  ASSERT_TRUE(Engine::complete(*engine_->find(receive.posted)));
  const Outcome outcome = engine_->take(receive.posted);
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(kSize, outcome.bytes.value);
  EXPECT_EQ(kTag, outcome.tag);
  expect_first_bytes(kSize);
  EXPECT_TRUE(over(next));
  EXPECT_EQ("next", next.text());
}

TEST_F(Begun, SoDoesAReceiveThatLooksForAllThatComes) {
  begin(eager(0), kPieceShown);
  AwaitedReceive receive = awaited(kFrom.value);
  bool moved = false;
  EXPECT_FALSE(engine_->look_for(receive, moved));
  EXPECT_FALSE(receive.received);
  ASSERT_NE(0U, receive.posted.value);
  expect_first_bytes(kPieceShown);
  end(eager(0));
  look();
  EXPECT_TRUE(engine_->take(receive.posted).status.ok());
  expect_first_bytes(kSize);
}

// Its writer is another thread here.
TEST_F(Begun, AMessageThatGetsOnIsReceivedFromItsPieces) {
  std::vector<PairSlot>& slots = slots_;
  PairSlotWriter writer{slots.data(), &consumed_, shape_};
  constexpr std::uint32_t kMessages = 3000;
  std::thread sender{[&] {
    for (std::uint32_t number = 0; number < kMessages; ++number) {
      PairSlot* slot = writer.begin(kSize);
      for (; slot == nullptr; slot = writer.begin(kSize)) std::this_thread::yield();
      slot->whole.envelope = eager(number);
      writer.finish(*slot, bytes_.data(), kSize, true);
      // The next one when this one has been read, so that its reader waits.
      while (PairConsumed::from(consumed_).slots + kReportEvery < number) std::this_thread::yield();
    }
  }};
  for (std::uint32_t number = 0; number < kMessages && !HasFailure(); ++number) {
    std::fill(buffer_.begin(), buffer_.end(), kUntouched);
    BriefReceive receive = brief(number % 2 == 0 ? kTag : kAnyTag);
    receive.posted = {};
    while (!engine_->receive_brief(receive)) {
      if (receive.posted.value != 0) {  // its writer was held up: as if the receive had never been
        ASSERT_TRUE(engine_->cancel_receive(receive.posted));
        look();
        engine_->forget(receive.posted);
        receive.posted = {};
      }
      std::this_thread::yield();
    }
    EXPECT_EQ(kSize, receive.bytes.value);
    EXPECT_EQ(kTag, receive.received_tag);
    expect_first_bytes(kSize);
  }
  sender.join();
}

struct Other {
  const char* what;
  void (*change)(Envelope& envelope);
};
constexpr Other kOthers[] = {
    {"another tag", [](Envelope& envelope) { envelope.tag = kTag + 1; }},
    {"another communicator", [](Envelope& envelope) { envelope.context = kContext + 1; }},
    {"longer than the room", [](Envelope& envelope) { envelope.bytes = kSize + 101; }},
    {"not its turn", [](Envelope& envelope) { envelope.sequence = 1; }},
    {"given up", [](Envelope& envelope) { envelope.flags = kEnvelopeGaveUp; }},
    {"an announcement", [](Envelope& envelope) { envelope.type = EnvelopeType::announce; }},
};

TEST_F(Begun, OfAMessageThatIsForAnotherReceiveNothingIsCopied) {
  for (const Other& other : kOthers) {
    Envelope envelope = eager(0);
    other.change(envelope);
    begin(envelope, kPieceShown);
    BriefReceive receive = brief();
    EXPECT_FALSE(engine_->receive_brief(receive)) << other.what;
    EXPECT_EQ(0U, receive.posted.value) << other.what;
    AwaitedReceive looks = awaited(kFrom.value);
    bool moved = false;
    EXPECT_TRUE(engine_->look_for(looks, moved)) << other.what;
    EXPECT_EQ(0U, looks.posted.value) << other.what;
    expect_first_bytes(0);
  }
}

TEST_F(Begun, AReceiveFromAnyRankWaitsUntilAMessageIsWhole) {
  begin(eager(0), kPieceShown);
  AwaitedReceive receive = awaited(kAnySource);
  bool moved = false;
  EXPECT_TRUE(engine_->look_for(receive, moved));
  EXPECT_EQ(0U, receive.posted.value);
  expect_first_bytes(0);
}

TEST_F(Begun, WhatWasPostedBeforeGetsIt) {
  Receive first;
  ASSERT_TRUE(start(first, kFrom.value).ok());
  begin(eager(0), kPieceShown);
  BriefReceive receive = brief();
  EXPECT_FALSE(engine_->receive_brief(receive));
  AwaitedReceive looks = awaited(kFrom.value);
  bool moved = false;
  EXPECT_TRUE(engine_->look_for(looks, moved));
  EXPECT_EQ(0U, receive.posted.value + looks.posted.value);
  expect_first_bytes(0);
}

// Its end may never come: whoever waits has to hear of that.
TEST_F(Begun, OnceARankIsGoneNobodyBeginsWithAMessage) {
  begin(eager(0), kPieceShown);
  board_.mark(Rank{2}, AbortBoard::Fate::left);
  BriefReceive receive = brief();
  EXPECT_FALSE(engine_->receive_brief(receive));
  AwaitedReceive looks = awaited(kFrom.value);
  bool moved = false;
  engine_->look_for(looks, moved);
  EXPECT_EQ(0U, receive.posted.value + looks.posted.value);
  expect_first_bytes(0);
}

}  // namespace
}  // namespace ist::test
