// Sleeping ends with everything a sleeper can wait for, and with nothing else before its time.
#include "test_world.hpp"

namespace ist::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr microseconds kLong{20000000};  // far longer than any of these may take
constexpr microseconds kShort{30000};

Settings sleeping() {
  Settings settings;
  settings.wait = "sleep";
  settings.cells = 4;
  settings.ring_slots = 2;
  return settings;
}

class Sleep : public ::testing::Test {
 protected:
  Sleep() : world_(2, sleeping()), path_(world_.path(0)) {}
  // Rank 0 sleeps until rank 1, a moment later, has done `deed`.
  template <class Deed>
  void wakes(Deed deed) {
    EXPECT_FALSE(woken_early());
    const auto before = Clock::now();
    std::thread other([&] {
      std::this_thread::sleep_for(milliseconds(20));
      deed();
    });
    path_.sleep(kLong);
    other.join();
    EXPECT_LT(Clock::now() - before, kLong / 2);
  }
  // Does a sleep in which nothing happens end before its time?
  bool woken_early() {
    const auto before = Clock::now();
    EXPECT_TRUE(path_.sleep(kShort));
    return Clock::now() - before < kShort;
  }
  TestWorld world_;
  ShmPath& path_;
};

TEST_F(Sleep, LastsItsTimeWhenNothingHappens) {
  EXPECT_FALSE(woken_early());
  EXPECT_FALSE(woken_early());
}

TEST_F(Sleep, EndsWithASlot) {
  wakes([&] { world_.link(1, 0).post(numbered(1), {}); });
  EXPECT_TRUE(path_.next());
}

TEST_F(Sleep, EndsWithACell) {
  wakes([&] { post_in_cell(world_.link(1, 0), numbered(1), {}); });
  EXPECT_TRUE(path_.next());
}

TEST_F(Sleep, EndsWithRoomInTheSlots) {
  while (world_.link(0, 1).post(numbered(0), {})) {
  }
  wakes([&] {
    while (world_.path(1).next()) {
    }
  });
  EXPECT_TRUE(world_.link(0, 1).post(numbered(0), {}));
}

TEST_F(Sleep, EndsWithACellThatComesBack) {
  while (post_in_cell(world_.link(0, 1), numbered(0), {})) {
  }
  wakes([&] { world_.path(1).release(*world_.path(1).next()); });
  EXPECT_TRUE(world_.link(0, 1).take_cell());
}

TEST_F(Sleep, EndsWithANewRingAndWithEachSlotPublishedOrReleased) {
  EXPECT_EQ(*world_.link(0, 1).incoming(), nullptr);
  wakes([&] { EXPECT_TRUE(world_.link(1, 0).outgoing().ok()); });
  SlotRingReader* in = *world_.link(0, 1).incoming();
  ASSERT_NE(in, nullptr);
  SlotRingWriter* peer_out = *world_.link(1, 0).outgoing();
  EXPECT_FALSE(in->take_next());
  peer_out->start_next();
  wakes([&] { peer_out->publish_oldest({7, 0, 0}); });
  EXPECT_TRUE(in->take_next());

  SlotRingWriter* out = *world_.link(0, 1).outgoing();
  SlotRingReader* peer_in = *world_.link(1, 0).incoming();
  ASSERT_NE(peer_in, nullptr);
  while (out->start_next()) out->publish_oldest({});
  EXPECT_TRUE(peer_in->take_next());
  wakes([&] { peer_in->release_oldest(); });
  EXPECT_TRUE(out->start_next());
}

TEST_F(Sleep, EndsWithWakeFromAnotherThread) {
  wakes([&] { path_.wake(); });
}

TEST_F(Sleep, WakeBeforeSleepIsKeptOnce) {
  path_.wake();
  EXPECT_TRUE(woken_early());
  EXPECT_FALSE(woken_early());
}

TEST_F(Sleep, DoesNotBeginWhileSomethingWaits) {
  world_.link(1, 0).post(numbered(1), {});
  EXPECT_TRUE(woken_early());
  EXPECT_TRUE(woken_early());
  EXPECT_TRUE(path_.next());
  EXPECT_FALSE(path_.next());
  EXPECT_FALSE(woken_early());
}

TEST_F(Sleep, LastArrivalStillShownDoesNotKeepItAwake) {
  world_.link(1, 0).post(numbered(1), {});
  EXPECT_TRUE(path_.next());
  EXPECT_FALSE(woken_early());
}

TEST_F(Sleep, RoomThatNobodyWantsDoesNotKeepItAwake) {
  while (world_.link(0, 1).post(numbered(0), {})) {
  }
  while (world_.path(1).next()) {
  }
  EXPECT_TRUE(woken_early());   // the refused post could go now
  EXPECT_FALSE(woken_early());  // but nobody tried again
}

TEST_F(Sleep, GapInTheQueueDoesNotKeepItAwake) {
  // A cell whose sender has swapped the tail and never came further.
  const auto segments = segments_for(2, sleeping());
  const auto receiver = path_over(segments, 0, sleeping());
  const auto sender = path_over(segments, 1, sleeping());
  const auto lost = sender->link(Rank{0})->take_cell();
  ASSERT_TRUE(lost);
  ASSERT_TRUE(post_in_cell(*sender->link(Rank{0}), numbered(1), {}));
  CellHeader* const headers = segments[1].cells().headers;
  headers[index_of(lost->id)].next.store(kNoCell);
  const CellName before_it = segments[0].shared().arrivals.tail.exchange(lost->id);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(receiver->next());
  const auto before = Clock::now();
  EXPECT_TRUE(receiver->sleep(kShort));
  EXPECT_GE(Clock::now() - before, kShort);
  // The dead sender's missing step, done late: both cells are there.
  headers[index_of(before_it)].next.store(lost->id);
  EXPECT_TRUE(receiver->next());
  EXPECT_TRUE(receiver->next());
  EXPECT_FALSE(receiver->next());
}

TEST(SleepSetting, SpinNeverSleepsAndAutoSleepsWhereRanksOutnumberProcessors) {
  Settings settings;
  for (const auto& [word, crowded, expected] :
       {std::tuple{"spin", true, false}, {"sleep", false, true}, {"auto", false, false}, {"auto", true, true}}) {
    settings.wait = word;
    Surroundings around = surroundings_of(0, 1, settings);
    around.oversubscribed = crowded;
    EXPECT_EQ(ShmPath::may_sleep(around), expected) << word << crowded;
  }
  settings.wait = "spin";
  TestWorld world(2, settings);
  const auto before = Clock::now();
  EXPECT_FALSE(world.path(0).sleep(kLong));
  world.path(0).wake();
  EXPECT_FALSE(world.path(0).sleep(kLong));
  EXPECT_LT(Clock::now() - before, kLong / 2);
}

}  // namespace
}  // namespace ist::test
