// Messages through a ring that are combined with other bytes as they come: each element once, wherever slots end.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <span>

#include "ring_pair.hpp"

namespace ist::test {
namespace {

enum class ResultAt { apart, in_place, where_it_came };  // the result

// A message of numbers, of which some are none, so that each operand's side shows in a minimum.
std::vector<double> random_numbers(std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<double> numbers(count);
  for (double& number : numbers)
    number = random() % 3 == 0 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(random() % 1000);
  return numbers;
}

struct Least {
  Least(RingPair& pair, std::uint64_t bytes, std::uint64_t fill, bool from_device, ResultAt where)
      : number(pair.prepare(bytes, fill, from_device, false)),
        where_(where),
        came_(random_numbers(bytes / 8, static_cast<unsigned>(bytes + fill))),
        here_(random_numbers(bytes / 8, static_cast<unsigned>(bytes + fill + 1))),
        result_(here_.size(), -1) {
    pair.give(number, std::as_bytes(std::span{came_}));
    const bool left = where != ResultAt::where_it_came;
    expected_ = left ? here_ : came_;
    combine_on_host(Reduction::minimum, IST_DOUBLE, expected_.data(), (left ? came_ : here_).data(),
                    static_cast<std::int64_t>(here_.size()));
    auto* const to = where == ResultAt::apart      ? reinterpret_cast<std::byte*>(result_.data())
                     : where == ResultAt::in_place ? reinterpret_cast<std::byte*>(here_.data())
                                                   : pair[number].to.address();
    pair.receiver().expect_fold(
        RingPair::receiver_op(number), pair[number].to,
        {Reduction::minimum, IST_DOUBLE, to, reinterpret_cast<const std::byte*>(here_.data()), Bytes{bytes}, left});
  }
  void expect_right(const RingPair& pair) const {
    EXPECT_TRUE(pair[number].receiver.status.ok()) << pair[number].receiver.status.text();
    EXPECT_TRUE(pair[number].receiver.placed);
    const void* const found = where_ == ResultAt::apart      ? static_cast<const void*>(result_.data())
                              : where_ == ResultAt::in_place ? static_cast<const void*>(here_.data())
                                                             : pair[number].to.address();
    EXPECT_EQ(std::memcmp(found, expected_.data(), expected_.size() * 8), 0) << "message " << number;
    pair.expect_guards(number);
  }
  std::size_t number;

 private:
  ResultAt where_;
  std::vector<double> came_, here_, result_, expected_;
};

constexpr std::array<ResultAt, 3> kResultsAt{ResultAt::apart, ResultAt::in_place, ResultAt::where_it_came};

TEST(FoldedFromTheRing, elements_that_two_slots_share_are_combined_once) {
  for (const std::uint64_t fill : {8U, 1000U, 1001U, 1004U, 4093U, 4096U, 9000U})
    for (const bool from_device : {false, true})
      for (const ResultAt where : kResultsAt)
        for (const std::uint64_t bytes : {8U, 1000U, 4096U, 40000U}) {
          RingPair pair{static_cast<unsigned>(bytes + fill), {}};
          const Least least{pair, bytes, fill, from_device, where};
          pair.send(least.number);
          pair.run();
          least.expect_right(pair);
        }
}

// Copies to a device that end late stand between the slots of a message that is folded, so that it does not go at once.
TEST(FoldedFromTheRing, beside_other_messages_of_any_kind) {
  for (unsigned round = 0; round < 40; ++round) {
    std::mt19937 random{round};
    RingPair pair{round, {1 + static_cast<std::uint32_t>(random() % 5), 1 + random() % 5000, 1 + random() % 4, 20}};
    std::vector<Least> all;
    all.reserve(12);
    for (int i = 0; i < 12; ++i) {
      if (random() % 2 == 0) {
        all.emplace_back(pair, 8 * (1 + random() % 3000), 1 + random() % 6000, random() % 2 == 0, kResultsAt[random() % 3]);
        pair.send(all.back().number);
      } else {
        pair.prepare_and_send(1 + random() % 20000, 1 + random() % 6000, random() % 2 == 0, random() % 2 == 0);
      }
      for (auto steps = random() % 20; steps > 0; --steps) pair.step();
    }
    pair.run();
    std::size_t next = 0;
    for (std::size_t i = 0; i < pair.size(); ++i) {
      if (next < all.size() && all[next].number == i)
        all[next++].expect_right(pair);
      else
        pair.expect_whole(i);
    }
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

TEST(FoldedFromTheRing, what_its_sender_could_not_read_is_an_error) {
  RingPair pair{5, {}};
  pair.sending_device().fails_at_end = [](std::size_t number) { return number == 2; };
  const Least least{pair, 40000, 4096, true, ResultAt::apart};
  pair.send(least.number);
  pair.run();
  EXPECT_FALSE(pair[least.number].receiver.status.ok());
  pair.expect_guards(least.number);
}

}  // namespace
}  // namespace ist::test
