// Rings that the other side cannot open.
#include "test_world.hpp"

namespace ist::test {
namespace {

TEST(ShmSetUp, ARingThatIsLostIsToldOfOnceAndItsWriterMakesAnother) {
  TestWorld world(2);
  ASSERT_TRUE(world.path(0).lock_memory().ok());
  const std::size_t locked = world.locks().held.size();
  for (std::uint32_t lost = 0; lost < 2; ++lost) {
    ASSERT_TRUE(world.link(0, 1).outgoing().ok());
    EXPECT_EQ(world.locks().held.size(), locked + 1);
    ASSERT_TRUE(world.mailbox().take(Rank{0}, Rank{1}, kRingPurpose, 0).ok());
    auto memory = SharedMemory::create("isthmus-test", Bytes{4096});
    ASSERT_TRUE(memory.ok());
    ASSERT_TRUE(world.mailbox().send(Rank{0}, Rank{1}, kRingPurpose, memory->descriptor()).ok());
    EXPECT_FALSE(world.link(1, 0).incoming().ok());
    for (int again = 0; again < 2; ++again) {
      const auto none = world.link(1, 0).incoming();
      ASSERT_TRUE(none.ok()) << none.status().text();
      EXPECT_EQ(*none, nullptr);
    }
    world.link(0, 1).drop_outgoing();
    EXPECT_EQ(world.locks().held.size(), locked) << "a ring that is gone is still locked";
  }
  const auto out = world.link(0, 1).outgoing();
  ASSERT_TRUE(out.ok()) << out.status().text();
  ASSERT_TRUE((*out)->start_next());
  (*out)->publish_oldest({77, 0, 0});
  const auto in = world.link(1, 0).incoming();
  ASSERT_TRUE(in.ok()) << in.status().text();
  ASSERT_NE(*in, nullptr);
  const auto slot = (*in)->take_next();
  ASSERT_TRUE(slot);
  EXPECT_EQ(slot->header.receiver_op, 77U);
}

}  // namespace
}  // namespace ist::test
