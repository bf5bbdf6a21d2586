// One receive that is shown, and taken or closed, by two threads as fast as they can: each invitation ends once, and what was read of one
// that was taken is of that one. The order of its words and of its state: models/invitation.pml.
#include "path/invitation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace ist {
namespace {

constexpr std::uint32_t kInvitations = 200000;

// Every word of it tells which one it is.
Invitation numbered(std::uint32_t number) {
  Invitation one;
  one.sequence = one.context = one.receiver_op = one.kind = one.unused = number;
  one.tag = static_cast<std::int32_t>(number);
  one.room = number;
  for (std::size_t i = 0; i < one.loan.size(); i += sizeof number) std::memcpy(&one.loan[i], &number, sizeof number);
  return one;
}

bool is(const Invitation& found, std::uint32_t number) {
  const Invitation wanted = numbered(number);
  return std::memcmp(&found, &wanted, sizeof found) == 0;
}

TEST(Invitations, are_taken_or_closed_and_never_both) {
  InvitationBoard board{};
  std::atomic<std::uint32_t> taken{0};  // the last one that was
  std::atomic<bool> over{false};
  std::uint32_t torn = 0;
  std::uint32_t accepted = 0;
  std::thread guest([&] {
    Guest side(&board);
    while (!over.load(std::memory_order_relaxed)) {
      const auto seen = side.look();
      if (!seen || !side.take()) continue;
      torn += is(*seen, seen->receiver_op) ? 0 : 1;
      ++accepted;
      taken.store(seen->receiver_op, std::memory_order_release);
    }
  });
  Inviter side(&board);
  std::uint32_t random = 20261126;
  std::uint32_t closed = 0;
  std::uint32_t gone = 0;
  for (std::uint32_t number = 1; number <= kInvitations; ++number) {
    side.open(numbered(number));
    random = random * 1664525 + 1013904223;
    for (std::uint32_t pause = random >> 26; pause > 0; --pause) std::atomic_signal_fence(std::memory_order_seq_cst);
    if (side.close()) {
      ++closed;
      continue;
    }
    ++gone;
    while (taken.load(std::memory_order_acquire) != number) std::this_thread::yield();
    side.settle();
  }
  over = true;
  guest.join();
  EXPECT_EQ(0U, torn);
  EXPECT_EQ(kInvitations, closed + gone);
  EXPECT_EQ(gone, accepted);
}

// What another one took, or nobody may take any more.
TEST(Invitations, that_are_over_are_neither_seen_nor_taken) {
  InvitationBoard board{};
  Inviter inviter(&board);
  Guest guest(&board);
  EXPECT_FALSE(guest.look());
  inviter.open(numbered(1));
  ASSERT_TRUE(guest.look());
  EXPECT_TRUE(is(*guest.look(), 1));
  EXPECT_TRUE(inviter.close());
  EXPECT_FALSE(guest.take());  // seen, and closed since
  inviter.open(numbered(2));
  EXPECT_FALSE(guest.take());  // another one than was seen
  ASSERT_TRUE(guest.look());
  EXPECT_TRUE(guest.take());
  EXPECT_FALSE(guest.take());
  EXPECT_FALSE(guest.look());
  EXPECT_FALSE(inviter.close());
  inviter.settle();
  inviter.open(numbered(3));
  ASSERT_TRUE(guest.look());
  EXPECT_TRUE(is(*guest.look(), 3));
  EXPECT_TRUE(guest.take());
  EXPECT_FALSE(inviter.close());
  guest.give_back();  // its message goes another way
  EXPECT_FALSE(guest.look());
  EXPECT_TRUE(inviter.close());
}

}  // namespace
}  // namespace ist
