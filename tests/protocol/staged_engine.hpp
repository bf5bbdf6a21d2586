// An engine without a world: one path, which shows what the test publishes, when the test wants it.
//
// Who calls this : last_messages_test.cpp, keeping_test.cpp, and the other tests called keeping.
// Threads        : one.
// Ownership      : owns the engine and its path.
// Errors         : the engine's.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "request/engine.hpp"
#include "request/wait.hpp"

namespace ist::test {

inline constexpr Rank kMe{1};
inline constexpr int kRanks = 3;
inline constexpr std::int32_t kTag = 5;
inline constexpr std::uint32_t kContext = 7;

// Takes messages once it is told to.
class NoLink final : public Link {
 public:
  bool takes = false;
  bool lends_memory = false;
  SlotRingReader* ring = nullptr;  // from the peer
  int taken = 0;
  std::vector<Envelope> all;  // of those
  NoLink() { all.reserve(64); }
  bool post(const Envelope& envelope, std::span<const std::byte>) override {
    if (!takes) return false;
    ++taken;
    all.push_back(envelope);
    return true;
  }
  // As of a peer whose memory has to be mapped before that is known.
  bool sees(const Offer&, Bytes) override { return std::vector<std::byte>(64).empty(); }
  std::optional<Cell> take_cell() override { return std::nullopt; }
  void post_cell(const Cell&, const Envelope&, Bytes) override {}
  void return_cell(const Cell&) override {}
  Result<SlotRingWriter*> outgoing() override { return static_cast<SlotRingWriter*>(nullptr); }
  Result<SlotRingReader*> incoming() override { return ring; }
  bool lends() const override { return lends_memory; }
};

// Both ends of one.
struct StagedRing {
  SlotRingLayout layout{4, Bytes{4096}};
  std::vector<std::byte> memory = std::vector<std::byte>(layout.total().value + 4096);
  std::byte* begin = memory.data() + (4096 - reinterpret_cast<std::uintptr_t>(memory.data()) % 4096) % 4096;
  SlotRingWriter writer{begin, layout, nullptr, layout.total()};
  SlotRingReader reader{begin, layout, nullptr};
};

// Shows what the test publishes, when the test wants it.
class StagedPath final : public Path {
 public:
  bool gap = false;
  int released = 0;                  // cells
  std::function<void()> when_empty;  // once, as the reader finds nothing more
  void publish(Rank from, std::uint32_t number, const std::string& text, bool in_cell = false) {
    Envelope envelope;
    envelope.type = EnvelopeType::eager;
    envelope.context = kContext;
    envelope.tag = kTag;
    envelope.sequence = number;
    envelope.bytes = text.size();
    messages_.push_back({from, envelope, text, in_cell});
  }
  void announce(Rank from, std::uint32_t number, std::size_t bytes) {
    publish(from, number, "");
    Envelope& envelope = messages_.back().envelope;
    envelope.type = EnvelopeType::announce;
    envelope.bytes = bytes;
    envelope.sender_op = number + 1;
  }
  // Beside all messages.
  void say(Rank from, const Envelope& envelope, std::span<const std::byte> payload = {}) {
    messages_.push_back({from, envelope, {reinterpret_cast<const char*>(payload.data()), payload.size()}, false});
  }
  Envelope& last() { return messages_.back().envelope; }
  std::string_view name() const override { return "staged"; }
  Link* link(Rank) override { return &link_; }
  NoLink& only_link() { return link_; }
  std::optional<Arrival> next() override {
    if (shown_) messages_.pop_front();
    shown_ = !messages_.empty();
    if (!shown_) {
      if (when_empty) std::exchange(when_empty, nullptr)();
      return std::nullopt;
    }
    const Message& first = messages_.front();
    return Arrival{first.from, first.envelope, std::as_bytes(std::span{first.text}), first.in_cell, 0};
  }
  void release(const Arrival&) override { ++released; }
  void put_back(const Arrival&) override { shown_ = false; }
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
    bool in_cell;
  };
  NoLink link_;
  std::deque<Message> messages_;
  bool shown_ = false;
};

class StagedEngine : public testing::Test {
 protected:
  StagedEngine() {
    auto path = std::make_unique<StagedPath>();
    path_ = path.get();
    paths_.push_back(std::move(path));
    make_engine();
  }
  void make_engine(Trace* trace = nullptr) {
    engine_ = std::make_unique<Engine>(
        Engine::Parts{kMe, settings_, *kinds_, pool_, paths_, board_, {"rank 0", "rank 1", "rank 2"}, {}, trace});
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

}  // namespace ist::test
