#include "face/shmem/slots.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace ist::shmem {
namespace {

// As it is in the heap: zero.
std::unique_ptr<SlotBoard> fresh() { return std::make_unique<SlotBoard>(); }

TEST(SlotBoard, every_key_has_a_place_of_its_own_until_all_are_taken) {
  const auto board = fresh();
  std::set<int> places;
  for (std::uint64_t key = 1; key < SlotBoard::kSets; ++key) {
    const int place = board->of_set(key * 32);
    EXPECT_GT(place, 0);
    EXPECT_LT(place, SlotBoard::kSets);
    EXPECT_TRUE(places.insert(place).second) << key;
  }
  EXPECT_EQ(board->of_set(7), 0);
  std::set<int> again;
  for (std::uint64_t key = 1; key < SlotBoard::kSets; ++key) again.insert(board->of_set(key * 32));
  EXPECT_EQ(again, places);
}

TEST(SlotBoard, all_who_ask_at_once_for_a_key_find_the_same_place) {
  constexpr std::size_t kThreads = 4;
  for (int round = 0; round < 20; ++round) {
    const auto board = fresh();
    std::array<std::vector<int>, kThreads> found;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        for (std::uint64_t key = 1; key <= 200; ++key) found[i].push_back(board->of_set(i % 2 == 0 ? key : 201 - key));
      });
    for (std::thread& each : threads) each.join();
    for (std::size_t key = 0; key < 200; ++key) {
      EXPECT_EQ(found[0][key], found[1][199 - key]);
      EXPECT_EQ(found[0][key], found[2][key]);
      EXPECT_EQ(found[1][key], found[3][key]);
    }
  }
}

TEST(SlotBoard, a_team_has_its_place_until_its_last_member_gives_it_up) {
  const auto board = fresh();
  std::set<int> places;
  for (int i = 1; i < SlotBoard::kTeams; ++i) EXPECT_TRUE(places.insert(board->take_for_team(3)).second);
  EXPECT_EQ(places.count(0), 0U);
  EXPECT_EQ(board->take_for_team(3), 0);
  board->give_up(0);
  board->give_up(5);
  board->give_up(5);
  EXPECT_EQ(board->take_for_team(1), 0);
  board->give_up(5);
  EXPECT_EQ(board->take_for_team(1), 5);
  EXPECT_EQ(board->take_for_team(1), 0);
}

TEST(SlotBoard, no_two_threads_take_the_same_place) {
  const auto board = fresh();
  std::array<std::vector<int>, 3> taken;
  std::vector<std::thread> threads;
  for (auto& mine : taken)
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) mine.push_back(board->take_for_team(1));
    });
  for (std::thread& each : threads) each.join();
  std::set<int> places;
  for (const auto& mine : taken) places.insert(mine.begin(), mine.end());
  EXPECT_EQ(places.size(), 30U);
}

}  // namespace
}  // namespace ist::shmem
