// Windows whose messages have bytes of their own, and windows out of the same ones.
#include <gtest/gtest.h>

#include <algorithm>

#include "ring_pair.hpp"

namespace ist::test {
namespace {

TEST(OwnBytes, AWindowOfBytesThatWereNotSentBeforeDoesNotRunAhead) {
  RingShape shape;
  shape.slot_bytes = 16384;
  shape.few_sources = true;
  RingPair pair{11, shape};
  for (int i = 0; i < 40; ++i) pair.prepare_and_send(16384, 4096, false, false);
  pair.run();
  const auto sent_ahead = [&](int others) {
    const std::size_t first = pair.size();
    for (int i = 0; i < 16; ++i) {
      const std::size_t number = pair.prepare(16384, 4096, false, false);
      if (i < others) pair.own(number);
      pair.send(number);
    }
    return pair.sent_ahead(first);
  };
  EXPECT_EQ(4, sent_ahead(0));
  EXPECT_EQ(1, sent_ahead(16));
  EXPECT_EQ(1, sent_ahead(1)) << "one of them is enough";
  EXPECT_EQ(4, sent_ahead(0)) << "where the place was used last the others do not matter";
}

// Of 1 MiB they do: the ring is a small part of what such a window moves.
TEST(OwnBytes, AWindowOfMessagesOfOneMiBRunsAheadWhateverItsBytes) {
  constexpr std::uint64_t kMiB = 1048576;
  RingShape shape;
  shape.slot_bytes = kMiB;
  RingPair pair{23, shape};
  const auto sent_ahead = [&](int messages, std::uint64_t bytes) {
    const std::size_t first = pair.size();
    for (int i = 0; i < messages; ++i) pair.prepare_and_send(bytes, 65536, false, false);
    return pair.sent_ahead(first);
  };
  for (int i = 0; i < 24; ++i) EXPECT_EQ(0, sent_ahead(1, kMiB)) << "by itself";
  EXPECT_EQ(0, sent_ahead(8, kMiB - 1));
  EXPECT_LT(0, sent_ahead(8, kMiB));
}

// Of so many long messages every so manieth has bytes of its own, and the others those of the one before.
constexpr std::uint64_t kLong = 1048577;
void send_long_ones(RingPair& pair, int messages, int own) {
  for (int i = 0; i < messages; ++i) {
    const std::size_t number = pair.prepare(kLong, 65536, false, false);
    if (i % own != 0) pair.share(number, number - 1);
    pair.send(number);
  }
}

// Longer ones where they take turns.
TEST(OwnBytes, AWindowOfLongerMessagesRunsAheadOutOfTheSameBytes) {
  RingShape shape;
  shape.slot_bytes = 1048576;
  shape.slots = 8;
  RingPair pair{29, shape};
  // Do they fill more pieces than there are slots?
  const auto runs_ahead = [&](int messages, int own) {
    const std::size_t first = pair.size();
    send_long_ones(pair, messages, own);
    while (pair.step_sender()) continue;
    const std::uint64_t pieces = pair.outstanding();
    pair.run();
    for (std::size_t i = first; i < pair.size(); ++i) pair.expect_whole(i);
    EXPECT_TRUE(pieces == shape.slots || pieces == kMostAhead) << pieces;
    return pieces > shape.slots;
  };
  EXPECT_FALSE(runs_ahead(8, 8)) << "how long slots take that are near is not known";
  for (int i = 0; i < 8; ++i) runs_ahead(8, 8);
  EXPECT_FALSE(runs_ahead(1, 1)) << "by itself";
  EXPECT_TRUE(runs_ahead(8, 8));
  EXPECT_FALSE(runs_ahead(8, 1));
  EXPECT_FALSE(runs_ahead(8, 7)) << "one of them is enough";
  EXPECT_TRUE(runs_ahead(9, 9));
}

// What waits behind it does not matter once the last of those before has gone.
TEST(OwnBytes, AWindowBehindAnotherOneRunsAhead) {
  RingShape shape;
  shape.slot_bytes = 1048576;
  shape.slots = 8;
  RingPair pair{31, shape};
  for (int i = 0; i < 24; ++i) pair.prepare_and_send(1048576, 65536, false, false), pair.run();
  const std::size_t first = pair.size();
  send_long_ones(pair, 16, 8);
  std::uint64_t most_near = 0;
  std::uint64_t most = 0;
  while (pair.step_sender(1) || pair.step_receiver(1)) {
    std::uint64_t& seen = pair[first + 7].sent ? most : most_near;
    seen = std::max(seen, pair.outstanding());
  }
  pair.run();
  for (std::size_t i = first; i < pair.size(); ++i) pair.expect_whole(i);
  EXPECT_EQ(most_near, shape.slots) << "messages with other bytes wait";
  EXPECT_EQ(most, kMostAhead);
}

// Nor do long messages by themselves say how long slots take that are near.
TEST(OwnBytes, LongMessagesByThemselvesTeachNothing) {
  constexpr std::uint64_t kMiB = 1048576;
  RingShape shape;
  shape.slot_bytes = kMiB;
  RingPair pair{37, shape};
  for (int i = 0; i < 24; ++i) pair.prepare_and_send(2 * kMiB, 65536, false, false), pair.run();
  const std::size_t first = pair.size();
  for (int i = 0; i < 8; ++i) pair.prepare_and_send(kMiB, 65536, false, false);
  EXPECT_EQ(0, pair.sent_ahead(first));
}

}  // namespace
}  // namespace ist::test
