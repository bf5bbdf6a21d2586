// Lanes of a halo exchange's buffers, and which packing is taken: on invented patterns and times.
#include <gtest/gtest.h>

#include "face/halo/halo_packing.hpp"
#include "layout/constructors.hpp"

namespace ist::halo {
namespace {

SharedLayout bytes(std::int64_t count) { return *contiguous_layout(count, *Layout::basic(IST_BYTE)); }

// Three ranks, of which this is number 1; odd sizes, so that nothing is aligned by itself.
Pattern pattern() {
  return {{0, {{0, bytes(3)}, {1, bytes(5)}}, {{0, bytes(7)}}},
          {1, {{0, bytes(9)}}, {{0, bytes(9)}}},
          {2, {{1, bytes(1)}}, {{0, bytes(11)}, {1, bytes(13)}}}};
}

TEST(HaloLanes, begin_at_multiples_of_what_a_device_moves_at_once_and_do_not_overlap) {
  const Pattern all = pattern();
  const std::vector<std::size_t> fields{0, 1};
  const Lanes made = lanes_of(all, fields, 1, kLaneAlignment);
  ASSERT_EQ(made.lanes.size(), 3U);
  std::int64_t out = 0, in = 0;
  for (const Lane& lane : made.lanes) {
    EXPECT_EQ(lane.out_at % 16, 0) << "to rank " << lane.rank;
    EXPECT_EQ(lane.in_at % 16, 0) << "from rank " << lane.rank;
    EXPECT_GE(lane.out_at, out);
    EXPECT_GE(lane.in_at, in);
    out = lane.out_at + lane.out_bytes, in = lane.in_at + lane.in_bytes;
  }
  EXPECT_EQ(made.lanes[0].out_bytes, 8);
  EXPECT_EQ(made.lanes[1].in_bytes, 0) << "what goes to this rank itself arrives nowhere";
  EXPECT_EQ(made.lanes[2].in_bytes, 24);
  ASSERT_EQ(made.in.size(), 4U);
  EXPECT_TRUE(made.in[0].own);
  EXPECT_EQ(made.in[0].at, made.lanes[1].out_at);
  EXPECT_EQ(made.in[3].at, made.lanes[2].in_at + 11) << "within a lane there are no gaps, which its other end knows of";
  const Lanes close = lanes_of(all, fields, 1, 1);
  EXPECT_EQ(close.lanes[1].out_at, 8);
  EXPECT_EQ(close.lanes[2].out_at, 17);
}

TEST(HaloLanes, are_in_one_order_of_pairs_at_all_ranks) {
  const Pattern all = pattern();
  const std::vector<std::size_t> fields{1};
  const Lanes made = lanes_of(all, fields, 1, kLaneAlignment);
  ASSERT_EQ(made.in_turn.size(), 2U);
  EXPECT_EQ(made.in_turn[0].rank, 0);
  EXPECT_EQ(made.in_turn[1].rank, 2);
  EXPECT_EQ(made.out.size(), 2U) << "of the other field, which is none of these, nothing";
}

TEST(HaloPackings, of_which_the_quickest_is_taken) {
  const Trial trials[] = {{IST_HALO_LAYOUTS, 3.0}, {IST_HALO_CALLS, 1.5}, {IST_HALO_LOOPS, 2.0}};
  const auto choice = quickest(trials);
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->packing, IST_HALO_CALLS);
  EXPECT_EQ(choice->text, "layouts 3.00 us, calls 1.50 us, loops 2.00 us");
}

TEST(HaloPackings, that_cannot_be_are_left_out_and_the_reason_kept) {
  const Status refused{IST_ERR_MEMORY, "no memory for it"};
  const Trial some[] = {{IST_HALO_LAYOUTS, refused}, {IST_HALO_CALLS, 2.5}, {IST_HALO_LOOPS, refused}};
  const auto choice = quickest(some);
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->packing, IST_HALO_CALLS);
  EXPECT_EQ(choice->text, "layouts left out: no memory for it, calls 2.50 us, loops left out: no memory for it");
  const Trial none[] = {{IST_HALO_LAYOUTS, refused}, {IST_HALO_CALLS, refused}};
  const auto nothing = quickest(none);
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.status().code(), IST_ERR_MEMORY);
  EXPECT_NE(nothing.status().text().find("calls left out"), std::string::npos) << nothing.status().text();
}

}  // namespace
}  // namespace ist::halo
