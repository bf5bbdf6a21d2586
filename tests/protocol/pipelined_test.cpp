// Large messages through a ring between devices whose copies end late and in any order: every byte, once, in its place.
#include <gtest/gtest.h>

#include "ring_pair.hpp"

namespace ist::test {
namespace {

RingShape random_shape(std::mt19937& random) {
  RingShape shape;
  shape.slots = 1 + static_cast<std::uint32_t>(random() % 6);
  shape.in_flight = 1 + random() % 5;
  shape.slot_bytes = 1 + random() % 5000;
  shape.latest = static_cast<int>(random() % 40);
  return shape;
}

TEST(Pipelined, SizesAroundTheSlotsBordersArriveWhole) {
  for (const std::uint64_t bytes : {1U, 2U, 4095U, 4096U, 4097U, 8191U, 8192U, 8193U, 16384U, 16385U, 50001U}) {
    for (const std::uint64_t fill : {1000U, 4096U, 9000U}) {
      for (const bool from_device : {false, true}) {
        for (const bool to_device : {false, true}) {
          RingPair pair{static_cast<unsigned>(bytes), {}};
          pair.prepare_and_send(bytes, fill, from_device, to_device);
          pair.run();
          pair.expect_whole(0);
        }
      }
    }
  }
}

TEST(Pipelined, ManyMessagesOfRandomSizesThroughRandomRingsArriveWhole) {
  const unsigned seed = std::random_device{}();
  for (unsigned round = 0; round < 60; ++round) {
    std::mt19937 random{seed + round};
    const RingShape shape = random_shape(random);
    RingPair pair{seed + round, shape};
    for (int i = 0; i < 12; ++i) {
      const std::size_t number = pair.prepare(1 + random() % 40000, 1 + random() % 6000, random() % 2, random() % 2);
      for (auto steps = random() % 20; steps > 0; --steps) pair.step();
      pair.send(number);
    }
    pair.run();
    for (std::size_t i = 0; i < pair.size(); ++i) pair.expect_whole(i);
    ASSERT_FALSE(HasFailure()) << "seed " << seed + round;
  }
}

TEST(Pipelined, ClearancesInAnotherOrderThanTheSendsChangeNothing) {
  RingPair pair{1, {}};
  for (int i = 0; i < 5; ++i) pair.prepare(20000, 3000, true, true);
  for (const std::size_t number : {3U, 0U, 4U, 1U, 2U}) pair.send(number);
  pair.run();
  for (std::size_t i = 0; i < pair.size(); ++i) pair.expect_whole(i);
}

TEST(Pipelined, BothSidesRunAheadButNeverFurtherThanTheBound) {
  for (const std::uint64_t bound : {1U, 2U, 3U, 7U}) {
    RingShape shape;
    shape.slots = 8;
    shape.in_flight = bound;
    shape.latest = 50;
    RingPair pair{static_cast<unsigned>(bound), shape};
    pair.prepare_and_send(400000, 4096, true, true);
    pair.prepare_and_send(400000, 4096, true, true);
    pair.run();
    EXPECT_EQ(pair.sending_device().most_at_once, bound);
    EXPECT_EQ(pair.receiving_device().most_at_once, bound);
    pair.expect_whole(0);
    pair.expect_whole(1);
  }
}

TEST(Pipelined, ASlotIsFilledNoFurtherThanAskedEvenIfItIsLarger) {
  RingPair pair{3, {}};
  pair.prepare_and_send(10000, 1000, true, true);
  pair.run();
  EXPECT_EQ(pair.sending_device().started, 10);
  pair.expect_whole(0);
}

TEST(Pipelined, ASlowReceiverStopsTheSenderAndLosesNothing) {
  RingShape shape;
  shape.latest = 0;
  RingPair pair{4, shape};
  pair.prepare_and_send(100000, 4096, true, false);
  for (int i = 0; i < 50; ++i) pair.step_sender();
  EXPECT_FALSE(pair.step_sender());
  EXPECT_EQ(pair.sending_device().started, 4) << "as many as there are slots";
  pair.run();
  pair.expect_whole(0);
}

TEST(Pipelined, NothingIsStartedOrReportedWhereNothingWasAsked) {
  RingPair pair{5, {}};
  EXPECT_TRUE(pair.sender().idle());
  EXPECT_TRUE(pair.receiver().idle());
  EXPECT_FALSE(pair.step_sender());
  EXPECT_FALSE(pair.step_receiver());
}

TEST(Pipelined, ARefusedMessageIsForgottenWithoutAWord) {
  RingPair pair{6, {}};
  pair.prepare(5000, 1000, true, true);
  EXPECT_FALSE(pair.receiver().idle());
  pair.receiver().forget(RingPair::receiver_op(0));
  EXPECT_TRUE(pair.receiver().idle());
  EXPECT_FALSE(pair.step_receiver());
  EXPECT_FALSE(pair[0].received);
}

}  // namespace
}  // namespace ist::test
