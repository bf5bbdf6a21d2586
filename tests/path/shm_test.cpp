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
    (*out)->publish_oldest({i, static_cast<std::uint32_t>(payload.size()), i * 9});
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

// Says what a test leaves out where this process may not read even its own memory by the call that reads another's.
std::string not_read() { return "not covered here: reading a peer's memory; " + PeerMemory::possible().text(); }

// What a sender offers, and the word that it clears.
struct Offered {
  std::vector<std::byte> bytes;
  std::uint64_t word = 4711;
  Offer offer() const {
    return {reinterpret_cast<std::uint64_t>(bytes.data()), reinterpret_cast<std::uint64_t>(&word), 4711};
  }
};

TEST(ShmPath, APeersMemoryIsReadWhereItLies) {
  TestWorld world(2);
  Link& link = world.link(0, 1);
  if (!link.reads_peer()) GTEST_SKIP() << not_read();
  for (const std::size_t size : {1UL, 4095UL, 4097UL, 3UL << 20}) {
    const Offered wanted{random_bytes(size)};
    std::vector<std::byte> found(size + 1, std::byte{0x5a});
    for (const std::size_t from : {std::size_t{0}, size / 3, size}) {
      const auto read = link.read_peer(found.data() + from, wanted.offer(), Offset{from}, Bytes{size - from});
      ASSERT_TRUE(read.ok()) << read.status().text();
      EXPECT_TRUE(*read);
      EXPECT_TRUE(std::equal(wanted.bytes.begin(), wanted.bytes.end(), found.begin())) << size << " from " << from;
      EXPECT_EQ(found.back(), std::byte{0x5a});
    }
  }
}

TEST(ShmPath, WhatIsOfferedNoMoreIsNotTakenForTheMessage) {
  TestWorld world(2);
  Link& link = world.link(0, 1);
  if (!link.reads_peer()) GTEST_SKIP() << not_read();
  Offered ended{random_bytes(10000)};
  ended.word = 0;
  std::vector<std::byte> found(10000);
  const auto read = link.read_peer(found.data(), ended.offer(), Offset{}, Bytes{10000});
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_FALSE(*read);
  ended.word = 4712;  // a later send, in the same place
  EXPECT_FALSE(link.read_peer(found.data(), ended.offer(), Offset{}, Bytes{10000}).value());
  EXPECT_TRUE(link.reads_peer()) << "nothing is wrong with the way";
}

// Nothing was withdrawn since: the word is not asked. Something was: it tells, of this offer.
TEST(ShmPath, TheWordIsAskedWhereSomethingWasWithdrawnSince) {
  TestWorld world(2);
  Link& link = world.link(0, 1);
  Link& offering = world.link(1, 0);
  if (!link.reads_peer()) GTEST_SKIP() << not_read();
  Offered offered{random_bytes(10000)};
  Offer offer = offered.offer();
  const auto is_believed = [&] {
    std::vector<std::byte> found(10000);
    const bool believed = link.read_peer(found.data(), offer, Offset{}, Bytes{10000}).value();
    EXPECT_EQ(offered.bytes, found);
    return believed;
  };
  offer.withdrawn = offering.offers_withdrawn();
  EXPECT_EQ(0U, offer.withdrawn);
  offer.word = 4096;  // nothing that could be asked is there
  EXPECT_TRUE(is_believed());
  world.link(0, 1).withdraw_offer();
  EXPECT_TRUE(is_believed()) << "what the other one offers is counted apart";
  offer.word = offered.offer().word;
  offering.withdraw_offer();
  EXPECT_EQ(1U, offering.offers_withdrawn());
  EXPECT_TRUE(is_believed()) << "another offer";
  offered.word = 0;
  EXPECT_FALSE(is_believed());
  offer.withdrawn = offering.offers_withdrawn();
  EXPECT_TRUE(is_believed()) << "an offer that was made afterwards";
}

TEST(ShmPath, AfterMemoryThatCannotBeReadNoneIsReadAnyMore) {
  TestWorld world(2);
  Link& link = world.link(0, 1);
  if (!link.reads_peer()) GTEST_SKIP() << not_read();
  std::vector<std::byte> found(100);
  Offer offer = Offered{found}.offer();
  offer.address = 4096;
  const auto read = link.read_peer(found.data(), offer, Offset{}, Bytes{100});
  EXPECT_EQ(read.status().code(), IST_ERR_SYSTEM);
  EXPECT_NE(read.status().text().find("process_vm_readv"), std::string::npos) << read.status().text();
  EXPECT_FALSE(link.reads_peer());
}

TEST(ShmPath, NoMemoryIsReadWhereTheUserSaysNever) {
  Settings settings;
  settings.single_copy = "never";
  TestWorld world(2, settings);
  EXPECT_FALSE(world.link(0, 1).reads_peer());
}

TEST(PeerMemory, WhatIsSaidToBePossibleIs) {
  const Status possible = PeerMemory::possible();
  TestWorld world(2);  // of one process, which may always read itself, unless the call is forbidden
  if (possible.ok()) {
    EXPECT_TRUE(world.link(0, 1).reads_peer());
  } else {
    EXPECT_NE(possible.text().find("process_vm_readv"), std::string::npos) << possible.text();
    EXPECT_NE(possible.text().find("ptrace_scope"), std::string::npos) << possible.text();
  }
}

TEST(PeerMemory, OnlyTheProcessThatShowsTheProofIsRead) {
  std::uint64_t word = 4711;
  const PeerMemory::Proof right{reinterpret_cast<std::uint64_t>(&word), 4711};
  const auto peer = PeerMemory::open(::getpid(), right);
  if (!peer.ok()) GTEST_SKIP() << not_read();
  EXPECT_FALSE(PeerMemory::open(::getpid(), {right.address, 4712}).ok());
  EXPECT_FALSE(PeerMemory::open(0, right).ok());
  // Another process, with another word there or none.
  int pipe[2];
  ASSERT_EQ(0, ::pipe(pipe));
  const pid_t child = ::fork();
  if (child == 0) {
    word = 1;
    if (::write(pipe[1], "x", 1) == 1) ::pause();
    ::_exit(1);
  }
  char ready = 0;
  EXPECT_EQ(1, ::read(pipe[0], &ready, 1));
  const auto other = PeerMemory::open(child, right);
  EXPECT_FALSE(other.ok());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(PeerMemory::open(child, right).ok()) << "it has ended";
  for (const int end : pipe) ::close(end);
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
