// Room for messages that came too early: it is kept for the next ones, so much of it, and holds what is copied into it.
#include "match/kept_bytes.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace ist {
namespace {

std::vector<std::byte> random_bytes(std::size_t size, unsigned seed) {
  std::mt19937 random{seed};
  std::vector<std::byte> made(size);
  for (std::byte& byte : made) byte = static_cast<std::byte>(random());
  return made;
}

TEST(KeptBytes, HoldWhatIsCopiedIntoThem) {
  unsigned seed = std::random_device{}();
  for (const std::size_t size :
       {0UL, 1UL, 4097UL, 32767UL, 32768UL, 32769UL, 65536UL, 131071UL, 131072UL, 131073UL, 262144UL, 262145UL})
    for (int again = 0; again < 2; ++again) {
      const auto bytes = random_bytes(size, ++seed);
      const KeptBytes kept = keep_bytes(bytes);
      ASSERT_EQ(size, kept.size());
      EXPECT_TRUE(size == 0 || std::memcmp(kept.data(), bytes.data(), size) == 0) << size << ", seed " << seed;
    }
}

TEST(KeptBytes, RoomIsKeptForTheNextOfItsSize) {
  void* const first = take_kept_room(131072);
  give_kept_room(first, 131072);
  EXPECT_EQ(first, take_kept_room(100000)) << "of as many bytes, in powers of two";
  void* const shorter = take_kept_room(65536);
  EXPECT_NE(first, shorter);
  give_kept_room(first, 100000);
  give_kept_room(shorter, 65536);
  EXPECT_EQ(shorter, take_kept_room(40000));
  give_kept_room(shorter, 40000);
}

// So that a program that fell behind once does not keep for ever what it had then. Of which blocks come back only a sanitizer could tell more.
TEST(KeptBytes, NoMoreThanEightMebibytesAreKept) {
  constexpr std::size_t kSize = 262144;
  constexpr std::size_t kKept = 8388608 / kSize;
  std::vector<KeptBytes> all;
  for (std::size_t i = 0; i < 4 * kKept; ++i) all.push_back(keep_bytes(random_bytes(kSize, 1)));
  std::set<const void*> rooms;
  for (const KeptBytes& one : all) rooms.insert(one.data());
  EXPECT_EQ(4 * kKept, rooms.size());
  all.clear();
  std::set<void*> back;
  for (std::size_t i = 0; i < kKept; ++i) back.insert(take_kept_room(kSize));
  EXPECT_EQ(kKept, back.size()) << "each once";
  for (void* const room : back) give_kept_room(room, kSize);
}

TEST(KeptBytes, AnyThreadTakesAndGivesThemBack) {
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 4; ++thread)
    threads.emplace_back([thread] {
      std::mt19937 random{thread};
      std::vector<KeptBytes> held;
      for (int i = 0; i < 400; ++i) {
        const std::size_t size = 30000 + random() % 110000;
        const std::vector<std::byte> bytes(size, static_cast<std::byte>(i));
        held.push_back(keep_bytes(bytes));
        if (held.size() < 8) continue;
        for (const KeptBytes& kept : held) EXPECT_EQ(kept.front(), kept.back());
        held.erase(held.begin(), held.begin() + 4);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ist
