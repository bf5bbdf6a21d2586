#include "base/abort_board.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace ist {
namespace {

using Fate = AbortBoard::Fate;

TEST(AbortBoard, everybody_is_present_at_first) {
  const AbortBoard board{3};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(board.fate(Rank{i}), Fate::present);
  EXPECT_EQ(board.changes(), 0U);
  EXPECT_EQ(board.first_dead(), Rank{-1});
}

TEST(AbortBoard, the_first_word_about_a_rank_stays) {
  AbortBoard board{3};
  board.mark(Rank{1}, Fate::left);
  board.mark(Rank{1}, Fate::dead);
  EXPECT_EQ(board.fate(Rank{1}), Fate::left);
  EXPECT_EQ(board.changes(), 1U);
  EXPECT_EQ(board.first_dead(), Rank{-1});
}

TEST(AbortBoard, the_first_dead_rank_is_remembered) {
  AbortBoard board{4};
  board.mark(Rank{2}, Fate::dead);
  board.mark(Rank{0}, Fate::dead);
  EXPECT_EQ(board.first_dead(), Rank{2});
  EXPECT_EQ(board.changes(), 2U);
}

TEST(AbortBoard, whoever_sees_a_change_sees_the_fate_behind_it) {
  AbortBoard board{2};
  std::thread writer([&] { board.mark(Rank{1}, Fate::dead); });
  while (board.changes() == 0) std::this_thread::yield();
  EXPECT_EQ(board.fate(Rank{1}), Fate::dead);
  EXPECT_EQ(board.first_dead(), Rank{1});
  writer.join();
}

}  // namespace
}  // namespace ist
