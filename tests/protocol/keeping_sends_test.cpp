// Sends that begin before their envelope is posted, or are announced before they are looked at again, where the host's memory runs out in
// between: each is heard of once, whole and in its turn, or nothing of it was sent.
#include <cstring>

#include "little_memory.hpp"
#include "memory/mailing.hpp"
#include "memory/workers.hpp"
#include "path/invitation.hpp"
#include "staged_engine.hpp"
#include "staged_kind.hpp"

namespace ist::test {
namespace {

// Its worker has stored what it is told to as soon as it is told, or fails; its queues hold something, which is over, but takes memory to ask.
class SendingKind final : public StagedKind, public Mailing, public Workers, public Streams {
 public:
  SendingKind() : StagedKind(KindId::cuda) {}
  static Piece of(const void* address, std::size_t size) {
    Piece piece = piece_of(address, size);
    piece.kind = KindId::cuda;
    return piece;
  }
  bool worker_fails = false;
  bool queues_hold = false;
  int orders = 0;

  Streams* streams() override { return queues_hold ? this : nullptr; }
  Result<Ticket> ready(const Piece&) override { return Ticket{this, kQueue}; }
  Result<bool> finished(Ticket& ticket) override {
    const std::vector<char> taken(50);
    if (ticket.id() == kOrder) {
      Status why{IST_ERR_DEVICE, "an invented worker fails"};
      ticket.forget();
      return why;
    }
    if (taken.size() == 50) ticket.forget();
    return true;
  }

  Workers* workers() override { return this; }
  Mailing* mailing() override { return this; }
  Status allow(int, const Status&) override { return {}; }
  Status against(int) override { return {}; }
  Bytes limit(int) const override { return kWorkerLimit; }
  using StagedKind::copies;
  bool copies(const Piece&) const override { return false; }

  std::shared_ptr<const Piece> make_box() override { return nullptr; }
  std::uint32_t number_of(std::uint64_t message) const override { return static_cast<std::uint32_t>(message) + 1; }
  Piece packets(const Piece& box, std::uint32_t place, Bytes size) const override {
    Piece found = box;
    found.offset = Offset{box.offset.value + offset_of(place).value};
    found.size = size;
    return found;
  }
  Bytes offset_of(std::uint32_t place) const override { return Bytes{place * kWorkerLimit.value}; }
  bool awake(const Piece&) override { return true; }
  bool fits(const Piece&) const override { return true; }
  std::optional<Ticket> post(const Piece& from, Borrowed&, const Loan& loan, const Letter& letter) override {
    const std::vector<char> taken(50);
    if (taken.size() != 50) return std::nullopt;
    ++orders;
    if (worker_fails) return Ticket{this, kOrder};
    std::memcpy(reinterpret_cast<std::byte*>(loan.start) + offset_of(letter.place).value, from.address(), from.size.value);
    return Ticket{};
  }
  std::optional<Ticket> take(const Piece&, const Piece&, const Letter&, bool) override { return std::nullopt; }
  Result<std::optional<bool>> taken(Ticket&) override { return std::optional<bool>{}; }
  void pack(std::span<const std::byte> bytes, std::uint32_t, std::span<std::byte> packets) const override {
    std::copy(bytes.begin(), bytes.end(), packets.begin());
  }
  bool unpack(std::span<const std::byte>, std::uint32_t, std::span<std::byte>) const override { return false; }

 private:
  static constexpr std::uint64_t kQueue = 1;
  static constexpr std::uint64_t kOrder = 2;
};

class KeepingSends : public StagedEngine {
 protected:
  static constexpr std::size_t kBytes = 100;
  static constexpr int kSends = 12;  // each of a place of its own
  KeepingSends() {
    auto kind = std::make_unique<SendingKind>();
    kind_ = kind.get();
    kinds_->add("sending", Result<std::unique_ptr<MemoryKind>>{std::move(kind)});
    link_.lends_memory = true;
    link_.invited = &board_;
    link_.slot_limit = Bytes{256};
    for (std::size_t i = 0; i < kBytes; ++i) wanted_[i] = static_cast<std::byte>(5 * i + 3);
    sent_.reserve(64);
  }
  static void expect_started(const Result<OperationId>& started) { EXPECT_TRUE(started.ok()) << started.status().text(); }
  OperationId send() {
    bool done = false;
    auto started =
        engine_->start_send(SendingKind::of(wanted_.data(), kBytes), Rank{0}, kTag, Scope{kContext, nullptr}, &done);
    expect_started(started);
    return started.ok() ? *started : OperationId{};
  }
  bool is_over(OperationId id) { return Engine::complete(*engine_->find(id)); }
  // Of one type, whose numbers come in turn.
  std::uint32_t said_in_turn(EnvelopeType type) const {
    std::uint32_t all = 0;
    for (const Envelope& each : link_.all) {
      if (each.type != type) continue;
      EXPECT_EQ(all, each.sequence) << "a message is lost, or there twice";
      ++all;
    }
    return all;
  }
  void let_all_go() {
    link_.takes = true;
    look();
  }
  void clear(const Envelope& announced) {
    Envelope clear;
    clear.type = EnvelopeType::clear;
    clear.kind = static_cast<std::uint8_t>(KindId::cuda);
    clear.bytes = kBytes;
    clear.sender_op = announced.sender_op;
    clear.sequence = announced.sequence;
    clear.receiver_op = 77;
    Loan loan = StagedKind::loan_of(SendingKind::of(memory_.data(), kBytes));
    path_->say(Rank{0}, clear, std::as_bytes(std::span{&loan, 1}));
  }
  // Its peer offers a mailbox.
  void with_mailbox() {
    settings_.worker = true;
    make_engine();
    Envelope offered;
    offered.type = EnvelopeType::mailbox;
    offered.kind = static_cast<std::uint8_t>(KindId::cuda);
    const Loan loan = StagedKind::loan_of(SendingKind::of(box_.data(), box_.size()));
    path_->say(Rank{0}, offered, std::as_bytes(std::span{&loan, 1}));
    look();
  }
  void expect_in_box(int place) const {
    EXPECT_EQ(0, std::memcmp(box_.data() + static_cast<std::size_t>(place) * kWorkerLimit.value, wanted_.data(), kBytes))
        << "place " << place;
  }

  SendingKind* kind_ = nullptr;
  NoLink& link_ = path_->only_link();
  InvitationBoard board_{};
  std::array<std::byte, kBytes> wanted_{};
  std::array<std::byte, kBytes> memory_{};
  std::vector<OperationId> sent_;
  std::vector<std::byte> box_ = std::vector<std::byte>(Mailing::kPlaces * kWorkerLimit.value);
};

TEST_F(KeepingSends, WhatAWorkerWasToldIsHeardOfOnce) {
  with_mailbox();
  int failed = 0;
  for (int n = 0; n < kSends; ++n) failed += with_little_memory([&] { sent_.push_back(send()); });
  EXPECT_GT(failed, 0);
  EXPECT_EQ(kSends, kind_->orders) << "one for each";
  let_all_go();
  EXPECT_EQ(static_cast<std::uint32_t>(kSends), said_in_turn(EnvelopeType::mailed));
  for (int n = 0; n < kSends; ++n) {
    ASSERT_TRUE(is_over(sent_[static_cast<std::size_t>(n)]));
    EXPECT_TRUE(engine_->take(sent_[static_cast<std::size_t>(n)]).status.ok());
    expect_in_box(n);
  }
}

TEST_F(KeepingSends, WhatAWorkerCouldNotStoreComesWholeByTheDriver) {
  with_mailbox();
  kind_->worker_fails = true;
  for (int n = 0; n < kSends; ++n) {
    const OperationId id = send();
    link_.takes = true;
    EXPECT_GT(with_little_memory([this] { engine_->progress(); }), 0);
    look();
    ASSERT_TRUE(is_over(id));
    EXPECT_TRUE(engine_->take(id).status.ok());
    expect_in_box(n);
    link_.takes = false;
  }
}

TEST_F(KeepingSends, ACopyIntoWhatIsShownIsHeardOfOnceOrNotBegun) {
  make_engine();
  Inviter inviter{&board_};
  int failed = 0;
  for (int given = 0; given < 40; ++given) {
    EXPECT_TRUE(inviter.close()) << "taken, and nothing came, with memory " << given << " times";
    memory_ = {};
    Invitation invitation;
    invitation.sequence = static_cast<std::uint32_t>(sent_.size());
    invitation.context = kContext;
    invitation.tag = kTag;
    invitation.receiver_op = 77;
    invitation.room = kBytes;
    invitation.kind = static_cast<std::uint32_t>(KindId::cuda);
    const Loan loan = StagedKind::loan_of(SendingKind::of(memory_.data(), kBytes));
    std::memcpy(invitation.loan.data(), &loan, sizeof loan);
    inviter.open(invitation);
    link_.takes = given % 2 == 0;  // nor is there room for its envelope
    left = given;
    try {
      sent_.push_back(send());
      left = kEnough;
    } catch (const std::bad_alloc&) {
      left = kEnough;
      ++failed;
      continue;
    }
    let_all_go();
    const std::size_t said = link_.all.size();
    ASSERT_EQ(sent_.size(), said_in_turn(EnvelopeType::announce));
    if (!is_over(sent_.back())) {  // it goes another way
      clear(link_.all[said - 1]);
      look();
    }
    ASSERT_TRUE(is_over(sent_.back()));
    EXPECT_TRUE(engine_->take(sent_.back()).status.ok());
    EXPECT_EQ(wanted_, memory_);
    inviter.settle();
  }
  EXPECT_GT(failed, 0);
}

TEST_F(KeepingSends, WhatIsAnnouncedIsNoErrorWhereNobodyCanAskItsQueue) {
  kind_->queues_hold = true;
  link_.invited = nullptr;
  make_engine();
  link_.takes = true;
  for (std::uint32_t n = 0; n < 4; ++n) {
    memory_ = {};
    OperationId id;
    static_cast<void>(with_little_memory([&] { id = send(); }));
    ASSERT_EQ(n + 1, said_in_turn(EnvelopeType::announce)) << "announced, and then said to be an error";
    Envelope announced = link_.all.back();
    clear(announced);
    look();
    ASSERT_TRUE(is_over(id));
    EXPECT_TRUE(engine_->take(id).status.ok());
    EXPECT_EQ(wanted_, memory_);
  }
}

}  // namespace
}  // namespace ist::test
