// How many slots one call fills or empties: few where a rank has other messages to look at.
#include <gtest/gtest.h>

#include <cstdint>

#include "ring_pair.hpp"

namespace ist::test {
namespace {

constexpr std::uint64_t kSlot = 4096;
constexpr int kSlots = 16;

RingPair pair_of_sixteen_slots() {
  RingShape shape;
  shape.slots = kSlots;
  shape.slot_bytes = kSlot;
  shape.in_flight = kSlots;
  return RingPair{19, shape};
}

// How often that moves something.
template <class Step>
int steps(const Step& step) {
  int moved = 0;
  while (step()) ++moved;
  return moved;
}

TEST(PipelinedSteps, NeitherEndMovesMoreSlotsThanItMay) {
  for (const int most : {1, kFewPerStep, kMostPerStep}) {
    RingPair pair = pair_of_sixteen_slots();
    pair.prepare_and_send(kSlots * kSlot, kSlot, false, false);
    EXPECT_EQ(kSlots / most, steps([&] { return pair.step_sender(most); })) << most;
    EXPECT_EQ(kSlots / most, steps([&] { return pair.step_receiver(most); })) << most;
    EXPECT_TRUE(pair[0].sent);
    pair.expect_whole(0);
  }
}

}  // namespace
}  // namespace ist::test
