// Copies that fail in the middle of a large message: told once on each side, no copy runs on afterwards, and the ring goes on.
#include <gtest/gtest.h>

#include <algorithm>

#include "ring_pair.hpp"

namespace ist::test {
namespace {

using Fails = std::function<bool(int)>;

Fails only(int number) {
  return [number](int copy) { return copy == number; };
}

enum class Where { sender_start, sender_end, receiver_start, receiver_end };

void arrange(RingPair& pair, Where where, const Fails& fails) {
  if (where == Where::sender_start) pair.sending_device().fails_at_start = fails;
  if (where == Where::sender_end) pair.sending_device().fails_at_end = fails;
  if (where == Where::receiver_start) pair.receiving_device().fails_at_start = fails;
  if (where == Where::receiver_end) pair.receiving_device().fails_at_end = fails;
}

bool invented(const Status& status) {
  return status.code() == IST_ERR_DEVICE && status.text().find("an invented") != std::string::npos;
}

// The sender's own failure, as its receiver hears of it.
bool named(const Status& status) {
  return status.code() == IST_ERR_DEVICE && status.text().find("rank 7 of the test could not read") != std::string::npos;
}

// The failed copy is number `copy` of message 1, which has 6 of them; messages 0 and 2 must not notice.
void one_failure(Where where, int copy, unsigned seed) {
  RingPair pair{seed, {}};
  pair.prepare_and_send(9000, 3000, true, true);
  pair.prepare_and_send(18000, 3000, true, true);
  pair.prepare_and_send(9000, 3000, true, true);
  arrange(pair, where, only(3 + copy));
  pair.run();
  pair.expect_whole(0);
  pair.expect_whole(2);
  pair.expect_guards(1);
  const bool sender_fails = where == Where::sender_start || where == Where::sender_end;
  if (sender_fails) {
    EXPECT_TRUE(invented(pair[1].sender.status)) << pair[1].sender.status.text();
    EXPECT_TRUE(named(pair[1].receiver.status)) << pair[1].receiver.status.text();
  } else {
    EXPECT_TRUE(pair[1].sender.status.ok()) << pair[1].sender.status.text();
    EXPECT_TRUE(invented(pair[1].receiver.status)) << pair[1].receiver.status.text();
  }
  arrange(pair, where, nullptr);
  pair.prepare_and_send(30000, 4096, true, true);
  pair.run();
  pair.expect_whole(3);
}

class OneFailure : public testing::TestWithParam<Where> {};
INSTANTIATE_TEST_SUITE_P(Sides, OneFailure,
                         testing::Values(Where::sender_start, Where::sender_end, Where::receiver_start,
                                         Where::receiver_end));

TEST_P(OneFailure, EndsItsMessageOnceOnBothSidesAndLeavesTheOthersAndTheRing) {
  for (int copy = 0; copy < 6; ++copy) {
    for (unsigned seed = 0; seed < 30; ++seed) {
      one_failure(GetParam(), copy, seed);
      ASSERT_FALSE(HasFailure()) << "copy " << copy << ", seed " << seed;
    }
  }
}

// A copy that failed on the device is noticed only after the next one could not even be started.
TEST(PipelinedFailures, TwoFailuresOfOneMessageAreToldOnce) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    RingPair pair{seed, {}};
    pair.prepare_and_send(20000, 2000, true, true);
    pair.sending_device().fails_at_end = only(1);
    pair.sending_device().fails_at_start = only(2);
    pair.receiving_device().fails_at_end = only(0);
    pair.run();
    EXPECT_TRUE(invented(pair[0].sender.status));
    EXPECT_TRUE(invented(pair[0].receiver.status) || named(pair[0].receiver.status));
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(PipelinedFailures, AtRandomOnBothSidesHurtOnlyTheMessagesTheyHit) {
  const unsigned seed = std::random_device{}();
  for (unsigned round = 0; round < 100; ++round) {
    std::mt19937 random{seed + round};
    RingShape shape;
    shape.slots = 1 + static_cast<std::uint32_t>(random() % 6);
    shape.in_flight = 1 + random() % 5;
    shape.latest = static_cast<int>(random() % 30);
    RingPair pair{seed + round, shape};
    const auto now_and_then = [&random](int) { return random() % 25 == 0; };
    for (const Where where : {Where::sender_start, Where::sender_end, Where::receiver_start, Where::receiver_end})
      arrange(pair, where, now_and_then);
    for (int i = 0; i < 12; ++i) {
      pair.prepare_and_send(1 + random() % 30000, 1 + random() % 6000, random() % 4 != 0, random() % 4 != 0);
      for (auto steps = random() % 20; steps > 0; --steps) pair.step();
    }
    pair.run();
    for (std::size_t i = 0; i < pair.size(); ++i) {
      const bool out = pair.sending_device().failed_on(pair[i].from);
      const bool in = pair.receiving_device().failed_on(pair[i].to);
      EXPECT_EQ(pair[i].sender.status.ok(), !out);
      EXPECT_EQ(invented(pair[i].sender.status), out);
      // Where both fail, the receiver hears of the sender's failure or of its own, whichever came first.
      EXPECT_EQ(invented(pair[i].receiver.status) || named(pair[i].receiver.status), in || out);
      EXPECT_TRUE(in || !invented(pair[i].receiver.status));
      EXPECT_TRUE(out || !named(pair[i].receiver.status));
      if (!out && !in) pair.expect_whole(i);
      pair.expect_guards(i);
    }
    ASSERT_FALSE(HasFailure()) << "seed " << seed + round;
  }
}

// What was under way when a copy failed is published behind the news of it. Its receiver has forgotten the message by then, and looks
// again only when another one comes, which may have the same number.
TEST(PipelinedFailures, SlotsOfAMessageThatFailedNeverReachTheNextOneOfItsNumber) {
  for (const bool to_device : {false, true}) {
    RingShape shape;
    shape.slots = 16;
    shape.in_flight = 4;
    RingPair pair{1, shape};
    // As many slots as one step of the receiver takes, with the failed one as the last: those behind it stay in the ring.
    pair.prepare_and_send(6 * 1000, 1000, false, false);
    pair.prepare_and_send(8 * 1000, 1000, true, to_device);
    pair.sending_device().fails_at_end = only(1);
    while (!pair.sender().idle()) pair.step_sender();
    while (!pair[1].received) pair.step_receiver();
    pair.expect_whole(0);
    EXPECT_TRUE(invented(pair[1].sender.status));
    EXPECT_TRUE(named(pair[1].receiver.status));
    if (!to_device) {
      EXPECT_TRUE(pair.receiver().idle()) << "the receiver has seen more than the failure, and the test shows nothing";
    }

    // Where the old message's slots would go, too.
    constexpr std::byte kUntouched{0x5a};
    std::vector<std::byte> in(16 * 1000, kUntouched);
    const Bytes size{1500};
    pair.receiver().expect(RingPair::receiver_op(1), host_piece(in.data(), size), false);
    std::vector<Finished> ended;
    for (int i = 0; i < 100; ++i) pair.receiver().step(ended);
    EXPECT_TRUE(ended.empty()) << "ended by what was there before it";
    EXPECT_EQ(std::count(in.begin(), in.end(), kUntouched), 16 * 1000) << "bytes of the message before";
    EXPECT_EQ(pair.reader().pending(), 0U);
    EXPECT_FALSE(pair.reader().take_next()) << "slots of the message before are still there";

    const std::vector<std::byte> out(1500, std::byte{0x33});
    pair.sender().add({4711, RingPair::receiver_op(1), host_piece(out.data(), size), Bytes{1000}});
    std::vector<Finished> sent;
    for (int i = 0; i < 4; ++i) pair.sender().step(sent), pair.receiver().step(ended);
    ASSERT_EQ(sent.size(), 1U);
    ASSERT_EQ(ended.size(), 1U);
    EXPECT_TRUE(ended[0].status.ok()) << ended[0].status.text();
    EXPECT_EQ(ended[0].bytes, size);
    EXPECT_TRUE(std::equal(out.begin(), out.end(), in.begin()));
    EXPECT_EQ(std::count(in.begin(), in.end(), kUntouched), 16 * 1000 - 1500);
  }
}

const Status kGone{IST_ERR_PEER_DEAD, "rank 7 of the test died"};

TEST(PipelinedFailures, AnAbandonedSenderEndsEveryMessageOnceWhenNoCopyRunsAnyMore) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    RingPair pair{seed, {}};
    for (int i = 0; i < 4; ++i) pair.prepare_and_send(15000, 4096, i != 2, true);
    if (seed % 3 == 0) pair.sending_device().fails_at_start = only(2);
    if (seed % 3 == 1) pair.sending_device().fails_at_end = only(1);
    for (auto steps = pair.random(40); steps > 0; --steps) pair.step();
    std::vector<bool> over;
    for (std::size_t i = 0; i < pair.size(); ++i) over.push_back(pair[i].sent);
    pair.abandon_sender(kGone);
    EXPECT_TRUE(pair.sender().idle());
    EXPECT_EQ(pair.sending_device().running(), 0U);
    for (std::size_t i = 0; i < pair.size(); ++i) {
      EXPECT_TRUE(pair[i].sent) << i;
      EXPECT_EQ(over[i], pair[i].sender.status.code() != IST_ERR_PEER_DEAD) << i;
    }
    pair.abandon_receiver(kGone);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

// Three messages out of the same bytes, of which so many slots were read: two more are full, and it is the turn of any of the three.
TEST(PipelinedFailures, AnAbandonedSenderEndsMessagesThatTakeTurnsOnceAndTheNextOnesBeginWithTheirFirstParts) {
  constexpr std::uint64_t kBytes = 1048576;
  constexpr std::uint64_t kPart = kBytes / 4;
  for (std::size_t read = 0; read < 10; ++read) {
    RingShape shape;
    shape.slots = 2;
    shape.slot_bytes = kPart;
    RingPair pair{static_cast<unsigned>(read), shape};
    for (std::size_t i = 0; i < 5; ++i) pair.prepare(kBytes, kPart, false, false);
    for (std::size_t i = 1; i < 5; ++i) pair.share(i, 0);
    for (std::size_t i = 0; i < 3; ++i) pair.send(i);
    while (pair.step_sender()) continue;
    for (std::size_t i = 0; i < read; ++i) {
      ASSERT_TRUE(pair.reader().take_next().has_value());
      pair.reader().release_oldest();
      while (pair.step_sender()) continue;
    }
    std::vector<bool> over;
    for (std::size_t i = 0; i < 3; ++i) over.push_back(pair[i].sent);
    EXPECT_EQ(std::count(over.begin(), over.end(), true), read < 8 ? 0 : static_cast<std::ptrdiff_t>(read) - 7);
    pair.abandon_sender(kGone);
    EXPECT_TRUE(pair.sender().idle());
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(pair[i].sent) << i;
      EXPECT_EQ(pair[i].sender.status.code(), over[i] ? IST_OK : IST_ERR_PEER_DEAD) << i;
    }
    for (std::size_t i = 3; i < 5; ++i) pair.send(i);
    const auto slots = pair.take_slots();
    ASSERT_EQ(slots.size(), 2U + 8U);
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(slots[2 + i].receiver_op, RingPair::receiver_op(3 + i % 2)) << i;
      EXPECT_EQ(slots[2 + i].offset, i / 2 * kPart) << i;
    }
    EXPECT_TRUE(pair[3].sent && pair[4].sent);
    ASSERT_FALSE(HasFailure()) << read << " slots read";
  }
}

TEST(PipelinedFailures, AnAbandonedReceiverEndsEveryMessageOnceAndDropsTheSlotsThatStillCome) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    RingPair pair{seed, {}};
    for (int i = 0; i < 3; ++i) pair.prepare_and_send(15000, 4096, true, i != 1);
    for (auto steps = pair.random(40); steps > 0; --steps) pair.step();
    std::vector<bool> over;
    for (std::size_t i = 0; i < pair.size(); ++i) over.push_back(pair[i].received);
    pair.abandon_receiver(kGone);
    EXPECT_TRUE(pair.receiver().idle());
    EXPECT_EQ(pair.reader().pending(), 0U) << "slots were kept";
    EXPECT_EQ(pair.receiving_device().running(), 0U);
    for (std::size_t i = 0; i < pair.size(); ++i) {
      EXPECT_TRUE(pair[i].received) << i;
      EXPECT_EQ(over[i], pair[i].receiver.status.ok()) << i;
    }
    // The sender knows nothing of it; the next message pushes the dropped slots through.
    pair.prepare_and_send(20000, 4096, true, true);
    pair.run();
    pair.expect_whole(3);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace ist::test
