// Large messages through a ring between devices whose copies end late and in any order: every byte, once, in its place.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

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

TEST(Pipelined, AReceiverThatAsksIsToldHowLongTheSendersCopiesTook) {
  for (const bool timed : {false, true}) {
    RingPair pair{7, {}};
    const std::size_t number = pair.prepare(4096, 4096, false, false);
    pair.sender().add(
        {RingPair::sender_op(number), RingPair::receiver_op(number), pair[number].from, Bytes{4096}, true, nullptr, timed});
    pair.step_sender();
    const auto slot = pair.reader().take_next();
    ASSERT_TRUE(slot.has_value());
    EXPECT_EQ(slot->header.nanoseconds > 0, timed);
  }
}

// Here the sender's copies take 10 ms each, by what it says; both sides copy at once, so that those count.
TEST(Pipelined, WhatAMessageTakesIsWhatItsSlowerSideDoes) {
  for (const std::uint64_t nanoseconds : {std::uint64_t{0}, std::uint64_t{10000000}}) {
    RingPair pair{8, {}};
    const std::size_t number = pair.prepare(std::uint64_t{3} * 4096, 4096, false, false);
    pair.receiver().expect(RingPair::receiver_op(number), pair[number].to, true);
    for (std::uint64_t n = 0; n < 3; ++n) {
      const auto slot = pair.writer().start_next(Bytes{4096});
      ASSERT_TRUE(slot.has_value());
      std::memcpy(slot->data, pair[number].out.data() + n * 4096, 4096);
      pair.writer().publish_oldest({RingPair::receiver_op(number), 4096, n * 4096, slot->place, slot->next, nanoseconds});
    }
    for (int i = 0; i < 3; ++i) pair.step_receiver();
    ASSERT_TRUE(pair[number].received);
    EXPECT_TRUE(std::equal(pair[number].out.begin(), pair[number].out.end(), pair[number].in.begin() + 1));
    if (nanoseconds != 0)
      EXPECT_DOUBLE_EQ(pair[number].receiver.seconds, 0.03);
    else
      EXPECT_GT(pair[number].receiver.seconds, 0);
    EXPECT_GT(pair[number].receiver.both, pair[number].receiver.seconds);
  }
}

// One behind the other, of two octaves in turn: what the receiver has timed says by which copies the next ones go.
TEST(Pipelined, BetweenHostsEitherWayIsTriedAndEveryByteArrives) {
  for (const bool strings_first : {false, true}) {
    std::array<int, 2> times{};
    RingShape shape;
    shape.strings_first = strings_first;
    RingPair pair{9, shape};
    for (int i = 0; i < 300; ++i) {
      const std::size_t number = pair.prepare_of_hosts(i % 2 == 0 ? 20001 : 131072, 4096);
      const auto by = pair[number].by;
      ++times.at(static_cast<std::size_t>(by.way));
      pair.send(number);
      pair.run();
      pair.expect_whole(number);
      EXPECT_EQ(by.timed, pair[number].receiver.seconds > 0);
      ASSERT_FALSE(HasFailure()) << "message " << i;
    }
    EXPECT_GE(times[1], 4);
    if (strings_first)
      EXPECT_EQ(times[0], 0) << "the other way is seldom tried";
    else
      EXPECT_GE(times[0], 4);
  }
}

// By loops pieces take turns in a slot; by strings they come back to the lines that they were in, which are still fewer as long as there are several messages of
// bytes of their own, one behind the other.
TEST(Pipelined, StringsGoRoundFewLines) {
  RingShape shape;
  shape.slots = 8;
  shape.slot_bytes = 8192;
  const auto places = [](RingPair& pair, RingWay way, int together, bool late, bool same = false) {
    const std::size_t first = pair.size();
    for (int message = 0; message < together; ++message) {
      const std::size_t number = pair.prepare(8 * std::uint64_t{4096}, 4096, false, false);
      pair.sender().add({RingPair::sender_op(number), RingPair::receiver_op(number), pair[same ? first : number].from,
                         Bytes{4096}, true, nullptr, false, way});
      while (late && pair.step_sender()) continue;  // the next one comes while this one is under way
    }
    std::set<std::uint32_t> seen;
    const std::vector<SlotHeader> slots = pair.take_slots([&](const FullSlot& slot, std::size_t behind) {
      EXPECT_EQ(0, std::memcmp(slot.data, pair[same ? first : first + behind / 8].out.data() + slot.header.offset, 4096));
      seen.insert(slot.header.place);
    });
    EXPECT_EQ(slots.size(), 8U * static_cast<std::size_t>(together));
    return seen.size();
  };
  RingPair loops{10, shape};
  EXPECT_EQ(16U, places(loops, RingWay::loops, 2, false));
  RingPair strings{11, shape};
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(8U, places(strings, RingWay::strings, 1, false)) << "by itself";
    EXPECT_EQ(4U, places(strings, RingWay::strings, 2, false));
    EXPECT_EQ(4U, places(strings, RingWay::strings, 5, false));
    EXPECT_EQ(8U, places(strings, RingWay::strings, 2, true)) << "the first one was begun by itself";
    EXPECT_EQ(8U, places(strings, RingWay::strings, 2, false, true)) << "the second one has the bytes of the first";
  }
}

// Once it is known how long slots take that are near: as far as these slots have places. Where one message is to a device, no further than there are slots,
// and so are messages by themselves.
TEST(Pipelined, AWindowBetweenHostsRunsAheadOfItsReceiver) {
  RingShape shape;
  shape.slot_bytes = 16384;
  shape.few_sources = true;
  RingPair pair{11, shape};
  // How many messages of four pieces were sent before any of them was received.
  const auto sent_ahead = [&](int messages, bool to_device) {
    const std::size_t first = pair.size();
    for (int i = 0; i < messages; ++i) pair.prepare_and_send(16384, 4096, false, to_device && i + 1 == messages);
    return pair.sent_ahead(first);
  };
  EXPECT_EQ(1, sent_ahead(8, false));
  for (int i = 0; i < 40; ++i) EXPECT_EQ(1, sent_ahead(1, false));
  EXPECT_EQ(4, sent_ahead(8, false));
  EXPECT_EQ(1, sent_ahead(7, false));
  EXPECT_EQ(1, sent_ahead(8, true));
  EXPECT_EQ(1, sent_ahead(7, false)) << "the window is over";
  EXPECT_EQ(4, sent_ahead(9, false));
}

// How many slots of so many bytes have come, one size behind the other.
using Sizes = std::vector<std::pair<std::size_t, std::uint32_t>>;
Sizes sizes_of_slots(RingPair& pair) {
  Sizes sizes;
  for (const SlotHeader& slot : pair.take_slots()) {
    if (sizes.empty() || sizes.back().second != slot.bytes) sizes.emplace_back(0, slot.bytes);
    ++sizes.back().first;
  }
  return sizes;
}

TEST(Pipelined, SlotsOfAWindowThatRunsAheadHaveTwiceTheBytes) {
  RingShape shape;
  shape.slot_bytes = 16384;
  shape.few_sources = true;
  RingPair pair{14, shape};
  const auto sizes_of = [&](int messages) {
    for (int i = 0; i < messages; ++i) pair.prepare_and_send(16384, 4096, false, false);
    return sizes_of_slots(pair);
  };
  EXPECT_EQ(sizes_of(8), (Sizes{{32, 4096}})) << "how long slots take that are near is not known";
  for (int i = 0; i < 40; ++i) EXPECT_EQ(sizes_of(1), (Sizes{{4, 4096}}));
  EXPECT_EQ(sizes_of(8), (Sizes{{16, 8192}}));
  EXPECT_EQ(sizes_of(7), (Sizes{{28, 4096}})) << "messages by themselves";
  EXPECT_EQ(sizes_of(9), (Sizes{{18, 8192}}));
  EXPECT_EQ(sizes_of(1), (Sizes{{4, 4096}})) << "the window is over";
}

// Windows, messages by themselves and messages of devices in turn, each of which has slots of another shape than the one before.
TEST(Pipelined, WindowsAndOthersInTurnArriveWhole) {
  const unsigned seed = std::random_device{}();
  for (unsigned round = 0; round < 40; ++round) {
    std::mt19937 random{seed + round};
    RingShape shape;
    shape.slots = 2 + static_cast<std::uint32_t>(random() % 15);
    shape.slot_bytes = 8192 * (1 + random() % (round % 2 == 0 ? 4 : 16));
    shape.latest = static_cast<int>(random() % 20);
    shape.strings_first = random() % 2 == 0;
    shape.few_sources = random() % 2 == 0;
    RingPair pair{seed + round, shape};
    for (int group = 0; group < 8; ++group) {
      const bool device = random() % 3 == 0;
      for (auto count = random() % 20; count > 0; --count) {
        const std::uint64_t bytes = 1 + random() % 20000;
        if (device)
          pair.prepare_and_send(bytes, 1 + random() % 9000, random() % 2, random() % 2);
        else
          pair.send(pair.prepare_of_hosts(bytes, 4096));
      }
      for (auto steps = random() % 60; steps > 0; --steps) pair.step();
    }
    pair.run();
    for (std::size_t i = 0; i < pair.size(); ++i) pair.expect_whole(i);
    ASSERT_FALSE(HasFailure()) << "seed " << seed + round;
  }
}

// Whose slots come, as far as the ring has some.
std::vector<std::size_t> order_of_slots(RingPair& pair) {
  std::vector<std::size_t> order;
  for (const SlotHeader& slot : pair.take_slots()) order.push_back(slot.receiver_op - RingPair::receiver_op(0));
  return order;
}

constexpr std::uint64_t kInTurns = 524288;
constexpr std::uint64_t kFill = kInTurns / 4;

// And those of long messages, also of one by itself, as far as one thread copies as many.
TEST(Pipelined, SlotsOfLongMessagesBetweenHostsHaveTwiceTheBytesOrFourTimes) {
  RingShape shape;
  shape.slot_bytes = kInTurns / 2;
  shape.slots = 2;
  RingPair pair{15, shape};
  const auto sizes_of = [&](std::uint64_t bytes, std::uint64_t fill) {
    pair.prepare_and_send(bytes, fill, false, false);
    return sizes_of_slots(pair);
  };
  EXPECT_EQ(sizes_of(2 * kInTurns, 65536), (Sizes{{8, 131072}}));
  EXPECT_EQ(sizes_of(2 * kInTurns - 1, 65536), (Sizes{{15, 65536}, {1, 65535}}));
  EXPECT_EQ(sizes_of(2 * kInTurns, 131072), (Sizes{{4, 262144}})) << "twice as many";
  EXPECT_EQ(sizes_of(2 * kInTurns, 262144), (Sizes{{4, 262144}}));
  EXPECT_EQ(sizes_of(4 * kInTurns - 1, 65536), (Sizes{{15, 131072}, {1, 131071}}));
  EXPECT_EQ(sizes_of(4 * kInTurns, 65536), (Sizes{{8, 262144}})) << "eight of four times as many";
}

TEST(Pipelined, SlotsOfAWindowOfLongerMessagesHaveFourTimesTheBytes) {
  RingShape shape;
  shape.slot_bytes = 16384;
  shape.few_sources = true;
  RingPair pair{18, shape};
  const auto sizes_of = [&](std::vector<std::uint64_t> messages) {
    for (const std::uint64_t bytes : messages) pair.prepare_and_send(bytes, 4096, false, false);
    return sizes_of_slots(pair);
  };
  for (int i = 0; i < 40; ++i) EXPECT_EQ(sizes_of({16384}), (Sizes{{4, 4096}}));
  EXPECT_EQ(sizes_of(std::vector<std::uint64_t>(8, 16384)), (Sizes{{16, 8192}}));
  EXPECT_EQ(sizes_of(std::vector<std::uint64_t>(8, 32768)), (Sizes{{16, 16384}}));
  EXPECT_EQ(sizes_of(std::vector<std::uint64_t>(8, 49152)), (Sizes{{24, 16384}}));
  // With one of two slots among them all have twice the bytes until that is over, so that none waits for another shape.
  std::vector<std::uint64_t> mixed(8, 32768);
  mixed.back() = 16384;
  EXPECT_EQ(sizes_of(mixed), (Sizes{{30, 8192}}));
}

TEST(Pipelined, MessagesOutOfTheSameBytesTakeTurns) {
  RingShape shape;
  shape.slot_bytes = kFill;
  shape.slots = 2;
  RingPair pair{12, shape};
  for (const std::uint64_t bytes : {kInTurns, kInTurns, kInTurns, kInTurns, kInTurns, kInTurns - 1, kInTurns - 1})
    pair.prepare(bytes, kFill, false, false);
  pair.share(1, 0);
  pair.share(2, 0);
  pair.share(4, 0);
  pair.share(6, 5);
  for (std::size_t number = 0; number < 4; ++number) pair.send(number);
  pair.step_sender();
  for (std::size_t number = 4; number < 7; ++number) pair.send(number);
  // The fourth is of other bytes, before which the fifth came too late; the last two are too short.
  EXPECT_EQ(order_of_slots(pair),
            (std::vector<std::size_t>{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6}));
}

// Those that are added while others are under way have their turns behind them.
TEST(Pipelined, TurnsAreTakenFromTheFirstPartOn) {
  RingShape shape;
  shape.slot_bytes = kFill;
  shape.slots = 2;
  RingPair pair{13, shape};
  for (int i = 0; i < 4; ++i) pair.prepare(kInTurns, kFill, false, false);
  for (std::size_t number = 1; number < 4; ++number) pair.share(number, 0);
  pair.send(0);
  pair.step_sender();
  for (std::size_t number = 1; number < 4; ++number) pair.send(number);
  EXPECT_EQ(order_of_slots(pair), (std::vector<std::size_t>{0, 0, 0, 0, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3}));
}

TEST(Pipelined, WhatTakesTurnsArrivesWholeAmongOthers) {
  const unsigned seed = std::random_device{}();
  for (unsigned round = 0; round < 6; ++round) {
    std::mt19937 random{seed + round};
    RingShape shape;
    shape.slots = 2 + static_cast<std::uint32_t>(random() % 4);
    shape.slot_bytes = 65536 * (1 + random() % 4);
    RingPair pair{seed + round, shape};
    for (int group = 0; group < 4; ++group) {
      const bool device = random() % 4 == 0;
      const std::uint64_t bytes = kInTurns + random() % 100000;
      const std::size_t first = pair.size();
      for (auto count = 1 + random() % 5; count > 0; --count) {
        const std::size_t number =
            device ? pair.prepare(bytes, 65536, true, random() % 2) : pair.prepare_of_hosts(bytes, 131072);
        if (!device && number != first && random() % 4 != 0) pair.share(number, first);
        pair.send(number);
        for (auto steps = random() % 12; steps > 0; --steps) pair.step();
      }
    }
    pair.run();
    for (std::size_t i = 0; i < pair.size(); ++i) pair.expect_whole(i);
    ASSERT_FALSE(HasFailure()) << "seed " << seed + round;
  }
}

}  // namespace
}  // namespace ist::test
