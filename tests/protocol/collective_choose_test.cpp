// Which algorithm carries a collective call: what is small goes in few messages, what is large in few bytes.
#include <gtest/gtest.h>

#include "collective/choose.hpp"

namespace ist {
namespace {

TEST(CollectiveChoose, small_calls_take_few_messages_and_large_ones_few_bytes) {
  for (const int ranks : {2, 3, 4, 6, 8}) {
    const CollectiveShape small{ranks, Bytes{8}};
    const CollectiveShape large{ranks, mebibytes(64)};
    // Beyond a power of two, doubling takes two messages more one after the other, and all at once is quicker.
    const bool power = (ranks & (ranks - 1)) == 0;
    EXPECT_EQ(choose_allreduce(small, true, {}), power ? Algorithm::recursive_doubling : Algorithm::direct) << ranks;
    EXPECT_EQ(choose_allreduce(large, true, {}), Algorithm::direct) << ranks;
    EXPECT_EQ(choose_reduce(small, {}), Algorithm::binomial) << ranks;
    EXPECT_EQ(choose_bcast(small, {}), Algorithm::binomial) << ranks;
    EXPECT_EQ(choose_allgather(small, {}), Algorithm::direct) << ranks;
    if (ranks == 2) continue;  // where a tree and a chain are the same
    EXPECT_EQ(choose_bcast(large, {}), Algorithm::chain) << ranks;
    EXPECT_EQ(choose_reduce(large, {}), Algorithm::direct) << ranks;
  }
}

TEST(CollectiveChoose, many_ranks_with_much_to_say_go_round_a_ring_unless_the_order_of_operands_matters) {
  const CollectiveShape large{12, mebibytes(64)};
  EXPECT_EQ(choose_allreduce(large, true, {}), Algorithm::ring);
  EXPECT_EQ(choose_allreduce(large, false, {}), Algorithm::direct);
  EXPECT_EQ(choose_allgather(large, {}), Algorithm::ring);
}

TEST(CollectiveChoose, a_longer_call_never_goes_back_to_the_algorithm_of_shorter_ones) {
  for (const int ranks : {2, 3, 5, 6, 7, 12}) {
    bool left = false;
    for (std::uint64_t bytes = 1; bytes <= std::uint64_t{1} << 28; bytes *= 2) {
      const bool doubling = choose_allreduce({ranks, Bytes{bytes}}, true, {}) == Algorithm::recursive_doubling;
      EXPECT_FALSE(left && doubling) << ranks << " ranks, " << bytes << " bytes";
      left |= !doubling;
    }
  }
}

TEST(CollectiveChoose, nccl_is_asked_about_from_a_size_on_and_never_for_short_calls) {
  for (const Collective what : {Collective::bcast, Collective::reduce, Collective::allreduce, Collective::reduce_scatter,
                                Collective::allgather, Collective::alltoall})
    for (const int ranks : {2, 3, 4, 5, 8}) {
      bool paid = false;
      for (std::uint64_t bytes = 1; bytes <= std::uint64_t{1} << 28; bytes *= 2) {
        const bool pays = nccl_pays(what, {ranks, Bytes{bytes}});
        EXPECT_FALSE(paid && !pays) << ranks << " ranks, " << bytes << " bytes";
        EXPECT_FALSE(pays && bytes <= 32768) << ranks << " ranks, " << bytes << " bytes";
        paid |= pays;
      }
      EXPECT_TRUE(paid) << ranks << " ranks";
    }
}

}  // namespace
}  // namespace ist
