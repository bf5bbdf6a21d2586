// What every path promises, asked of every path: self, and shm between two ranks.
#include <algorithm>

#include "path/self/self_path.hpp"
#include "test_world.hpp"

namespace ist::test {
namespace {

class PathContract : public ::testing::TestWithParam<const char*> {
 protected:
  PathContract() {
    settings_.cells = 7;
    settings_.eager_limit = Bytes{20000};
    if (GetParam() == std::string{"self"}) {
      auto made = SelfPath::create(surroundings_of(0, 1, settings_, &mailbox_, &locks_));
      EXPECT_TRUE(made.ok());
      self_ = std::move(made).value();
      sender_ = receiver_ = self_.get();
      link_ = sender_->link(Rank{0});
    } else {
      world_ = std::make_unique<TestWorld>(2, settings_);
      sender_ = &world_->path(0);
      receiver_ = &world_->path(1);
      link_ = sender_->link(Rank{1});
    }
  }
  void expect_arrival(const Envelope& envelope, std::span<const std::byte> payload, bool in_cell) {
    const auto arrival = receiver_->next();
    ASSERT_TRUE(arrival);
    EXPECT_EQ(arrival->source, Rank{0});
    EXPECT_TRUE(same(arrival->envelope, envelope));
    EXPECT_TRUE(same(arrival->payload, payload));
    EXPECT_EQ(arrival->in_cell, in_cell);
    receiver_->release(*arrival);
  }

  Settings settings_;
  Mailbox mailbox_;
  Locks locks_;
  std::unique_ptr<SelfPath> self_;
  std::unique_ptr<TestWorld> world_;
  Path* sender_ = nullptr;
  Path* receiver_ = nullptr;
  Link* link_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Paths, PathContract, ::testing::Values("self", "shm"),
                         [](const auto& each) { return std::string{each.param}; });

TEST_P(PathContract, SlotsCarryEverySizeUnchanged) {
  std::uint32_t sequence = 0;
  for (std::size_t size = 0; size <= link_->slot_limit.value; ++size) {
    const auto payload = random_bytes(size);
    const Envelope envelope = numbered(sequence++, size * 1000);
    ASSERT_TRUE(link_->post(envelope, payload)) << size;
    expect_arrival(envelope, payload, false);
  }
  EXPECT_FALSE(receiver_->next());
}

TEST_P(PathContract, PayloadLongerThanASlotIsRefused) {
  EXPECT_FALSE(link_->post(numbered(0), random_bytes(std::max(link_->slot_limit, link_->slot_limit_again).value + 1)));
  EXPECT_FALSE(receiver_->next());
}

TEST_P(PathContract, CellsCarryEveryThresholdSizeUnchanged) {
  std::uint32_t sequence = 0;
  const std::size_t slot = link_->slot_limit.value;
  const std::size_t most = link_->cell_limit.value;
  EXPECT_EQ(most, 20000U);
  for (std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{23}, std::size_t{24}, std::size_t{25}, slot, slot + 1,
                           std::size_t{4095}, std::size_t{4096}, std::size_t{4097}, most - 1, most}) {
    if (size > most) continue;  // between processes slots take more than cells
    const auto payload = random_bytes(size);
    const Envelope envelope = numbered(sequence++, size);
    ASSERT_TRUE(post_in_cell(*link_, envelope, payload));
    expect_arrival(envelope, payload, true);
  }
  EXPECT_FALSE(receiver_->next());
}

TEST_P(PathContract, SlotsArriveInOrder) {
  for (std::uint32_t i = 0; i < 50; ++i) ASSERT_TRUE(link_->post(numbered(i), {}));
  for (std::uint32_t i = 0; i < 50; ++i) expect_arrival(numbered(i), {}, false);
}

TEST_P(PathContract, CellsArriveInOrder) {
  for (std::uint32_t i = 0; i < 7; ++i) ASSERT_TRUE(post_in_cell(*link_, numbered(i), random_bytes(i)));
  for (std::uint32_t i = 0; i < 7; ++i) {
    const auto arrival = receiver_->next();
    ASSERT_TRUE(arrival);
    EXPECT_EQ(arrival->envelope.sequence, i);
    receiver_->release(*arrival);
  }
}

TEST_P(PathContract, FullSlotsRefuseAndRecover) {
  const std::vector<std::byte> payload = random_bytes(8);
  std::uint32_t posted = 0;
  std::uint32_t read = 0;
  for (int round = 0; round < 5; ++round) {
    while (link_->post(numbered(posted), payload)) ++posted;
    EXPECT_LE(posted - read, kMostPairSlots);
    EXPECT_GE(posted - read, 48U);
    while (read < posted) {
      expect_arrival(numbered(read), payload, false);
      ++read;
    }
    EXPECT_FALSE(receiver_->next());
  }
}

TEST_P(PathContract, CellsRunOutAndComeBackWithRelease) {
  std::vector<Arrival> held;
  for (std::uint32_t i = 0; i < 7; ++i) ASSERT_TRUE(post_in_cell(*link_, numbered(i), random_bytes(20000)));
  EXPECT_FALSE(link_->take_cell());
  while (auto arrival = receiver_->next()) held.push_back(*arrival);
  ASSERT_EQ(held.size(), 7U);
  EXPECT_FALSE(link_->take_cell());
  receiver_->release(held[3]);
  const auto cell = link_->take_cell();
  ASSERT_TRUE(cell);
  link_->return_cell(*cell);
  EXPECT_TRUE(link_->take_cell());
  EXPECT_FALSE(link_->take_cell());
}

TEST_P(PathContract, HeldCellsKeepTheirBytesWhileOthersTravel) {
  const auto first = random_bytes(9999);
  ASSERT_TRUE(post_in_cell(*link_, numbered(0), first));
  const auto held = receiver_->next();
  ASSERT_TRUE(held);
  for (std::uint32_t i = 1; i < 100; ++i) {
    const auto payload = random_bytes(5000 + i);
    ASSERT_TRUE(post_in_cell(*link_, numbered(i), payload));
    expect_arrival(numbered(i), payload, true);
    ASSERT_TRUE(link_->post(numbered(i), {}));
    expect_arrival(numbered(i), {}, false);
  }
  EXPECT_TRUE(same(held->payload, first));
}

TEST_P(PathContract, CellsBeginOnPages) {
  for (int i = 0; i < 7; ++i) {
    const auto cell = link_->take_cell();
    ASSERT_TRUE(cell);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(cell->data) % 4096, 0U);
  }
}

TEST_P(PathContract, LockingTwiceIsLockingOnceAndIsUndone) {
  Locks& locks = world_ ? world_->locks() : locks_;
  ASSERT_TRUE(sender_->lock_memory().ok());
  const std::size_t held = locks.held.size();
  EXPECT_GT(held, 0U);
  ASSERT_TRUE(sender_->lock_memory().ok());
  EXPECT_EQ(locks.held.size(), held);
  self_.reset();
  world_.reset();  // expects that nothing stays locked
  EXPECT_TRUE(locks_.held.empty());
}

TEST_P(PathContract, LockingAgainAddsTheKindsThatCameIntoUse) {
  Locks& locks = world_ ? world_->locks() : locks_;
  ASSERT_TRUE(sender_->lock_memory().ok());
  const std::size_t held = locks.held.size();
  locks.kinds = 0b101;
  ASSERT_TRUE(sender_->lock_memory().ok());
  EXPECT_EQ(locks.held.size(), held);
  for (const auto& [address, lock] : locks.held) EXPECT_EQ(lock.kinds, 0b101U);
}

TEST_P(PathContract, ARefusalToLockIsToldHindersNoOtherKindAndIsUndoneToo) {
  Locks& locks = world_ ? world_->locks() : locks_;
  locks.kinds = 0b11;
  locks.refused = 0b10;
  EXPECT_EQ(sender_->lock_memory().text(), "an invented refusal to lock");
  EXPECT_EQ(locks.held.size(), world_ ? 2U : 1U) << "the cells of every rank";
  for (const auto& [address, lock] : locks.held) EXPECT_EQ(lock.kinds, 0b01U);
  locks.refused = 0;
  ASSERT_TRUE(sender_->lock_memory().ok());
  for (const auto& [address, lock] : locks.held) EXPECT_EQ(lock.kinds, 0b11U);
  locks.refused = 0b100;
  locks.kinds = 0b111;
  EXPECT_FALSE(sender_->lock_memory().ok());
  self_.reset();
  world_.reset();  // expects that nothing stays locked
  EXPECT_TRUE(locks_.held.empty());
}

TEST_P(PathContract, LeavingIsSeenByThePeer) {
  EXPECT_FALSE(receiver_->has_left(Rank{0}));
  ASSERT_TRUE(link_->post(numbered(1), {}));
  sender_->leave(kNobody);
  EXPECT_TRUE(receiver_->has_left(Rank{0}));
  EXPECT_EQ(kNobody, receiver_->death_told_by(Rank{0}));
  expect_arrival(numbered(1), {}, false);
}

TEST_P(PathContract, StrangersAreNotReached) {
  EXPECT_EQ(sender_->link(Rank{2}), nullptr);
  EXPECT_EQ(sender_->link(Rank{-1}), nullptr);
  EXPECT_FALSE(sender_->has_left(Rank{2}));
}

// What a receiver could not take, for want of memory: shown again as often as it is put back, before what came after it, and given back once.
TEST_P(PathContract, WhatIsPutBackIsShownAgainAndNothingElseIsChanged) {
  for (const bool in_cell : {false, true}) {
    std::uint32_t posted = 0;
    std::vector<std::vector<std::byte>> payloads;
    for (; posted < 7; ++posted) {
      payloads.push_back(random_bytes(in_cell ? 20000 - posted : 100 + posted));
      ASSERT_TRUE(in_cell ? post_in_cell(*link_, numbered(posted), payloads.back())
                          : link_->post(numbered(posted), payloads.back()));
    }
    for (std::uint32_t number = 0; number < posted; ++number) {
      for (std::uint32_t again = 0; again < number; ++again) {
        const auto shown = receiver_->next();
        ASSERT_TRUE(shown);
        EXPECT_EQ(number, shown->envelope.sequence);
        EXPECT_TRUE(same(shown->payload, payloads[number]));
        receiver_->put_back(*shown);
        EXPECT_TRUE(receiver_->arrival_within(1)) << "it is there again";
        EXPECT_FALSE(receiver_->idle);
      }
      if (in_cell) {
        EXPECT_EQ(number > 0, link_->take_cell().has_value()) << "that of the one before";
        EXPECT_FALSE(link_->take_cell()) << "what was put back has its cell still";
      }
      expect_arrival(numbered(number), payloads[number], in_cell);
    }
    EXPECT_FALSE(receiver_->next());
  }
}

TEST_P(PathContract, WhatIsPutBackLetsTheOtherCarrierComeFirst) {
  const auto bytes = random_bytes(5000);
  ASSERT_TRUE(post_in_cell(*link_, numbered(0), bytes));
  const auto cell = receiver_->next();
  ASSERT_TRUE(cell && cell->in_cell);
  receiver_->put_back(*cell);
  ASSERT_TRUE(link_->post(numbered(1), std::span{bytes}.first(8)));
  int slots = 0;
  int cells = 0;
  while (const auto arrival = receiver_->next()) {
    EXPECT_TRUE(same(arrival->payload, std::span{bytes}.first(arrival->in_cell ? 5000 : 8)));
    ++(arrival->in_cell ? cells : slots);
    receiver_->release(*arrival);
  }
  EXPECT_EQ(1, slots);
  EXPECT_EQ(1, cells);
}

TEST_P(PathContract, RandomTrafficArrivesCompleteAndInOrderPerCarrier) {
  std::mt19937 generator{std::random_device{}()};
  std::deque<std::pair<Envelope, std::vector<std::byte>>> slots;
  std::deque<std::pair<Envelope, std::vector<std::byte>>> cells;
  std::uint32_t sequence = 0;
  for (int step = 0; step < 20000; ++step) {
    if (generator() % 2 == 0) {
      const bool in_cell = generator() % 2 == 0;
      auto payload = random_bytes(generator() % (in_cell ? 10001 : 217));
      const Envelope envelope = numbered(sequence++, payload.size());
      const bool posted = in_cell ? post_in_cell(*link_, envelope, payload) : link_->post(envelope, payload);
      if (posted) (in_cell ? cells : slots).emplace_back(envelope, std::move(payload));
    } else if (const auto arrival = receiver_->next()) {
      auto& expected = arrival->in_cell ? cells : slots;
      ASSERT_FALSE(expected.empty());
      ASSERT_TRUE(same(arrival->envelope, expected.front().first));
      ASSERT_TRUE(same(arrival->payload, expected.front().second));
      expected.pop_front();
      receiver_->release(*arrival);
    }
  }
  EXPECT_GT(sequence, 1000U);
}

}  // namespace
}  // namespace ist::test
