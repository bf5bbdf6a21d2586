// What lies in the memory that a rank shares with the others of its host: seen once it is shown, within its bounds alone.
#include "test_world.hpp"

namespace ist::test {
namespace {

// In rank 1's heap, offered to rank 0.
struct Shown {
  Shown(TestWorld& world, std::size_t size)
      : heap(world.heap(1)), data(static_cast<std::byte*>(heap.allocate(Bytes{size}))), bytes(random_bytes(size)) {
    std::copy(bytes.begin(), bytes.end(), data);
    offer = {reinterpret_cast<std::uint64_t>(data), heap.show(kId), kId};
  }
  static constexpr std::uint64_t kId = 4711;
  SharedHeap& heap;
  std::byte* data;
  std::vector<std::byte> bytes;
  Offer offer;
};

TEST(ShmHeap, WhatLiesInAHeapIsSeenOnceItsOwnerHasShownIt) {
  TestWorld world(2);
  Link& link = world.link(0, 1);
  const Shown shown(world, 3 << 20);
  EXPECT_FALSE(link.sees(shown.offer, Bytes{1}));
  EXPECT_TRUE(world.link(1, 0).show_heap());
  EXPECT_TRUE(world.link(1, 0).show_heap());
  ASSERT_TRUE(link.sees(shown.offer, Bytes{shown.bytes.size()}));
  for (const std::size_t size : {1UL, 4095UL, 4097UL, 3UL << 20}) {
    std::vector<std::byte> found(size + 1, std::byte{0x5a});
    for (const std::size_t from : {std::size_t{0}, size / 3, size})
      EXPECT_TRUE(link.read_peer(found.data() + from, shown.offer, Offset{from}, Bytes{size - from}).value());
    EXPECT_TRUE(std::equal(found.begin(), found.end() - 1, shown.bytes.begin()));
    EXPECT_EQ(found.back(), std::byte{0x5a});
  }
  std::byte first{};
  world.heap(1).hide(Shown::kId);
  EXPECT_FALSE(link.read_peer(&first, shown.offer, Offset{}, Bytes{1}).value());
  world.heap(1).show(Shown::kId + SharedHeap::kWords);
  EXPECT_FALSE(link.read_peer(&first, shown.offer, Offset{}, Bytes{1}).value());
}

TEST(ShmHeap, TheWordIsAskedWhereSomethingWasWithdrawnSince) {
  TestWorld world(2);
  Link& link = world.link(0, 1);
  Link& offering = world.link(1, 0);
  Shown shown(world, 5000);
  EXPECT_TRUE(offering.show_heap());
  shown.offer.withdrawn = offering.offers_withdrawn();
  std::vector<std::byte> found(5000);
  const auto is_believed = [&] { return link.read_peer(found.data(), shown.offer, Offset{}, Bytes{5000}).value(); };
  EXPECT_TRUE(is_believed());
  EXPECT_EQ(shown.bytes, found);
  offering.withdraw_offer();
  EXPECT_TRUE(is_believed()) << "another offer";
  world.heap(1).hide(Shown::kId);
  EXPECT_FALSE(is_believed());
}

TEST(ShmHeap, OutsideOfAHeapNothingIsSeen) {
  TestWorld world(2);
  Link& link = world.link(0, 1);
  const Shown shown(world, 100000);
  EXPECT_TRUE(world.link(1, 0).show_heap());
  ASSERT_TRUE(link.sees(shown.offer, Bytes{100000}));
  const std::uint64_t end = shown.heap.start() + shown.heap.length().value;
  const auto sees = [&](std::uint64_t address, std::uint64_t size, std::uint64_t word) {
    return link.sees({address, word, Shown::kId}, Bytes{size});
  };
  EXPECT_TRUE(sees(end - 1, 1, shown.offer.word));
  EXPECT_FALSE(sees(end - 1, 2, shown.offer.word));
  EXPECT_FALSE(sees(shown.offer.address, ~std::uint64_t{0}, shown.offer.word));
  EXPECT_FALSE(sees(shown.heap.start() - 1, 1, shown.offer.word));
  EXPECT_FALSE(sees(shown.offer.address, 1, end - 7));
  EXPECT_FALSE(sees(shown.offer.address, 1, shown.offer.word + 1));
}

// More and more of it is mapped.
TEST(ShmHeap, WhatLiesFarBehindIsSeenToo) {
  TestWorld world(2);
  Link& link = world.link(0, 1);
  const Shown near(world, 70000);
  ASSERT_NE(nullptr, world.heap(1).allocate(mebibytes(63)));
  const Shown border(world, 3 << 20);
  ASSERT_NE(nullptr, world.heap(1).allocate(mebibytes(300)));
  const Shown far(world, 70001);
  EXPECT_TRUE(world.link(1, 0).show_heap());
  for (const Shown* const each : {&near, &border, &near, &far, &border, &near}) {
    std::vector<std::byte> found(each->bytes.size());
    ASSERT_TRUE(link.sees(each->offer, Bytes{found.size()}));
    ASSERT_TRUE(link.read_peer(found.data(), each->offer, Offset{}, Bytes{found.size()}).value());
    EXPECT_EQ(each->bytes, found);
  }
}

// Whoever sends must not wait for a rank that takes no descriptors.
TEST(ShmHeap, WhatCannotBeShownNowIsShownLater) {
  TestWorld world(2);
  const Shown shown(world, 100000);
  world.mailbox().full = true;
  EXPECT_FALSE(world.link(1, 0).show_heap());
  EXPECT_FALSE(world.link(0, 1).sees(shown.offer, Bytes{1}));
  world.mailbox().full = false;
  EXPECT_TRUE(world.link(1, 0).show_heap());
  EXPECT_TRUE(world.link(0, 1).sees(shown.offer, Bytes{1}));
}

// A descriptor that is no heap, or one that does not come: the ring has every message all the same.
TEST(ShmHeap, AHeapThatCannotBeMappedIsNotSeen) {
  TestWorld world(2);
  const Shown shown(world, 100000);
  auto other = SharedMemory::create("short", kibibytes(4));
  ASSERT_TRUE(other.ok());
  EXPECT_TRUE(world.mailbox().send(Rank{1}, Rank{0}, kHeapPurpose, other->descriptor()).ok());
  EXPECT_TRUE(world.link(1, 0).show_heap());
  EXPECT_FALSE(world.link(0, 1).sees(shown.offer, Bytes{1}));
  EXPECT_FALSE(world.link(0, 1).sees(shown.offer, Bytes{1}));
}

TEST(ShmHeap, NoHeapIsShownOrSeenWhereTheUserSaysNever) {
  Settings settings;
  settings.single_copy = "never";
  TestWorld world(2, settings);
  ASSERT_NE(nullptr, world.heap(1).allocate(kibibytes(64)));
  EXPECT_FALSE(world.link(1, 0).show_heap());
  EXPECT_EQ(0U, world.mailbox().waiting(Rank{1}, Rank{0}, kHeapPurpose));
}

// The other rank says so: it leaves no descriptor lying about, of which a user may have only so many.
TEST(ShmHeap, WhoDoesNotWantAHeapTakesItsDescriptorNevertheless) {
  Settings never;
  never.single_copy = "never";
  TestWorld world(std::vector<Settings>{never, {}});
  const Shown shown(world, 100000);
  EXPECT_TRUE(world.link(1, 0).show_heap());
  EXPECT_EQ(1U, world.mailbox().waiting(Rank{1}, Rank{0}, kHeapPurpose));
  EXPECT_FALSE(world.link(0, 1).sees(shown.offer, Bytes{1}));
  EXPECT_EQ(0U, world.mailbox().waiting(Rank{1}, Rank{0}, kHeapPurpose));
  EXPECT_FALSE(world.link(0, 1).sees(shown.offer, Bytes{1}));
}

}  // namespace
}  // namespace ist::test
