// A sender that runs ahead and holds its reader off: which slots it shows when.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "ring_pair.hpp"

namespace ist::test {
namespace {

// Three eighths of a round are filled before the first slot of it is shown, wherever slots were filled otherwise before; what there is no more to be
// filled behind is shown at once.
TEST(HoldingOff, AWindowHoldsItsReaderOffForARound) {
  RingShape shape;
  shape.slots = 8;
  shape.slot_bytes = 65536;
  RingPair pair{17, shape};
  // Most slots that were filled and not shown while messages went, which have eight slots, or sixteen in a window that does not run ahead.
  const auto most_held = [&](int messages, std::uint64_t bytes = 65536) {
    for (int i = 0; i < messages; ++i) pair.prepare_and_send(bytes, messages == 1 ? 8192 : 4096, false, false);
    std::uint64_t most = 0;
    while (pair.step_sender()) most = std::max(most, pair.writer().pending());
    EXPECT_EQ(0U, pair.writer().pending()) << "the window has ended, or the ring is full";
    pair.take_slots();
    return most;
  };
  EXPECT_EQ(0U, most_held(8)) << "how long slots take that are near is not known";
  for (int i = 0; i < 40; ++i) EXPECT_EQ(0U, most_held(1));
  EXPECT_EQ(16U, most_held(8)) << "eight slots a step, of 24 of a round of 64";
  // A window that happened to be slow holds its reader off, too.
  const auto is_soon_not_held = [&](int before) {
    for (int i = 0; i < 32; ++i) {
      if (before > 0) most_held(before);
      if (most_held(8) == 0) return true;
    }
    return false;
  };
  EXPECT_TRUE(is_soon_not_held(0)) << "the round is over";
  EXPECT_TRUE(is_soon_not_held(1)) << "a few slots near leave the others as they were";
  for (int i = 0; i < 3; ++i) most_held(1);
  EXPECT_EQ(0U, most_held(8, 40960)) << "forty slots in all, of which 24 would be too many";
  EXPECT_EQ(16U, most_held(8));
  // Behind a message of a device, and one that ends while slots are held.
  for (int i = 0; i < 3; ++i) most_held(1);
  for (int i = 0; i < 8; ++i) pair.prepare_and_send(65536, 4096, false, false);
  EXPECT_TRUE(pair.step_sender());
  EXPECT_EQ(8U, pair.writer().pending());
  pair.prepare_and_send(65536, 4096, false, true);
  pair.step_sender();
  EXPECT_EQ(0U, pair.writer().pending()) << "it runs ahead no more";
  pair.take_slots();
}

// Slots that are full, and held back from the reader.
TEST(HoldingOff, AnAbandonedSenderEndsMessagesOnceWhoseSlotsAreHeldBack) {
  const Status gone{IST_ERR_PEER_DEAD, "rank 7 of the test has died"};
  RingShape shape;
  shape.slots = 8;
  shape.slot_bytes = 65536;
  RingPair pair{23, shape};
  const auto send = [&](std::size_t messages) {
    for (std::size_t i = 0; i < messages; ++i) pair.prepare_and_send(65536, 8192, false, false);
  };
  for (int i = 0; i < 10; ++i) {
    send(8);
    pair.take_slots();
  }
  for (int i = 0; i < 3; ++i) {
    send(1);
    pair.take_slots();
  }
  const std::size_t first = pair.size();
  send(8);
  EXPECT_TRUE(pair.step_sender());
  EXPECT_GT(pair.writer().pending(), 0U);
  pair.abandon_sender(gone);
  EXPECT_TRUE(pair.sender().idle());
  for (std::size_t i = first; i < pair.size(); ++i) {
    EXPECT_TRUE(pair[i].sent) << i;
    EXPECT_EQ(pair[i].sender.status.code(), IST_ERR_PEER_DEAD) << i;
  }
}

}  // namespace
}  // namespace ist::test
