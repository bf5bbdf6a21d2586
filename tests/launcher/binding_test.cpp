// Which processors the ranks get, on invented machines (HWLOC_SYNTHETIC).
#include "cli/run_binding.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace ist::test {
namespace {

using cli::Binding;
using cli::processor_shares;
using Shares = std::vector<std::vector<int>>;

struct Machine {
  explicit Machine(const char* description) { ::setenv("HWLOC_SYNTHETIC", description, 1); }
  ~Machine() { ::unsetenv("HWLOC_SYNTHETIC"); }
};

TEST(Binding, hands_out_all_processors_so_that_a_rank_has_room_for_the_librarys_threads) {
  const Machine machine{"core:8 pu:1"};
  EXPECT_EQ(processor_shares(1, Binding::when_cores_suffice), (Shares{{0, 1, 2, 3, 4, 5, 6, 7}}));
  EXPECT_EQ(processor_shares(2, Binding::when_cores_suffice), (Shares{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(processor_shares(4, Binding::when_cores_suffice), (Shares{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(processor_shares(8, Binding::when_cores_suffice), (Shares{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}));
}

TEST(Binding, gives_ranks_whole_cores_and_packages_of_their_own) {
  const Machine machine{"package:2 core:2 pu:2"};
  EXPECT_EQ(processor_shares(2, Binding::when_cores_suffice), (Shares{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(processor_shares(4, Binding::when_cores_suffice), (Shares{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
}

TEST(Binding, is_left_out_where_ranks_outnumber_cores_unless_it_is_asked_for_and_where_it_is_not_wanted) {
  const Machine machine{"core:2 pu:1"};
  EXPECT_EQ(processor_shares(3, Binding::when_cores_suffice), Shares{});
  EXPECT_EQ(processor_shares(3, Binding::always).size(), 3U);
  EXPECT_EQ(processor_shares(1, Binding::never), Shares{});
}

}  // namespace
}  // namespace ist::test
