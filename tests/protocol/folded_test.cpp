// Messages through a ring that are combined with other bytes as they come: each element once, wherever slots end.
#include <gtest/gtest.h>

#include <cstring>

#include "ring_pair.hpp"

namespace ist::test {
namespace {

using Words = std::vector<std::uint64_t>;

Words random_words(std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  Words words(count);
  for (auto& word : words) word = random();
  return words;
}

// One message of 8-byte numbers, and what it is to be added to, in place or not.
struct Sum {
  Sum(RingPair& pair, std::uint64_t bytes, std::uint64_t fill, bool from_device, bool in_place)
      : number(pair.prepare(bytes, fill, from_device, false)),
        here(random_words(bytes / 8, static_cast<unsigned>(bytes + fill))),
        result(in_place ? here : Words(here.size(), 0x5a5a)),
        expected(here) {
    const auto& message = pair[number];
    for (std::size_t i = 0; i < here.size(); ++i) {
      std::uint64_t came = 0;
      std::memcpy(&came, message.out.data() + 8 * i, 8);
      expected[i] += came;
    }
    auto* const to = reinterpret_cast<std::byte*>(result.data());
    const auto* const with = in_place ? to : reinterpret_cast<const std::byte*>(here.data());
    pair.receiver().expect_fold(RingPair::receiver_op(number), message.to,
                                {Reduction::sum, IST_UINT64, to, with, Bytes{bytes}, true});
  }
  void expect_right(const RingPair& pair) const {
    EXPECT_TRUE(pair[number].receiver.status.ok()) << pair[number].receiver.status.text();
    EXPECT_TRUE(pair[number].receiver.placed);
    EXPECT_TRUE(result == expected) << "message " << number;
    pair.expect_guards(number);
  }
  std::size_t number;
  Words here, result, expected;
};

TEST(FoldedFromTheRing, elements_that_two_slots_share_are_added_once) {
  for (const std::uint64_t fill : {8U, 1000U, 1001U, 1004U, 4093U, 4096U, 9000U})
    for (const bool from_device : {false, true})
      for (const bool in_place : {false, true})
        for (const std::uint64_t bytes : {8U, 1000U, 4096U, 40000U}) {
          RingPair pair{static_cast<unsigned>(bytes + fill), {}};
          const Sum sum{pair, bytes, fill, from_device, in_place};
          pair.send(sum.number);
          pair.run();
          sum.expect_right(pair);
        }
}

// Copies to a device that end late stand between the slots of a message that is folded, so that it does not go at once.
TEST(FoldedFromTheRing, beside_other_messages_of_any_kind) {
  for (unsigned round = 0; round < 40; ++round) {
    std::mt19937 random{round};
    RingPair pair{round, {1 + static_cast<std::uint32_t>(random() % 5), 1 + random() % 5000, 1 + random() % 4, 20}};
    std::vector<Sum> sums;
    sums.reserve(12);
    for (int i = 0; i < 12; ++i) {
      if (random() % 2 == 0) {
        sums.emplace_back(pair, 8 * (1 + random() % 3000), 1 + random() % 6000, random() % 2 == 0, random() % 2 == 0);
        pair.send(sums.back().number);
      } else {
        pair.prepare_and_send(1 + random() % 20000, 1 + random() % 6000, random() % 2 == 0, random() % 2 == 0);
      }
      for (auto steps = random() % 20; steps > 0; --steps) pair.step();
    }
    pair.run();
    std::size_t next = 0;
    for (std::size_t i = 0; i < pair.size(); ++i) {
      if (next < sums.size() && sums[next].number == i)
        sums[next++].expect_right(pair);
      else
        pair.expect_whole(i);
    }
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

TEST(FoldedFromTheRing, what_its_sender_could_not_read_is_an_error) {
  RingPair pair{5, {}};
  pair.sending_device().fails_at_end = [](std::size_t number) { return number == 2; };
  const Sum sum{pair, 40000, 4096, true, false};
  pair.send(sum.number);
  pair.run();
  EXPECT_FALSE(pair[sum.number].receiver.status.ok());
  pair.expect_guards(sum.number);
}

}  // namespace
}  // namespace ist::test
