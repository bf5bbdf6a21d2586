// Slots and cells overtake each other at random; what comes out is what was sent, in the order in which it was sent.
#include "match/arrival_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <random>

namespace ist {
namespace {

constexpr int kRanks = 3;

class Nowhere final : public Path {
 public:
  std::string_view name() const override { return "nowhere"; }
  Link* link(Rank) override { return nullptr; }
  std::optional<Arrival> next() override { return std::nullopt; }
  void release(const Arrival&) override {}
  void put_back(const Arrival&) override {}
  Status lock_memory() override { return {}; }
  bool can_sleep() const override { return false; }
  bool announce_sleep() override { return false; }
  void sleep_announced(std::chrono::microseconds) override {}
  void wake() override {}
  bool arrival_within(int) override { return true; }
  void leave(Rank) override {}
  bool has_left(Rank) const override { return false; }
  Rank death_told_by(Rank) const override { return kNobody; }
};

// Senders with slots and cells, each of which keeps its order, and the wire between that mixes them.
class ShuffledTraffic {
 public:
  ShuffledTraffic(unsigned seed, std::uint32_t first, int messages)
      : random_(seed), first_(first), order_(kRanks, first), delivered_(kRanks, 0) {
    for (int rank = 0; rank < kRanks; ++rank)
      for (int i = 0; i < messages; ++i) send(rank, static_cast<std::uint32_t>(i));
  }

  void run() {
    while (arrive_one()) {
    }
  }
  const std::vector<std::uint32_t>& delivered() const { return delivered_; }
  bool nothing_left() {
    for (int rank = 0; rank < kRanks; ++rank)
      if (order_.next_due(Rank{rank})) return false;
    return true;
  }

 private:
  struct Sent {
    Envelope envelope;
    std::vector<std::byte> payload;
    bool in_cell = false;
  };

  void send(int rank, std::uint32_t number) {
    Sent sent;
    sent.envelope.sequence = first_ + number;
    sent.envelope.sender_op = number;
    sent.in_cell = random_() % 2 == 0;
    // Some need no allocation, so that a view into an object that moved would show.
    sent.payload.resize(random_() % 4 == 0 ? 0 : random_() % 300);
    for (auto& byte : sent.payload) byte = static_cast<std::byte>(random_());
    payloads_[static_cast<std::size_t>(rank)].push_back(sent.payload);
    wires_[static_cast<std::size_t>(rank) * 2 + (sent.in_cell ? 1 : 0)].push_back(std::move(sent));
  }

  bool arrive_one() {
    std::vector<std::size_t> full;
    for (std::size_t wire = 0; wire < wires_.size(); ++wire)
      if (!wires_[wire].empty()) full.push_back(wire);
    if (full.empty()) return false;
    const std::size_t wire = full[random_() % full.size()];
    // Cells come from whichever device is done first; slots keep their order.
    const bool in_cell = wire % 2 == 1;
    const std::size_t place = in_cell ? random_() % std::min<std::size_t>(wires_[wire].size(), 5) : 0;
    Sent sent = std::move(wires_[wire][place]);
    wires_[wire].erase(wires_[wire].begin() + static_cast<std::ptrdiff_t>(place));
    if (in_cell) cells_.push_back(std::move(sent.payload));
    const Arrival arrival{Rank{static_cast<std::int32_t>(wire / 2)}, sent.envelope, in_cell ? cells_.back() : sent.payload,
                          in_cell, cells_.size()};
    if (order_.take_turn(arrival)) {
      deliver(arrival);
      while (const auto* const early = order_.next_due(arrival.source)) {
        EXPECT_EQ(early->path, &path_);
        deliver(early->arrival);
        order_.let_go(*early);
      }
    } else {
      order_.put_aside(path_, arrival);
    }
    // The slot is filled again by the next message.
    if (!in_cell) std::fill(sent.payload.begin(), sent.payload.end(), std::byte{0xee});
    return true;
  }

  void deliver(const Arrival& arrival) {
    const auto rank = static_cast<std::size_t>(arrival.source.value);
    const std::uint32_t number = delivered_[rank]++;
    EXPECT_EQ(arrival.envelope.sender_op, number);
    EXPECT_EQ(arrival.envelope.sequence, first_ + number);
    const auto& wanted = payloads_[rank][number];
    EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), arrival.payload.begin(), arrival.payload.end()))
        << "message " << number << " of rank " << rank;
    if (!arrival.in_cell) return;
    EXPECT_TRUE(arrival.payload.empty() || arrival.payload.data() == cells_[arrival.cell - 1].data()) << "a cell was copied";
  }

  std::mt19937 random_;
  std::uint32_t first_;
  Nowhere path_;
  ArrivalOrder order_;
  std::array<std::deque<Sent>, kRanks * 2> wires_;
  std::array<std::vector<std::vector<std::byte>>, kRanks> payloads_;
  std::deque<std::vector<std::byte>> cells_;
  std::vector<std::uint32_t> delivered_;
};

void expect_order_from(std::uint32_t first) {
  constexpr int kMessages = 400;
  const unsigned seed = std::random_device{}();
  for (unsigned round = 0; round < 20; ++round) {
    ShuffledTraffic traffic{seed + round, first, kMessages};
    traffic.run();
    EXPECT_EQ(traffic.delivered(), std::vector<std::uint32_t>(kRanks, kMessages)) << "seed " << seed + round;
    EXPECT_TRUE(traffic.nothing_left());
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed + round;
  }
}

TEST(ArrivalOrder, IsTheSendersWhateverOvertakesWhat) { expect_order_from(0); }

TEST(ArrivalOrder, SurvivesTheSequenceNumbersWrapAround) { expect_order_from(~std::uint32_t{0} - 199); }

TEST(ArrivalOrder, OneRanksGapHoldsUpNoOtherRank) {
  ArrivalOrder order{2};
  Nowhere path;
  Arrival early{Rank{0}, {}, {}, false, 0};
  early.envelope.sequence = 1;
  EXPECT_FALSE(order.take_turn(early));
  order.put_aside(path, early);
  EXPECT_FALSE(order.next_due(Rank{0}));
  EXPECT_TRUE(order.take_turn(Arrival{Rank{1}, {}, {}, false, 0}));
  EXPECT_FALSE(order.next_due(Rank{1}));
  EXPECT_TRUE(order.take_turn(Arrival{Rank{0}, {}, {}, false, 0}));
  EXPECT_TRUE(order.next_due(Rank{0}));
  EXPECT_FALSE(order.next_due(Rank{0}));
}

}  // namespace
}  // namespace ist
