// Memory of another process that is read where it lies: which is believed, and when it is not.
#include <utility>

#include "test_world.hpp"

namespace ist::test {
namespace {

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

TEST(ShmPath, SeveralAreReadTogetherWhileNoneOfThemIsWithdrawn) {
  TestWorld world(2);
  Link& link = world.link(0, 1);
  Link& offering = world.link(1, 0);
  if (!link.reads_peer()) GTEST_SKIP() << not_read();
  std::vector<Offered> offered;
  for (const std::size_t size : {1UL, 70000UL, 4097UL, 200000UL}) offered.push_back({random_bytes(size)});
  std::vector<std::vector<std::byte>> found;
  std::vector<Link::OfferRead> reads;
  for (const Offered& one : offered) {
    Offer offer = one.offer();
    offer.withdrawn = offering.offers_withdrawn();
    reads.push_back({found.emplace_back(one.bytes.size()), offer});
  }
  ASSERT_TRUE(link.read_together(reads));
  for (std::size_t i = 0; i < offered.size(); ++i) EXPECT_EQ(offered[i].bytes, found[i]) << i;
  reads.push_back(reads.front());
  EXPECT_FALSE(link.read_together(reads)) << "so many are not";
  reads.pop_back();
  // Memory that is not there; and anything withdrawn since one was offered, which its word alone could tell.
  const std::uint64_t address = std::exchange(reads[2].offer.address, 4096);
  EXPECT_FALSE(link.read_together(reads));
  EXPECT_TRUE(link.reads_peer()) << "nothing is said of the way";
  reads[2].offer.address = address;
  EXPECT_TRUE(link.read_together(reads));
  offering.withdraw_offer();
  for (Link::OfferRead& read : reads) {
    EXPECT_FALSE(link.read_together(reads));
    read.offer.withdrawn = offering.offers_withdrawn();
  }
  EXPECT_TRUE(link.read_together(reads));
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

}  // namespace
}  // namespace ist::test
