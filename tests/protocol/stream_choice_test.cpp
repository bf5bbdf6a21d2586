// What carries a collective call of a stream: kernels of the ranks, rank 0's or NCCL; and what is told of that.
#include <gtest/gtest.h>

#include "collective/stream_choice.hpp"

namespace ist {
namespace {

TEST(StreamChoice, kernels_rank_0_and_nccl_each_have_their_calls) {
  for (const int ranks : {1, 2, 4, 5, 16}) {
    const Bytes from = nccl_in_stream_from(ranks);
    EXPECT_EQ(from, mebibytes(ranks <= 4 ? 4 : 1));
    EXPECT_EQ(choose_in_stream({ranks, Bytes{8}, true, true}), StreamWay::kernels);
    EXPECT_EQ(choose_in_stream({ranks, Bytes{from.value - 1}, true, true}), StreamWay::kernels);
    EXPECT_EQ(choose_in_stream({ranks, from, true, true}), StreamWay::nccl);
    EXPECT_EQ(choose_in_stream({ranks, from, true, false}), StreamWay::kernels);
    EXPECT_EQ(choose_in_stream({ranks, from, false, true}), StreamWay::rank_0);
  }
  EXPECT_EQ(choose_in_stream({17, mebibytes(64), true, true}), StreamWay::rank_0);
}

TEST(StreamChoice, what_is_told_is_what_is_chosen_and_every_other_way_has_a_price_or_a_reason) {
  for (const int ranks : {2, 5, 17})
    for (const bool own : {true, false})
      for (const bool nccl : {true, false})
        for (const std::uint64_t bytes : {0U, 8U, 1U << 18, 1U << 20, 4U << 20, 64U << 20}) {
          StreamedCall call{"allreduce_on", {ranks, Bytes{bytes}, own, nccl}};
          if (!nccl) call.no_nccl = "there is none";
          const Explanation found = explain_in_stream(call);
          const char* const names[] = {"kernels", "rank 0", "nccl"};
          EXPECT_EQ(found.choice, names[static_cast<int>(choose_in_stream(call.shape))]);
          ASSERT_EQ(found.ways.size(), 3U);
          for (const ExplainedWay& way : found.ways) {
            EXPECT_EQ(way.chosen, way.name == found.choice);
            if (way.chosen) {
              EXPECT_TRUE(way.refused.empty()) << way.refused;
            }
            EXPECT_TRUE(!way.refused.empty() || way.price || way.name == "rank 0") << way.name;
          }
          if (!nccl) {
            EXPECT_EQ(found.ways.back().refused, "there is none");
          }
        }
}

TEST(StreamChoice, prices_are_of_one_kernel_for_each_piece_and_nccl_is_the_cheaper_one_where_it_is_taken) {
  const auto price = [](const char* name, std::uint64_t bytes, int ranks) {
    for (const ExplainedWay& way : explain_in_stream(StreamedCall{"allreduce_on", {ranks, Bytes{bytes}, true, true}}).ways)
      if (way.name == name) return way.price->seconds();
    return 0.0;
  };
  const StreamedCallProfile machine;
  EXPECT_NEAR(price("kernels", 0, 2), machine.put_alpha + machine.meeting_alpha, 1e-12);
  const double jump = price("kernels", (1 << 18) + 1, 2) - price("kernels", 1 << 18, 2);
  EXPECT_NEAR(jump, machine.meeting_alpha + machine.store_beta, 1e-12);
  for (const int ranks : {2, 4, 5, 16}) {
    const std::uint64_t from = nccl_in_stream_from(ranks).value;
    EXPECT_LT(price("nccl", from, ranks), price("kernels", from, ranks)) << ranks;
    EXPECT_GT(price("nccl", from / 4, ranks), price("kernels", from / 8, ranks)) << ranks;
  }
}

}  // namespace
}  // namespace ist
