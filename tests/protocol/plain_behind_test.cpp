// Plain receives of a window whose first message progress() found: the others are taken out of the same slots by the short way, as far as they are plain.
#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "path/shm/pair_slots.hpp"
#include "request/engine_at_once.hpp"
#include "staged_engine.hpp"

namespace ist::test {
namespace {

constexpr Rank kFrom{0};
constexpr std::size_t kSize = 5000;
constexpr std::uint32_t kMost = 42;

// The first message is shown by the path, which never finds those behind it in the slots.
class PlainBehind : public StagedEngine {
 protected:
  PlainBehind() {
    path_->only_link().slots = &reader_;
    path_->only_link().slot_limit = Bytes{shape_.longest};
    // The short way takes no memory: what it needs is left by those that went another.
    std::array<Receive, kMost> before;
    for (Receive& one : before) EXPECT_TRUE(StagedEngine::start(one, kFrom.value).ok());
    for (Receive& one : before) EXPECT_TRUE(engine_->cancel_receive(one.id));
    path_->publish(kFrom, 0, "first");
  }
  struct Plain {
    std::vector<std::byte> buffer = std::vector<std::byte>(kSize);
    OperationId id;
  };
  void start(Plain& plain, std::int32_t tag = kTag) {
    const Bytes room{plain.buffer.size()};
    ASSERT_TRUE(engine_->receive_at_once(plain.buffer.data(), room, {kContext, kFrom.value, tag}, nullptr, plain.id));
  }
  // The n-th message of that sender, all of whose bytes are n.
  void write(std::uint32_t number, std::int32_t tag = kTag, std::size_t size = kSize) {
    Envelope envelope;
    envelope.sequence = number;
    envelope.context = kContext;
    envelope.tag = tag;
    envelope.bytes = size;
    const std::vector<std::byte> bytes(size, static_cast<std::byte>(number));
    ASSERT_TRUE(writer_.post(envelope, bytes));
  }
  // Where it is not, after a look at the slots.
  bool is_done(const Plain& plain) {
    const PlainReceive* const line = engine_->find_plain(plain.id);
    return line != nullptr && line->stage == PlainReceive::Stage::done;
  }
  void expect_bytes_of(const Plain& plain, std::uint32_t number) {
    EXPECT_EQ(plain.buffer, std::vector<std::byte>(kSize, static_cast<std::byte>(number)));
  }

  const PairSlotShape shape_ = pair_slot_shape(2, kUsualEager);
  std::vector<PairSlot> slots_ = std::vector<PairSlot>(shape_.in_memory());
  std::atomic<std::uint64_t> consumed_{0};
  PairSlotWriter writer_{slots_.data(), &consumed_, shape_};
  PairSlotReader reader_{slots_.data(), &consumed_, shape_};
};

TEST_F(PlainBehind, WhatCameBehindAnArrivalIsTakenByOneLook) {
  std::array<Plain, 5> plain;
  for (Plain& one : plain) start(one);
  for (std::uint32_t number = 1; number < plain.size(); ++number) write(number);
  engine_->progress();
  EXPECT_EQ(nullptr, reader_.front());
  EXPECT_EQ(0, std::memcmp(plain[0].buffer.data(), "first", 5));
  for (std::uint32_t number = 1; number < plain.size(); ++number) {
    EXPECT_TRUE(is_done(plain[number])) << number;
    expect_bytes_of(plain[number], number);
  }
}

// Others would wait for them too long: between two looks at those no more than about as many bytes as a pair has room for.
TEST_F(PlainBehind, LongOnesCountForMoreThanOneInARow) {
  constexpr std::size_t kLong = 102400;
  constexpr std::uint32_t kBehind = 20;
  std::vector<Plain> plain(kMost);
  for (Plain& one : plain) {
    one.buffer.resize(kLong);
    start(one);
  }
  for (std::uint32_t number = 1; number <= kBehind; ++number) write(number, kTag, kLong);
  engine_->progress();
  EXPECT_EQ(nullptr, reader_.front());
  path_->publish(kFrom, kBehind + 1, "second");
  for (std::uint32_t number = kBehind + 2; number < kMost; ++number) write(number, kTag, kLong);
  engine_->progress();
  EXPECT_NE(nullptr, reader_.front());
  for (std::uint32_t number = 1; number < kMost; ++number) {
    if (number == kBehind + 1) continue;
    EXPECT_TRUE(is_done(plain[number]) || is_done(plain[number])) << "by the look after one for others: " << number;
    EXPECT_EQ(plain[number].buffer, std::vector<std::byte>(kLong, static_cast<std::byte>(number))) << number;
  }
}

TEST_F(PlainBehind, WhatNoReceiveIsPostedForStaysWhereItIs) {
  std::array<Plain, 3> plain;
  start(plain[0]);
  start(plain[1]);
  start(plain[2]);
  write(1);
  write(2, kTag + 1);
  write(3);
  engine_->progress();
  EXPECT_TRUE(is_done(plain[1]));
  EXPECT_NE(nullptr, reader_.front()) << "the path's to show";
  expect_bytes_of(plain[2], 0);
}

TEST_F(PlainBehind, WhoAwaitsOneMessageIsNotHeldUpByOthers) {
  std::array<char, 16> buffer{};
  Scope scope{kContext, nullptr};
  AwaitedReceive receive{reinterpret_cast<std::byte*>(buffer.data()), Bytes{buffer.size()}, {kContext, kFrom.value, kTag}};
  receive.scope = &scope;
  Plain other;
  start(other, kTag + 1);
  write(1, kTag + 1);
  bool moved = false;
  engine_->look_for(receive, moved);
  EXPECT_TRUE(receive.received);
  EXPECT_STREQ("first", buffer.data());
  EXPECT_NE(nullptr, reader_.front()) << "nothing is taken before the caller has his message";
}

}  // namespace
}  // namespace ist::test
