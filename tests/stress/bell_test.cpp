// Threads that sleep until others have done something, and are told.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/bell.hpp"

namespace ist {
namespace {

constexpr std::chrono::seconds kLong{20};

TEST(Bell, a_ring_after_the_count_was_read_is_not_slept_through) {
  Bell bell;
  const std::uint32_t count = bell.count();
  bell.ring();
  const auto began = std::chrono::steady_clock::now();
  bell.wait(count, kLong);
  EXPECT_LT(std::chrono::steady_clock::now() - began, kLong);
}

TEST(Bell, nobody_sleeps_longer_than_he_wants) {
  Bell bell;
  const auto began = std::chrono::steady_clock::now();
  bell.wait(bell.count(), std::chrono::milliseconds{3});
  EXPECT_LT(std::chrono::steady_clock::now() - began, kLong);
}

// Each turn is one word that the ringer writes and the sleepers see without a lock: where a ring were lost, or told before the word, a turn
// would take as long as the longest sleep.
TEST(Bell, no_ring_is_lost) {
  constexpr std::uint64_t kTurns = 20000;
  constexpr int kSleepers = 2;
  Bell done, seen;
  std::atomic<std::uint64_t> turn{0}, answers{0};
  std::uint64_t plain = 0;  // written by the ringer alone, before the ring
  std::vector<std::thread> sleepers;
  const auto sleep_until = [](Bell& bell, const auto& over) {
    for (;;) {
      const std::uint32_t count = bell.count();
      if (over()) return;
      bell.wait(count, kLong);
    }
  };
  const auto began = std::chrono::steady_clock::now();
  for (int each = 0; each < kSleepers; ++each)
    sleepers.emplace_back([&] {
      for (std::uint64_t wanted = 1; wanted <= kTurns; ++wanted) {
        sleep_until(done, [&] { return turn.load(std::memory_order_acquire) >= wanted; });
        EXPECT_EQ(plain, wanted);
        answers.fetch_add(1, std::memory_order_acq_rel);
        seen.ring();
      }
    });
  for (std::uint64_t now = 1; now <= kTurns; ++now) {
    plain = now;
    turn.store(now, std::memory_order_release);
    done.ring();
    sleep_until(seen, [&] { return answers.load(std::memory_order_acquire) == now * kSleepers; });
  }
  for (std::thread& each : sleepers) each.join();
  EXPECT_LT(std::chrono::steady_clock::now() - began, kLong) << "somebody slept for as long as he would";
}

}  // namespace
}  // namespace ist
