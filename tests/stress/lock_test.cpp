// The world's lock among threads: one that has it to itself, threads that take turns, and one that comes after many rounds of another.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "request/engine_lock.hpp"

namespace ist {
namespace {

constexpr int kEnough = 64;  // times in a row, and a thread is the favourite where there can be one

// Two numbers that only the lock keeps the same.
struct Guarded {
  EngineLock lock{false};
  std::uint64_t one = 0;
  std::uint64_t other = 0;
  std::atomic<int> within{0};
  void add() {
    const std::lock_guard guard(lock);
    EXPECT_EQ(0, within.fetch_add(1, std::memory_order_relaxed));
    EXPECT_EQ(one, other);
    ++one;
    ++other;
    within.fetch_sub(1, std::memory_order_relaxed);
  }
  void add(int times) {
    for (int n = 0; n < times; ++n) add();
  }
};

bool has_favourites() {
  Guarded guarded;
  guarded.add(kEnough);
  return guarded.lock.favours_this_thread();
}

TEST(EngineLock, FavoursTheThreadThatHasItToItself) {
  if (!has_favourites()) GTEST_SKIP() << "this kernel has no membarrier for processes: there are no favourites";
  Guarded guarded;
  guarded.add();
  EXPECT_FALSE(guarded.lock.favours_this_thread());
  guarded.add(kEnough);
  EXPECT_TRUE(guarded.lock.favours_this_thread());
  std::thread([&] {
    EXPECT_FALSE(guarded.lock.try_lock()) << "it is another thread's";
    guarded.add();
    EXPECT_FALSE(guarded.lock.favours_this_thread()) << "once is not enough";
  }).join();
  EXPECT_FALSE(guarded.lock.favours_this_thread()) << "the favour was withdrawn";
  guarded.add(kEnough);
  EXPECT_FALSE(guarded.lock.favours_this_thread()) << "the next one is harder to get";
  guarded.add(4 * kEnough);
  EXPECT_TRUE(guarded.lock.favours_this_thread());
  EXPECT_EQ(guarded.one, guarded.other);
}

TEST(EngineLock, WhoHoldsItKeepsOthersOutAsTheFavouriteToo) {
  Guarded guarded;
  guarded.add(kEnough);
  std::atomic<bool> asked{false};
  std::atomic<bool> in{false};
  std::thread other;
  {
    const std::lock_guard guard(guarded.lock);
    other = std::thread([&] {
      asked = true;
      guarded.add();
      in = true;
    });
    while (!asked || !guarded.lock.contended()) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    EXPECT_FALSE(in);
  }
  other.join();
  EXPECT_TRUE(in);
  EXPECT_FALSE(guarded.lock.contended());
}

// Each for a while alone, so that favours are given, and then all at once, so that they are withdrawn under way.
TEST(EngineLock, ThreadsThatComeAndGoLoseNothing) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 600;
  Guarded guarded;
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> added{0};
  std::atomic<int> turn{0};
  for (int me = 0; me < kThreads; ++me)
    threads.emplace_back([&, me] {
      std::mt19937 random{std::random_device{}()};
      for (int round = 0; round < kRounds; ++round) {
        while (turn.load() % kThreads != me) {
          guarded.add();
          ++added;
          std::this_thread::yield();
        }
        const int times = static_cast<int>(random() % 2000);
        guarded.add(times);
        added += static_cast<std::uint64_t>(times);
        ++turn;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(added.load(), guarded.one);
  EXPECT_EQ(added.load(), guarded.other);
}

// One is the favourite and goes on, again and again, while the other comes: each time it is withdrawn under way.
TEST(EngineLock, WhoComesWhileTheFavouriteGoesInAndOutIsKeptOut) {
  constexpr int kRounds = 3000;
  constexpr int kMore = 50;
  constexpr int kOften = 3;
  std::vector<Guarded> locks(kRounds);
  std::atomic<int> ready{-1};
  std::thread other([&] {
    std::mt19937 random{std::random_device{}()};
    for (int round = 0; round < kRounds; ++round) {
      const auto pause = random() % 512;
      while (ready.load(std::memory_order_acquire) < round) {
      }
      for (std::uint32_t n = 0; n < pause; ++n) std::atomic_signal_fence(std::memory_order_seq_cst);
      locks[static_cast<std::size_t>(round)].add(kOften);
    }
  });
  // Stores that have to wait for memory, behind which the favourite's word that it is inside waits, too, while its looks go ahead.
  std::vector<std::uint64_t> far((std::size_t{64} << 20) / sizeof(std::uint64_t));
  std::size_t place = 0;
  for (int round = 0; round < kRounds; ++round) {
    Guarded& guarded = locks[static_cast<std::size_t>(round)];
    guarded.add(kEnough);
    ready.store(round, std::memory_order_release);
    for (int n = 0; n < kMore; ++n) {
      place = (place + 4099 * 8) % far.size();
      far[place] = static_cast<std::uint64_t>(n);
      guarded.add();
    }
  }
  other.join();
  for (const Guarded& guarded : locks) {
    ASSERT_EQ(static_cast<std::uint64_t>(kEnough + kMore + kOften), guarded.one);
    ASSERT_EQ(guarded.one, guarded.other);
  }
}

TEST(EngineLock, MoreThreadsThanSeatsTakeItAllTheSame) {
  Guarded guarded;
  for (int n = 0; n < 20; ++n) std::thread([&] { guarded.add(kEnough << (n < 8 ? 2 * n : 0)); }).join();
  guarded.add(kEnough);
  EXPECT_EQ(guarded.one, guarded.other);
}

TEST(EngineLock, OfOneThreadAtATimeIsNoLock) {
  EngineLock lock{true};
  lock.lock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
  EXPECT_FALSE(lock.contended());
}

}  // namespace
}  // namespace ist
