// Copies that several threads make together: every byte, whoever asks, and nothing left behind when nobody does.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "memory/host/copy_crew.hpp"

using ist::Bytes;
using ist::CopyCrew;

namespace {

constexpr std::size_t kGuard = 64;
constexpr std::byte kPoison{0xa5};

struct Copied {
  std::vector<std::byte> from;
  std::vector<std::byte> to;

  Copied(std::size_t bytes, std::uint64_t seed) : from(bytes), to(bytes + 2 * kGuard, kPoison) {
    std::mt19937_64 random{seed};
    for (std::size_t at = 0; at < bytes; at += 8) {
      const std::uint64_t word = random();
      std::memcpy(from.data() + at, &word, std::min<std::size_t>(8, bytes - at));
    }
  }
  std::uint64_t start(CopyCrew& crew) { return crew.start(to.data() + kGuard, from.data(), Bytes{from.size()}); }
  bool right() const {
    for (std::size_t i = 0; i < kGuard; ++i)
      if (to[i] != kPoison || to[to.size() - 1 - i] != kPoison) return false;
    return std::memcmp(to.data() + kGuard, from.data(), from.size()) == 0;
  }
};

void finish(CopyCrew& crew, std::uint64_t id) {
  while (!crew.finish(id)) std::this_thread::yield();
}

TEST(CopyCrew, TakesLongCopiesOnceItHasHelpers) {
  CopyCrew crew;
  EXPECT_FALSE(crew.takes(Bytes{1 << 30}));
  crew.set_helpers(2);
  EXPECT_TRUE(crew.takes(Bytes{1 << 20}));
  EXPECT_FALSE(crew.takes(Bytes{100000}));
}

TEST(CopyCrew, EveryByteArrivesAndNoneBeside) {
  CopyCrew crew;
  crew.set_helpers(3);
  for (const std::size_t bytes : {1UL, 65535UL, 65536UL, 65537UL, 131072UL, 262144UL, 262145UL, 1048576UL, 3000001UL}) {
    for (std::uint64_t round = 0; round < 5; ++round) {
      Copied copied(bytes, round);
      finish(crew, copied.start(crew));
      EXPECT_TRUE(copied.right()) << bytes << " bytes";
    }
  }
}

TEST(CopyCrew, WithoutAnyHelperTheOneThatAsksDoesItAll) {
  CopyCrew crew;
  Copied copied(1000001, 1);
  finish(crew, copied.start(crew));
  EXPECT_TRUE(copied.right());
}

TEST(CopyCrew, OneTooManyIsRefusedAndTheOthersArrive) {
  CopyCrew crew;
  std::vector<Copied> all;
  std::vector<std::uint64_t> ids;
  for (std::uint64_t n = 0; n < 65; ++n) all.emplace_back(300000, n);
  for (Copied& each : all) ids.push_back(each.start(crew));
  for (std::size_t n = 0; n < 64; ++n) EXPECT_NE(0U, ids[n]);
  EXPECT_EQ(0U, ids[64]);
  for (std::size_t n = 64; n-- > 0;) finish(crew, ids[n]);  // in another order than they were begun
  for (std::size_t n = 0; n < 64; ++n) EXPECT_TRUE(all[n].right());
  ids[64] = all[64].start(crew);
  ASSERT_NE(0U, ids[64]);
  crew.wait(ids[64]);
  EXPECT_TRUE(all[64].right());
  EXPECT_TRUE(crew.finish(ids[64]));
}

TEST(CopyCrew, WhatNobodyAsksAfterArrivesAllTheSameAndGivesItsPlaceBack) {
  auto crew = std::make_unique<CopyCrew>();
  crew->set_helpers(2);
  std::vector<Copied> dropped;  // stays until the crew, which may still copy it, has gone
  dropped.reserve(200);
  for (std::uint64_t n = 0; n < 200; ++n) {
    const std::uint64_t id = dropped.emplace_back(400000, n).start(*crew);
    ASSERT_NE(0U, id) << n;
    crew->drop(id);
    Copied later(300000, n);
    const std::uint64_t next = later.start(*crew);
    ASSERT_NE(0U, next) << n;
    finish(*crew, next);
    EXPECT_TRUE(later.right());
  }
  crew.reset();
  // The oldest is copied first: whoever finished a later one has seen to it that nothing of these was left.
  for (const Copied& each : dropped) EXPECT_TRUE(each.right());
}

TEST(CopyCrew, ManyThreadsAskAtOnce) {
  CopyCrew crew;
  crew.set_helpers(3);
  std::vector<std::thread> threads;
  std::vector<int> wrong(6);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&crew, &wrong, t] {
      for (std::uint64_t n = 0; n < 60; ++n) {
        Copied one(262144 + 4096 * t + n, 2 * n);
        Copied other(300000 + n, 2 * n + 1);
        const std::uint64_t first = one.start(crew);
        const std::uint64_t second = other.start(crew);
        finish(crew, second);
        finish(crew, first);
        if (!one.right() || !other.right()) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::vector<int>(wrong.size()), wrong);
}

TEST(CopyCrew, HelpersThatHaveGoneToSleepComeBack) {
  CopyCrew crew;
  crew.set_helpers(3);
  for (std::uint64_t n = 0; n < 20; ++n) {
    Copied copied(2000000, n);
    finish(crew, copied.start(crew));
    EXPECT_TRUE(copied.right());
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

}  // namespace
