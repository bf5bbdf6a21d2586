// Host memory that other ranks copy from: places, what is given back, and which sends are believed.
#include "memory/host/shared_heap.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstring>
#include <map>
#include <random>
#include <thread>

namespace ist {
namespace {

constexpr std::uint64_t kPage = SharedHeap::kPage;

std::uint64_t bytes_in_memory(const SharedHeap& heap) {
  struct stat info {};
  EXPECT_EQ(0, ::fstat(heap.descriptor(), &info));
  return static_cast<std::uint64_t>(info.st_blocks) * 512;
}

TEST(SharedHeap, GivesWholePagesThatOverlapNoOtherAndTakesThemBack) {
  SharedHeap heap(mebibytes(64));
  std::mt19937_64 random(7);
  std::map<std::byte*, std::pair<std::uint64_t, std::uint8_t>> held;
  const auto check = [](const auto& each) {
    const auto [address, what] = each;
    for (std::uint64_t i = 0; i < what.first; i += 997) ASSERT_EQ(std::byte{what.second}, address[i]);
  };
  for (int round = 0; round < 4000; ++round) {
    if (!held.empty() && random() % 2 == 0) {
      auto at = std::next(held.begin(), static_cast<std::ptrdiff_t>(random() % held.size()));
      check(*at);
      EXPECT_TRUE(heap.release(at->first));
      EXPECT_FALSE(heap.release(at->first));
      held.erase(at);
      continue;
    }
    const std::uint64_t size = 1 + random() % (random() % 8 == 0 ? 8 << 20 : 100000);
    auto* const address = static_cast<std::byte*>(heap.allocate(Bytes{size}));
    if (address == nullptr) continue;
    EXPECT_EQ(0U, reinterpret_cast<std::uint64_t>(address) % kPage);
    EXPECT_TRUE(heap.holds(address, Bytes{size}));
    const auto value = static_cast<std::uint8_t>(random());
    std::memset(address, value, size);
    held[address] = {size, value};
  }
  for (const auto& each : held) check(each);
  for (const auto& each : held) EXPECT_TRUE(heap.release(each.first));
  // All of it is one place again.
  void* const whole = heap.allocate(mebibytes(64) - Bytes{kPage});
  EXPECT_NE(nullptr, whole);
  EXPECT_EQ(nullptr, heap.allocate(Bytes{1}));
}

TEST(SharedHeap, WhatIsFreedIsMemoryOfTheSystemAgain) {
  SharedHeap heap(mebibytes(64));
  void* const address = heap.allocate(mebibytes(20));
  ASSERT_NE(nullptr, address);
  const std::uint64_t before = bytes_in_memory(heap);
  std::memset(address, 1, 20 << 20);
  EXPECT_GE(bytes_in_memory(heap), before + (20 << 20));
  EXPECT_TRUE(heap.release(address));
  EXPECT_EQ(before, bytes_in_memory(heap));
}

TEST(SharedHeap, RefusesWhatDoesNotFitAndNamesNothingElseItsOwn) {
  SharedHeap none(Bytes{0});
  EXPECT_EQ(nullptr, none.allocate(Bytes{1}));
  EXPECT_FALSE(none.holds(&none, Bytes{1}));
  EXPECT_FALSE(none.release(&none));
  none.hide(5);
  SharedHeap heap(mebibytes(1));
  EXPECT_EQ(-1, heap.descriptor());
  EXPECT_EQ(nullptr, heap.allocate(Bytes{}));
  EXPECT_EQ(nullptr, heap.allocate(mebibytes(1)));  // a page is the heap's own
  EXPECT_EQ(nullptr, heap.allocate(Bytes{~std::uint64_t{0}}));
  auto* const address = static_cast<std::byte*>(heap.allocate(Bytes{5000}));
  ASSERT_NE(nullptr, address);
  EXPECT_FALSE(heap.release(address + kPage));
  EXPECT_FALSE(heap.holds(address, mebibytes(1)));
  EXPECT_FALSE(heap.holds(address - 2 * kPage, Bytes{1}));
  EXPECT_FALSE(heap.holds(address, Bytes{~std::uint64_t{0}}));
}

// A file beyond that would end the process by a signal.
TEST(SharedHeap, IsNoLongerThanFilesOfTheProcessMayBe) {
  rlimit before{};
  ASSERT_EQ(0, ::getrlimit(RLIMIT_FSIZE, &before));
  rlimit low = before;
  low.rlim_cur = 300 << 10;
  ASSERT_EQ(0, ::setrlimit(RLIMIT_FSIZE, &low));
  SharedHeap heap(mebibytes(64));
  EXPECT_EQ(nullptr, heap.allocate(mebibytes(1)));
  EXPECT_NE(nullptr, heap.allocate(kibibytes(200)));
  EXPECT_EQ(kibibytes(300), heap.length());
  ASSERT_EQ(0, ::setrlimit(RLIMIT_FSIZE, &before));
}

TEST(SharedHeap, OfSendsThatShareAWordTheLaterOneIsBelieved) {
  SharedHeap heap(mebibytes(1));
  ASSERT_NE(nullptr, heap.allocate(Bytes{1}));
  const auto value = [](std::uint64_t address) { return *reinterpret_cast<const volatile std::uint64_t*>(address); };
  const std::uint64_t first = heap.show(77);
  EXPECT_EQ(77U, value(first));
  const std::uint64_t other = heap.show(78);
  EXPECT_NE(first, other);
  EXPECT_EQ(first, heap.show(77 + SharedHeap::kWords));
  heap.hide(77);
  EXPECT_EQ(77 + SharedHeap::kWords, value(first));
  heap.hide(77 + SharedHeap::kWords);
  EXPECT_EQ(0U, value(first));
  EXPECT_EQ(78U, value(other));
}

TEST(SharedHeap, ServesThreadsWithoutGivingAPlaceTwice) {
  SharedHeap heap(mebibytes(64));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&heap, t] {
      for (int i = 0; i < 2000; ++i) {
        const std::uint64_t size = 1 + static_cast<std::uint64_t>(i % 7) * 3000;
        auto* const address = static_cast<std::uint64_t*>(heap.allocate(Bytes{size + 8}));
        ASSERT_NE(nullptr, address);
        const auto mine = static_cast<std::uint64_t>(t * 100000 + i);
        address[0] = address[size / 8] = mine;
        std::this_thread::yield();
        ASSERT_EQ(mine, address[0]);
        ASSERT_EQ(mine, address[size / 8]);
        ASSERT_TRUE(heap.release(address));
      }
    });
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace ist
