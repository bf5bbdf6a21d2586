// What the shared-memory path promises beyond the contract of every path: rings, fairness, many ranks, set-up that fails.
#include <set>

#include "test_world.hpp"

namespace ist::test {
namespace {

TEST(ShmPath, RingIsMadeOnFirstUseAndCarriesBytes) {
  Settings settings;
  settings.ring_slots = 3;
  settings.ring_slot_host = Bytes{5000};
  settings.ring_slot_device = Bytes{4096};
  TestWorld world(2, settings);
  auto before = world.link(1, 0).incoming();
  ASSERT_TRUE(before.ok());
  EXPECT_EQ(*before, nullptr);
  auto out = world.link(0, 1).outgoing();
  ASSERT_TRUE(out.ok()) << out.status().text();
  ASSERT_NE(*out, nullptr);
  EXPECT_EQ(*world.link(0, 1).outgoing(), *out);
  auto in = world.link(1, 0).incoming();
  ASSERT_TRUE(in.ok()) << in.status().text();
  ASSERT_NE(*in, nullptr);
  EXPECT_EQ(*world.link(1, 0).incoming(), *in);
  EXPECT_EQ((*out)->slot_bytes(), Bytes{5000});
  for (std::uint32_t i = 0; i < 20; ++i) {
    const auto payload = random_bytes(5000 - i);
    const auto slot = (*out)->start_next();
    ASSERT_TRUE(slot);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(slot->data) % 4096, 0U);
    std::memcpy(slot->data, payload.data(), payload.size());
    EXPECT_FALSE((*in)->take_next());
    (*out)->publish_oldest({i, static_cast<std::uint32_t>(payload.size()), i * 9, slot->place, slot->next});
    const auto full = (*in)->take_next();
    ASSERT_TRUE(full);
    EXPECT_EQ(full->header.receiver_op, i);
    EXPECT_EQ(full->header.offset, i * 9);
    EXPECT_TRUE(same({full->data, full->header.bytes}, payload));
    (*in)->release_oldest();
  }
}

TEST(ShmPath, BothDirectionsOfAPairHaveTheirOwnRing) {
  TestWorld world(3);
  for (int from = 0; from < 3; ++from)
    for (int to = 0; to < 3; ++to)
      if (from != to) {
        const auto out = world.link(from, to).outgoing();
        ASSERT_TRUE(out.ok());
        (*out)->start_next();
        (*out)->publish_oldest({static_cast<std::uint32_t>(from * 3 + to), 0, 0});
      }
  for (int from = 0; from < 3; ++from)
    for (int to = 0; to < 3; ++to)
      if (from != to) {
        const auto in = world.link(to, from).incoming();
        ASSERT_TRUE(in.ok());
        ASSERT_NE(*in, nullptr);
        EXPECT_EQ((*in)->take_next()->header.receiver_op, static_cast<std::uint32_t>(from * 3 + to));
      }
}

TEST(ShmPath, RingsMadeBeforeAndAfterLockingAreLocked) {
  TestWorld world(2);
  ASSERT_TRUE(world.link(0, 1).outgoing().ok());
  EXPECT_EQ(world.locks().held.size(), 0U);
  ASSERT_TRUE(world.path(0).lock_memory().ok());
  EXPECT_EQ(world.locks().held.size(), 3U);  // two ranks' cells, one ring
  ASSERT_TRUE(world.link(1, 0).outgoing().ok());
  EXPECT_EQ(world.locks().held.size(), 3U);
  ASSERT_NE(*world.link(0, 1).incoming(), nullptr);
  EXPECT_EQ(world.locks().held.size(), 4U);
  ASSERT_TRUE(world.path(0).lock_memory().ok());
  EXPECT_EQ(world.locks().held.size(), 4U);
}

TEST(ShmPath, RingsOfBothDirectionsAreLockedForAKindThatComesIntoUseLater) {
  TestWorld world(2);
  ASSERT_TRUE(world.path(0).lock_memory().ok());
  ASSERT_TRUE(world.link(0, 1).outgoing().ok());
  ASSERT_TRUE(world.link(1, 0).outgoing().ok());
  ASSERT_NE(*world.link(0, 1).incoming(), nullptr);
  world.locks().kinds = 0b11;
  ASSERT_TRUE(world.path(0).lock_memory().ok());
  EXPECT_EQ(world.locks().held.size(), 4U);  // two ranks' cells, a ring out and a ring in
  for (const auto& [address, lock] : world.locks().held) EXPECT_EQ(lock.kinds, 0b11U);
}

TEST(ShmPath, RingsThatCannotBeLockedCarryBytesAllTheSame) {
  TestWorld world(2);
  world.locks().refused = 1;
  EXPECT_FALSE(world.path(0).lock_memory().ok());
  EXPECT_FALSE(world.path(1).lock_memory().ok());
  testing::internal::CaptureStderr();
  const auto out = world.link(0, 1).outgoing();
  ASSERT_TRUE(out.ok()) << out.status().text();
  const auto in = world.link(1, 0).incoming();
  ASSERT_TRUE(in.ok()) << in.status().text();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("slower: an invented refusal to lock"), std::string::npos) << said;
  EXPECT_EQ(said.find("invented"), said.rfind("invented")) << "said twice: " << said;
  const auto payload = random_bytes(4097);
  std::memcpy((*out)->start_next()->data, payload.data(), payload.size());
  (*out)->publish_oldest({1, static_cast<std::uint32_t>(payload.size()), 0});
  const auto full = (*in)->take_next();
  ASSERT_TRUE(full);
  EXPECT_TRUE(same({full->data, full->header.bytes}, payload));
}

TEST(ShmPath, SourcesTakeTurns) {
  TestWorld world(4);
  for (std::uint32_t i = 0; i < 40; ++i)
    for (int from = 1; from < 4; ++from) ASSERT_TRUE(world.link(from, 0).post(numbered(i), {}));
  for (int from = 1; from < 4; ++from) ASSERT_TRUE(post_in_cell(world.link(from, 0), numbered(40), {}));
  // No source has more than 16 in a row, and all had some before one has its second run.
  constexpr int kMostInARow = 16;
  constexpr int kCells = 0;  // as if it were from rank 0
  std::vector<int> runs;
  int in_a_row = 0;
  for (int i = 0; i < 3 * 41; ++i) {
    const auto arrival = world.path(0).next();
    ASSERT_TRUE(arrival);
    const int source = arrival->in_cell ? kCells : arrival->source.value;
    world.path(0).release(*arrival);
    if (runs.empty() || runs.back() != source) {
      runs.push_back(source);
      in_a_row = 0;
    }
    EXPECT_LE(++in_a_row, kMostInARow);
  }
  ASSERT_LE(4U, runs.size());
  EXPECT_EQ(4U, (std::set<int>{runs.begin(), runs.begin() + 4}.size()));
  EXPECT_FALSE(world.path(0).next());
}

// Who has taken more of that source than next() showed lets the others come first.
TEST(ShmPath, OthersComeFirstOnceTheTurnIsPassed) {
  TestWorld world(3);
  for (std::uint32_t i = 0; i < 3; ++i)
    for (int from = 1; from < 3; ++from) ASSERT_TRUE(world.link(from, 0).post(numbered(i), {}));
  std::vector<int> sources;
  for (int i = 0; i < 6; ++i) {
    const auto arrival = world.path(0).next();
    ASSERT_TRUE(arrival);
    sources.push_back(arrival->source.value);
    world.path(0).pass_turn();
  }
  for (std::size_t i = 1; i < sources.size(); ++i) EXPECT_NE(sources[i - 1], sources[i]) << i;
}

TEST(ShmPath, RanksMayHaveCellsOfDifferentSizes) {
  Mailbox mailbox;
  Locks locks;
  std::vector<std::unique_ptr<ShmPath>> paths(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      Settings settings;
      settings.eager_limit = Bytes{rank == 0 ? 100000U : 0U};
      settings.cells = rank == 0 ? 5 : 9;
      auto made = ShmPath::connect(surroundings_of(rank, 2, settings, &mailbox, &locks));
      ASSERT_TRUE(made.ok());
      paths[static_cast<std::size_t>(rank)] = std::move(made).value();
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(paths[0]->link(Rank{1})->cell_limit, Bytes{100000});
  EXPECT_EQ(paths[1]->link(Rank{0})->cell_limit, Bytes{0});
  for (std::uint32_t i = 0; i < 30; ++i) {
    const auto payload = random_bytes(100000 - i);
    ASSERT_TRUE(post_in_cell(*paths[0]->link(Rank{1}), numbered(i), payload));
    const auto there = paths[1]->next();
    ASSERT_TRUE(there);
    EXPECT_TRUE(same(there->payload, payload));
    paths[1]->release(*there);
    ASSERT_TRUE(post_in_cell(*paths[1]->link(Rank{0}), numbered(i), {}));
    const auto back = paths[0]->next();
    ASSERT_TRUE(back);
    EXPECT_EQ(back->payload.size(), 0U);
    paths[0]->release(*back);
  }
}

TEST(ShmPath, ManyRanksReachEachOther) {
  const int ranks = 24;
  Settings settings;
  settings.cells = 4;
  TestWorld world(ranks, settings);
  for (int from = 0; from < ranks; ++from)
    for (int to = 0; to < ranks; ++to)
      EXPECT_TRUE(from == to || world.link(from, to).post(numbered(static_cast<std::uint32_t>(from)), {}));
  for (int to = 0; to < ranks; ++to) {
    std::vector<bool> seen(static_cast<std::size_t>(ranks));
    while (const auto arrival = world.path(to).next()) {
      EXPECT_TRUE(same(arrival->envelope, numbered(static_cast<std::uint32_t>(arrival->source.value))));
      EXPECT_FALSE(seen[static_cast<std::size_t>(arrival->source.value)]);
      seen[static_cast<std::size_t>(arrival->source.value)] = true;
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), ranks - 1);
  }
}

TEST(ShmPath, AloneItReachesNobodyAndIsEmpty) {
  Settings settings;
  settings.wait = "sleep";
  TestWorld world(1, settings);
  EXPECT_EQ(world.path(0).link(Rank{0}), nullptr);
  EXPECT_FALSE(world.path(0).next());
  EXPECT_TRUE(world.path(0).sleep(std::chrono::microseconds(1)));
}

TEST(ShmSetUp, MissingPeerIsNamed) {
  Mailbox mailbox;
  Settings settings;
  settings.boot_timeout = 0.05;
  const auto made = ShmPath::connect(surroundings_of(0, 2, settings, &mailbox));
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), IST_ERR_BOOT);
  EXPECT_NE(made.status().text().find("rank 1"), std::string::npos) << made.status().text();
  EXPECT_NE(made.status().text().find("ISTHMUS_BOOT_TIMEOUT"), std::string::npos) << made.status().text();
}

TEST(ShmSetUp, ForeignSegmentsAreRefused) {
  const Settings settings;
  auto memory = SharedMemory::create("isthmus-test", Bytes{100});
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(Segment::open(FileDescriptor{::dup(memory->descriptor())}, 2, 0).status().code(), IST_ERR_BOOT);
  memory = SharedMemory::create("isthmus-test", Bytes{1000000});
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(Segment::open(FileDescriptor{::dup(memory->descriptor())}, 2, 0).status().code(), IST_ERR_BOOT);
  const auto segments = segments_for(2, settings);
  EXPECT_TRUE(Segment::open(FileDescriptor{::dup(segments[0].descriptor())}, 2, 0).ok());
  EXPECT_EQ(Segment::open(FileDescriptor{::dup(segments[0].descriptor())}, 2, 1).status().code(), IST_ERR_BOOT);
  EXPECT_EQ(Segment::open(FileDescriptor{::dup(segments[0].descriptor())}, 3, 0).status().code(), IST_ERR_BOOT);
}

TEST(ShmSetUp, ForeignRingsAreRefused) {
  TestWorld world(2);
  ASSERT_TRUE(world.link(0, 1).outgoing().ok());
  // Something else arrives first in the ring's place.
  auto taken = world.mailbox().take(Rank{0}, Rank{1}, kRingPurpose, 0);
  ASSERT_TRUE(taken.ok() && taken.value());
  auto memory = SharedMemory::create("isthmus-test", Bytes{4096});
  ASSERT_TRUE(memory.ok());
  ASSERT_TRUE(world.mailbox().send(Rank{0}, Rank{1}, kRingPurpose, memory->descriptor()).ok());
  const auto in = world.link(1, 0).incoming();
  ASSERT_FALSE(in.ok());
  EXPECT_NE(in.status().text().find("rank 0"), std::string::npos) << in.status().text();
}

TEST(ShmSetUp, RefusedLockIsReported) {
  Mailbox mailbox;
  Locks locks;
  locks.refused = 1;
  auto made = ShmPath::connect(surroundings_of(0, 1, {}, &mailbox, &locks));
  ASSERT_TRUE(made.ok());
  EXPECT_EQ((*made)->lock_memory().text(), "an invented refusal to lock");
}

}  // namespace
}  // namespace ist::test
