// Slots that are combined as they come while there is no memory: the message ends, right or with its error, and the ring goes on.
#include <gtest/gtest.h>

#include "little_memory.hpp"
#include "ring_pair.hpp"

namespace ist::test {
namespace {

TEST(KeepingFolds, slots_that_are_folded_and_end_within_an_element) {
  int refused_somewhere = 0;
  for (int given = 0; given < 40; ++given) {
    RingPair pair{static_cast<unsigned>(given), {2, 4096, 2, 3}};
    std::vector<std::uint64_t> sums(5000, 3);
    const std::size_t number = pair.prepare(sums.size() * 8, 1001, false, false);
    std::vector<std::uint64_t> came(sums.size());
    for (std::size_t i = 0; i < came.size(); ++i) came[i] = i * 7;
    pair.give(number, std::as_bytes(std::span{came}));
    auto* const to = reinterpret_cast<std::byte*>(sums.data());
    pair.receiver().expect_fold(RingPair::receiver_op(number), pair[number].to,
                                {Reduction::sum, IST_UINT64, to, to, Bytes{sums.size() * 8}, true});
    pair.send(number);
    std::vector<Finished> ended;
    ended.reserve(64);
    for (int turn = 0; turn < 4; ++turn) {
      pair.step_sender();
      left = given;
      try {
        pair.receiver().step(ended);
      } catch (const std::bad_alloc&) {
        ++refused_somewhere;
      }
      left = kEnough;
    }
    EXPECT_TRUE(ended.empty());  // it takes many more turns
    pair.run();
    const Status& status = pair[number].receiver.status;
    if (status.ok())
      for (std::size_t i = 0; i < sums.size(); ++i) ASSERT_EQ(sums[i], 3 + i * 7) << given;
    else
      EXPECT_EQ(status.code(), IST_ERR_MEMORY) << status.text();
    refused_somewhere += status.ok() ? 0 : 1;
    pair.prepare_and_send(9000, 4096, false, false);
    pair.run();
    pair.expect_whole(number + 1);
  }
  EXPECT_GT(refused_somewhere, 0);
}

}  // namespace
}  // namespace ist::test
