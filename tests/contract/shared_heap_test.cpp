// Host memory that other ranks copy from: places, what is given back, and which sends are believed.
#include "memory/host/shared_heap.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <thread>

namespace ist {
namespace {

constexpr std::uint64_t kPage = SharedHeap::kPage;

std::uint64_t bytes_in_memory(int descriptor) {
  struct stat info {};
  EXPECT_EQ(0, ::fstat(descriptor, &info));
  return static_cast<std::uint64_t>(info.st_blocks) * 512;
}
std::uint64_t bytes_in_memory(const SharedHeap& heap) { return bytes_in_memory(heap.descriptor()); }

// Of the heap's file as /proc/self/smaps shows it: lengths of what is memory, and of what nobody may touch.
struct Mapped {
  std::uint64_t open = 0;
  std::uint64_t closed = 0;
  bool closed_in_core_files = false;
};

Mapped mapped() {
  std::ifstream smaps("/proc/self/smaps");
  Mapped found;
  bool of_heap = false;
  bool closed = false;
  for (std::string line; std::getline(smaps, line);) {
    const auto dash = line.find('-');
    const auto space = line.find(' ');
    if (dash != std::string::npos && dash < space && line.find(':') > space) {
      of_heap = line.find("isthmus-heap") != std::string::npos;
      closed = line.compare(space + 1, 4, "---s") == 0;
      const std::uint64_t length = std::stoull(line.substr(dash + 1), nullptr, 16) - std::stoull(line, nullptr, 16);
      if (of_heap) (closed ? found.closed : found.open) += length;
    } else if (of_heap && closed && line.rfind("VmFlags:", 0) == 0 && line.find(" dd") == std::string::npos) {
      found.closed_in_core_files = true;
    }
  }
  return found;
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

TEST(SharedHeap, IsNoneWhereTheProcessMayHaveOnlySoManyAddresses) {
  rlimit before{};
  ASSERT_EQ(0, ::getrlimit(RLIMIT_AS, &before));
  rlimit low = before;
  low.rlim_cur = std::min<rlim_t>(before.rlim_cur, rlim_t{1} << 46);
  ASSERT_EQ(0, ::setrlimit(RLIMIT_AS, &low));
  SharedHeap heap(mebibytes(64));
  EXPECT_EQ(nullptr, heap.allocate(mebibytes(1)));
  ASSERT_EQ(0, ::setrlimit(RLIMIT_AS, &before));
}

// What the program does not use is no memory of it, though it locks all that it has or ends with a core file.
TEST(SharedHeap, BecomesMemoryAsItIsUsed) {
  SharedHeap heap(mebibytes(1024));
  auto* const small = static_cast<std::byte*>(heap.allocate(mebibytes(1)));
  ASSERT_NE(nullptr, small);
  const auto expect_open = [](std::uint64_t bytes) {
    const Mapped now = mapped();
    EXPECT_EQ(bytes, now.open);
    EXPECT_EQ(mebibytes(1024).value - bytes, now.closed);
    EXPECT_FALSE(now.closed_in_core_files);
  };
  expect_open(mebibytes(64).value);
  auto* const large = static_cast<std::byte*>(heap.allocate(mebibytes(300)));
  ASSERT_NE(nullptr, large);
  large[mebibytes(300).value - 1] = std::byte{7};
  small[0] = std::byte{8};
  expect_open(mebibytes(320).value);
  auto* const rest = static_cast<std::byte*>(heap.allocate(mebibytes(722)));
  ASSERT_NE(nullptr, rest);
  rest[mebibytes(722).value - 1] = std::byte{9};
  expect_open(mebibytes(1024).value);
  EXPECT_EQ(std::byte{7}, large[mebibytes(300).value - 1]);
}

TEST(SharedHeap, WithItGoesAllThatWasNotFreed) {
  std::optional<SharedHeap> heap(mebibytes(64));
  void* const address = heap->allocate(mebibytes(3));
  ASSERT_NE(nullptr, address);
  std::memset(address, 1, 3 << 20);
  const FileDescriptor other{::dup(heap->descriptor())};
  EXPECT_LE(std::uint64_t{3} << 20, bytes_in_memory(other.get()));
  heap.reset();
  EXPECT_EQ(0U, bytes_in_memory(other.get()));
}

// Both have the same file: what the child frees its parent still reads.
TEST(SharedHeap, AForkedChildFreesAndTakesNothingOfItsParent) {
  std::optional<SharedHeap> heap(mebibytes(64));
  auto* const address = static_cast<std::byte*>(heap->allocate(mebibytes(1)));
  ASSERT_NE(nullptr, address);
  std::memset(address, 0x37, 1 << 20);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool freed = heap->release(address) && !heap->release(address);
    const bool refused = heap->allocate(kibibytes(64)) == nullptr;
    heap.reset();
    ::_exit(freed && refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  for (std::size_t i = 0; i < 1 << 20; i += 4095) ASSERT_EQ(std::byte{0x37}, address[i]);
  EXPECT_TRUE(heap->release(address));
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
