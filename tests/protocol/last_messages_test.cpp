// What a rank published before it left is received, whoever else publishes or leaves at that moment; what it did not is given up.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "request/engine.hpp"
#include "request/wait.hpp"

namespace ist {
namespace {

constexpr Rank kMe{1};
constexpr int kRanks = 3;
constexpr std::int32_t kTag = 5;
constexpr std::uint32_t kContext = 7;

class NoLink final : public Link {
 public:
  bool post(const Envelope&, std::span<const std::byte>) override { return false; }
  std::optional<Cell> take_cell() override { return std::nullopt; }
  void post_cell(const Cell&, const Envelope&, Bytes) override {}
  void return_cell(const Cell&) override {}
  Result<SlotRingWriter*> outgoing() override { return static_cast<SlotRingWriter*>(nullptr); }
  Result<SlotRingReader*> incoming() override { return static_cast<SlotRingReader*>(nullptr); }
};

// Shows what the test publishes, when the test wants it.
class StagedPath final : public Path {
 public:
  bool gap = false;
  std::function<void()> when_empty;  // once, as the reader finds nothing more
  void publish(Rank from, std::uint32_t number, const std::string& text) {
    Envelope envelope;
    envelope.type = EnvelopeType::eager;
    envelope.context = kContext;
    envelope.tag = kTag;
    envelope.sequence = number;
    envelope.bytes = text.size();
    messages_.push_back({from, envelope, text});
  }
  std::string_view name() const override { return "staged"; }
  Link* link(Rank) override { return &link_; }
  std::optional<Arrival> next() override {
    if (shown_) messages_.pop_front();
    shown_ = !messages_.empty();
    if (!shown_) {
      if (when_empty) std::exchange(when_empty, nullptr)();
      return std::nullopt;
    }
    const Message& first = messages_.front();
    return Arrival{first.from, first.envelope, std::as_bytes(std::span{first.text}), false, 0};
  }
  void release(const Arrival&) override {}
  bool has_gap() const override { return gap; }
  bool arrival_within(int) override {
    if (shown_) messages_.pop_front();
    shown_ = false;
    return !messages_.empty();
  }
  Status lock_memory() override { return {}; }
  bool can_sleep() const override { return false; }
  bool announce_sleep() override { return false; }
  void sleep_announced(std::chrono::microseconds) override {}
  void wake() override {}
  void leave(Rank) override {}
  bool has_left(Rank) const override { return false; }
  Rank death_told_by(Rank) const override { return kNobody; }

 private:
  struct Message {
    Rank from;
    Envelope envelope;
    std::string text;
  };
  NoLink link_;
  std::deque<Message> messages_;
  bool shown_ = false;
};

class LastMessages : public testing::Test {
 protected:
  LastMessages() {
    auto path = std::make_unique<StagedPath>();
    path_ = path.get();
    paths_.push_back(std::move(path));
    engine_ = std::make_unique<Engine>(
        Engine::Parts{kMe, settings_, *kinds_, pool_, paths_, board_, {"rank 0", "rank 1", "rank 2"}, {}, nullptr});
  }
  struct Receive {
    std::array<char, 16> buffer{};
    OperationId id;
    std::string text() const { return buffer.data(); }
  };
  Status start(Receive& receive, std::int32_t source) {
    const Piece piece = host_piece(receive.buffer.data(), Bytes{receive.buffer.size()});
    auto id = engine_->start_receive(piece, source, kTag, Scope{kContext, nullptr});
    if (id.ok()) receive.id = *id;
    return id.status();
  }
  bool over(const Receive& receive) { return Engine::complete(*engine_->find(receive.id)); }
  void look() {
    for (int i = 0; i < 3; ++i) engine_->progress();
  }
  Status outcome(const Receive& receive) { return engine_->take(receive.id).status; }

  Settings settings_;
  std::unique_ptr<Kinds> kinds_ = std::move(Kinds::load("host")).value();
  PinnedPool pool_{*kinds_, mebibytes(1)};
  std::vector<std::unique_ptr<Path>> paths_;
  AbortBoard board_{kRanks};
  StagedPath* path_ = nullptr;
  std::unique_ptr<Engine> engine_;
};

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
}  // namespace ist
