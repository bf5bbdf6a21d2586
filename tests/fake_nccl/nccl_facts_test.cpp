// Which ranks NCCL can serve follows from what each has said of itself, and says why not.
#include <gtest/gtest.h>

#include "boot/blob.hpp"
#include "collective/nccl.hpp"
#include "request/schedule.hpp"

namespace ist {
namespace {

std::string card(std::uint64_t version, const std::vector<std::uint64_t>& devices, bool opens = true) {
  BlobWriter blob;
  blob.number(version).number(devices.size());
  for (const std::uint64_t device : devices) blob.number(device);
  return blob.number(opens ? 1 : 0).take();
}

class NcclFacts : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(nccl.off().ok()) << nccl.off().text(); }
  std::string why(const std::vector<std::string>& cards, const Group* group = nullptr) {
    nccl.learn(cards);
    return nccl.serves(group).text();
  }
  Settings settings;
  std::unique_ptr<Kinds> kinds = std::move(Kinds::load("host,cuda")).value();
  Nccl nccl{settings, *kinds, 4};
};

TEST_F(NcclFacts, a_gpu_for_each_rank_of_the_group_is_enough_and_fewer_are_not) {
  EXPECT_EQ(why({card(22703, {1, 2}), card(22703, {1, 2})}), "");
  EXPECT_EQ(why({card(22703, {1}), card(22703, {2})}), "");
  EXPECT_NE(why({card(22703, {1}), card(22703, {1})}).find("2 ranks see 1 GPU(s)"), std::string::npos);
  const std::vector<std::string> three{card(22703, {1, 2}), card(22703, {1, 2}), card(22703, {1, 2})};
  EXPECT_NE(why(three).find("3 ranks see 2 GPU(s)"), std::string::npos);
  const Group two{{Rank{2}, Rank{0}}, 3, "two"};
  EXPECT_EQ(why(three, &two), "");
  const Group alone{{Rank{1}}, 3, "alone"};
  EXPECT_NE(why(three, &alone).find("one rank"), std::string::npos);
}

TEST_F(NcclFacts, a_rank_without_it_or_with_another_version_is_named) {
  const std::vector<std::string> cards{card(22703, {1, 2, 3}), card(22703, {1, 2, 3}), card(0, {}), card(21803, {4})};
  EXPECT_NE(why(cards).find("off on rank 2"), std::string::npos);
  const Group others{{Rank{1}, Rank{0}}, 4, "others"};
  EXPECT_EQ(why(cards, &others), "");
  const Group mixed{{Rank{0}, Rank{3}}, 4, "mixed"};
  EXPECT_NE(why(cards, &mixed).find("ranks 0 and 3 found different versions"), std::string::npos);
  EXPECT_NE(why({card(22703, {1}), "?"}).find("off on rank 1"), std::string::npos);
}

TEST_F(NcclFacts, device_memory_that_one_rank_does_not_open_leaves_what_two_move_to_nccl) {
  const CollectiveProfile numbers;
  for (const bool opens : {true, false}) {
    nccl.learn({card(22703, {1, 2}), card(22703, {1, 2}, opens)});
    EXPECT_EQ(nccl.opens(nullptr), opens);
    EXPECT_EQ(nccl.explain(nullptr, ChosenCall::bcast, nullptr, mebibytes(64), numbers).offered, !opens);
  }
}

TEST_F(NcclFacts, its_own_card_is_one_that_it_can_read) {
  EXPECT_EQ(why({nccl.card(), nccl.card()}), "");
  Settings never;
  never.nccl = "never";
  const Nccl off{never, *kinds, 2};
  EXPECT_NE(off.off().text().find("ISTHMUS_NCCL is never"), std::string::npos);
  EXPECT_NE(why({nccl.card(), off.card()}).find("off on rank 1"), std::string::npos);
}

TEST_F(NcclFacts, the_answer_tells_both_prices_or_what_is_in_the_way) {
  nccl.learn({nccl.card(), nccl.card()});
  const Combiner sum{Reduction::sum, IST_FLOAT};
  const NcclAnswer large = nccl.explain(nullptr, ChosenCall::allreduce, &sum, mebibytes(64), {});
  EXPECT_TRUE(large.offered);
  EXPECT_NE(large.why.find("NCCL would take"), std::string::npos) << large.why;
  const NcclAnswer small = nccl.explain(nullptr, ChosenCall::bcast, nullptr, Bytes{8}, {});
  EXPECT_FALSE(small.offered);
  EXPECT_NE(small.why.find("messages"), std::string::npos) << small.why;
  // NCCL would be the quicker one, and is not asked about.
  const NcclAnswer between = nccl.explain(nullptr, ChosenCall::allreduce, &sum, kibibytes(18), {});
  EXPECT_FALSE(between.offered);
  EXPECT_NE(between.why.find("do not ask each other"), std::string::npos) << between.why;
  const Combiner located{Reduction::minloc, IST_FLOAT_INT};
  EXPECT_NE(nccl.explain(nullptr, ChosenCall::allreduce, &located, mebibytes(64), {}).why.find("no such operation"),
            std::string::npos);
  const Combiner complex_product{Reduction::product, IST_COMPLEX_FLOAT};
  EXPECT_FALSE(nccl.explain(nullptr, ChosenCall::reduce, &complex_product, mebibytes(64), {}).offered);
  nccl.learn({nccl.card(), card(0, {})});
  EXPECT_NE(nccl.explain(nullptr, ChosenCall::bcast, nullptr, mebibytes(64), {}).why.find("off on rank 1"),
            std::string::npos);
}

}  // namespace
}  // namespace ist
