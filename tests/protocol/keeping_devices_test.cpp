// Messages from and into memory of devices where the host's memory runs out on their way: each is carried once, whole.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "little_memory.hpp"
#include "staged_engine.hpp"
#include "staged_kind.hpp"

namespace {
int yields = 0;
}

// In place of the C library's.
extern "C" int sched_yield() noexcept {
  ++yields;
  return static_cast<int>(::syscall(SYS_sched_yield));
}

namespace ist::test {
namespace {

class KeepingDevices : public StagedEngine {
 protected:
  static constexpr std::size_t kBytes = 100;
  KeepingDevices() {
    auto kind = std::make_unique<StagedKind>();
    kind_ = kind.get();
    kinds_->add("staged", Result<std::unique_ptr<MemoryKind>>{std::move(kind)});
    make_engine();
    link_.lends_memory = true;
    for (std::size_t i = 0; i < kBytes; ++i) wanted_[i] = static_cast<std::byte>(3 * i + 1);
  }
  Piece target() const { return StagedKind::piece_of(memory_.data(), memory_.size()); }
  OperationId receive() { return must(engine_->start_receive(target(), 0, kTag, Scope{kContext, nullptr})); }
  static OperationId must(Result<OperationId> started) {
    EXPECT_TRUE(started.ok());
    return started.ok() ? *started : OperationId{};
  }
  OperationId send() {
    bool done = false;
    const Piece from = StagedKind::piece_of(wanted_.data(), wanted_.size());
    return must(engine_->start_send(from, Rank{0}, kTag, Scope{kContext, nullptr}, &done));
  }
  bool complete(OperationId id) { return Engine::complete(*engine_->find(id)); }
  // While no envelope finds room; then they go.
  void move_with_little_memory() {
    with_little_memory([this] { engine_->progress(); });
    link_.takes = true;
    look();
    link_.takes = false;
  }
  std::size_t said(EnvelopeType type) const {
    std::size_t all = 0;
    for (const Envelope& each : link_.all) all += each.type == type ? 1 : 0;
    return all;
  }
  void announce_from_device() {
    path_->announce(Rank{0}, 0, kBytes);
    path_->last().kind = static_cast<std::uint8_t>(StagedKind::kId);
  }
  // The sender's word that a copy is over.
  void put(OperationId receive) {
    Envelope put;
    put.type = EnvelopeType::put;
    put.receiver_op = receive.wire();
    path_->say(Rank{0}, put);
  }
  // A receiver's clearance of the send that was announced first, which lends its memory.
  void clear(OperationId send, const Loan& loan) {
    Envelope clear;
    clear.type = EnvelopeType::clear;
    clear.kind = static_cast<std::uint8_t>(StagedKind::kId);
    clear.bytes = kBytes;
    clear.sender_op = send.wire();
    clear.receiver_op = 77;
    path_->say(Rank{0}, clear, std::as_bytes(std::span{&loan, 1}));
  }

  StagedKind* kind_ = nullptr;
  NoLink& link_ = path_->only_link();
  std::array<std::byte, kBytes> wanted_{};
  std::array<std::byte, kBytes> memory_{};
};

TEST_F(KeepingDevices, WhatIsForADeviceStaysInItsSlotOrCellUntilThereIsMemory) {
  const std::string text(wanted_.size(), 'x');
  for (const bool in_cell : {false, true}) {
    memory_ = {};
    const OperationId id = receive();
    path_->publish(Rank{0}, in_cell ? 1 : 0, text, in_cell);
    EXPECT_GT(with_little_memory([this] { engine_->progress(); }), 0);
    look();
    ASSERT_TRUE(complete(id)) << "the message is lost";
    EXPECT_TRUE(engine_->take(id).status.ok());
    EXPECT_EQ(0, std::memcmp(text.data(), memory_.data(), text.size()));
    EXPECT_EQ(in_cell ? 1 : 0, path_->released);
  }
}

TEST_F(KeepingDevices, WhatIsForADeviceAndThereAheadOfItsReceiveIsNotLost) {
  const std::string text(wanted_.size() + 1, 'x');  // too long
  path_->publish(Rank{0}, 0, text);
  look();
  OperationId id;
  EXPECT_GT(with_little_memory([&] { id = receive(); }), 1);
  look();
  ASSERT_TRUE(complete(id));
  EXPECT_EQ(IST_ERR_TRUNCATE, engine_->take(id).status.code());
  EXPECT_EQ(0, std::memcmp(text.data(), memory_.data(), memory_.size()));
}

// By a block of 40 bytes, half by half; each half is asked for once.
TEST_F(KeepingDevices, EveryPartOfABouncedMessageIsAskedForOnce) {
  std::vector<std::byte> block(40);
  kind_->block = &block;
  const OperationId id = receive();
  announce_from_device();
  for (std::size_t at = 0, part = 0; at < kBytes; at += 20, ++part) {
    move_with_little_memory();
    ASSERT_EQ(part + 1, said(EnvelopeType::clear));
    ASSERT_FALSE(complete(id));
    std::memcpy(block.data() + (part % 2) * 20, wanted_.data() + at, 20);
    put(id);
  }
  move_with_little_memory();
  ASSERT_TRUE(complete(id));
  EXPECT_TRUE(engine_->take(id).status.ok());
  EXPECT_EQ(wanted_, memory_);
  EXPECT_EQ(5U, said(EnvelopeType::clear));
}

TEST_F(KeepingDevices, AClearanceThatThereIsNoMemoryForIsHeardOnce) {
  link_.takes = true;
  const OperationId id = send();
  ASSERT_EQ(1U, said(EnvelopeType::announce));
  link_.takes = false;
  clear(id, StagedKind::loan_of(target()));
  move_with_little_memory();
  ASSERT_TRUE(complete(id));
  EXPECT_TRUE(engine_->take(id).status.ok());
  EXPECT_EQ(wanted_, memory_);
  EXPECT_EQ(1U, said(EnvelopeType::put));
  EXPECT_EQ(0U, said(EnvelopeType::refuse));
}

// Part by part into a block of the receiver's: it is told of each.
TEST_F(KeepingDevices, EveryPartThatIsThereIsToldOnce) {
  link_.takes = true;
  const OperationId id = send();
  link_.takes = false;
  std::vector<std::byte> block(40);
  Loan loan = StagedKind::loan_of(StagedKind::piece_of(block.data(), block.size()));
  loan.part = 20;
  for (std::size_t at = 0, part = 0; at < kBytes; at += 20, ++part) {
    loan.offset = part % 2 * 20;
    clear(id, loan);
    move_with_little_memory();
    ASSERT_EQ(part + 1, said(EnvelopeType::put));
    EXPECT_EQ(0, std::memcmp(block.data() + loan.offset, wanted_.data() + at, 20));
    EXPECT_EQ(at + 20 == kBytes, complete(id));
  }
  EXPECT_TRUE(engine_->take(id).status.ok());
}

// Into the host's memory the receiver copies what the sender lends.
TEST_F(KeepingDevices, ALoanThatThereIsNoMemoryForIsGivenOnce) {
  link_.takes = true;
  const OperationId id = send();
  link_.takes = false;
  clear(id, Loan{});
  path_->last().flags = kEnvelopeBorrows;
  path_->last().kind = static_cast<std::uint8_t>(KindId::host);
  move_with_little_memory();
  EXPECT_EQ(1U, said(EnvelopeType::lend));
  EXPECT_FALSE(complete(id));
  Envelope taken;
  taken.type = EnvelopeType::taken;
  taken.sender_op = id.wire();
  path_->say(Rank{0}, taken);
  look();
  EXPECT_TRUE(complete(id));
}

// A driver whose device is the processor works in threads of this process, for which a rank that spins leaves no room.
TEST_F(KeepingDevices, WhoWaitsForADeviceThatIsTheProcessorGivesWayToItsThreads) {
  const auto yields_of_a_wait = [this] {
    constexpr int kLooks = 200;  // of a millisecond that a rank with a processor of its own spins for
    Patience patience{*engine_, [] { return false; }};
    const int before = yields;
    for (int n = 0; n < kLooks; ++n) patience.after_look(false, true);
    return yields - before;
  };
  EXPECT_EQ(yields_of_a_wait(), 0);
  const OperationId id = receive();
  kind_->late = true;
  path_->publish(Rank{0}, 0, "something");
  look();
  ASSERT_FALSE(complete(id)) << "the device copies";
  EXPECT_EQ(StagedKind::kId, KindId::opencl);
  EXPECT_GT(yields_of_a_wait(), 100);
  kind_->late = false;
  look();
  EXPECT_TRUE(complete(id));
  EXPECT_EQ(yields_of_a_wait(), 0) << "nothing of it is under way any more";
}

}  // namespace
}  // namespace ist::test
