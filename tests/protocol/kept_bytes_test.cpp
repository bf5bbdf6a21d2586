// Room for messages that came too early: it is kept for the next ones, so much of it, and holds what is copied into it.
#include "match/kept_bytes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <utility>
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

// All that is kept of a size, taken out: what is kept then is what the test gives back.
std::vector<void*> take_all(std::size_t size) {
  std::vector<void*> taken;
  for (std::uint64_t before = kept_room().value;; before = kept_room().value) {
    void* const room = take_kept_room(size);
    taken.push_back(room);
    if (kept_room().value == before) return taken;
  }
}
void give_all(const std::vector<void*>& rooms, std::size_t size) {
  for (void* const room : rooms) give_kept_room(room, size);
}

TEST(KeptBytes, RoomIsKeptForTheNextOfItsSize) {
  const auto longer_ones = take_all(131072);
  const auto shorter_ones = take_all(65536);
  void* const first = take_kept_room(131072);
  const std::uint64_t none = kept_room().value;
  give_kept_room(first, 131072);
  EXPECT_EQ(none + 131072, kept_room().value);
  EXPECT_EQ(first, take_kept_room(100000)) << "of as many bytes, in powers of two";
  EXPECT_EQ(none, kept_room().value);
  void* const shorter = take_kept_room(65536);
  EXPECT_NE(first, shorter);
  give_kept_room(first, 100000);
  give_kept_room(shorter, 65536);
  EXPECT_EQ(shorter, take_kept_room(40000));
  give_kept_room(shorter, 40000);
  give_all(longer_ones, 131072);
  give_all(shorter_ones, 65536);
}

// So that a program that fell behind once does not keep for ever what it had then; and of one size there may be all, whatever is kept of others.
TEST(KeptBytes, NoMoreThanTwoMebibytesAreKeptOfASize) {
  for (const std::size_t size : {32768UL, 65536UL, 131072UL, 262144UL}) {
    const auto before = take_all(size);
    const std::uint64_t others = kept_room().value;
    const std::size_t kept = 2097152 / size;
    std::vector<KeptBytes> all;
    for (std::size_t i = 0; i < 4 * kept; ++i) all.push_back(keep_bytes(random_bytes(size, 1)));
    std::set<const void*> rooms;
    for (const KeptBytes& one : all) rooms.insert(one.data());
    EXPECT_EQ(4 * kept, rooms.size());
    all.clear();
    EXPECT_EQ(others + 2097152, kept_room().value) << size;
    std::set<void*> back;
    for (std::size_t i = 0; i < kept; ++i) back.insert(take_kept_room(size));
    EXPECT_EQ(kept, back.size()) << "each once";
    EXPECT_EQ(others, kept_room().value);
    for (void* const room : back) give_kept_room(room, size);
    give_all(before, size);
    EXPECT_EQ(others + 2097152, kept_room().value) << size;
  }
}

TEST(KeptBytes, AnyThreadTakesAndGivesThemBack) {
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 4; ++thread)
    threads.emplace_back([thread] {
      std::mt19937 random{thread};
      std::vector<std::pair<std::vector<std::byte>, KeptBytes>> held;
      for (unsigned i = 0; i < 200; ++i) {
        auto bytes = random_bytes(30000 + random() % 110000, 1000 * thread + i);
        KeptBytes kept = keep_bytes(bytes);
        held.emplace_back(std::move(bytes), std::move(kept));
        if (held.size() < 8) continue;
        for (const auto& [wanted, found] : held)
          EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), found.begin(), found.end()));
        held.erase(held.begin(), held.begin() + 4);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ist
