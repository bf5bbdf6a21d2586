// What ranks say to all others in the slots of their lanes, among threads, each of which stands for a rank: every reader gets what was said
// in each call, whole, whether calls wait or go on, and nobody waits for ever. Under ThreadSanitizer nothing but the lanes' words orders
// the bytes, which are no atomics.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "path/shm/lane_turns.hpp"

namespace ist {
namespace {

constexpr int kCalls = 4000;
// So few that ranks find them taken.
constexpr std::size_t kFewSlots = 4;
const auto nobody_is_gone = [](int) { return false; };
HandingCopy* handing() {
  thread_local HandingCopy own;
  return &own;
}

// Of so many ranks.
class Lanes {
 public:
  explicit Lanes(int ranks) {
    for (int rank = 0; rank < ranks; ++rank) all_.push_back(memory_.emplace_back(std::make_unique<Lane>()).get());
  }
  const std::vector<Lane*>& all() const { return all_; }

 private:
  std::vector<std::unique_ptr<Lane>> memory_;
  std::vector<Lane*> all_;
};

// In every call the rank of its number says something, of which all read all; every third one all do, and every fifth has a second round.
struct Call {
  std::uint64_t number = 0;
  bool of_all() const { return number % 3 == 0; }
  bool twice() const { return number % 5 == 0; }
  int speaker(int ranks) const { return static_cast<int>(number) % ranks; }
  bool says(int rank, int ranks) const { return of_all() || speaker(ranks) == rank; }
  // Some in the first line, some in parts.
  std::size_t bytes(int round) const {
    constexpr std::size_t kSizes[] = {0, 8, 32, 33, 1000, 1024, 4096, 16384, 16385, 40000, 65536};
    return kSizes[(number + static_cast<std::uint64_t>(round)) % std::size(kSizes)];
  }
  std::byte value(int rank, int round) const {
    return static_cast<std::byte>(number * 7 + static_cast<std::uint64_t>(rank) * 3 + static_cast<std::uint64_t>(round));
  }
};

class Member {
 public:
  Member(const std::vector<Lane*>& lanes, int rank, std::size_t slots)
      : turns_(lanes, rank, 5, slots),
        random_(static_cast<unsigned>(rank) + 1),
        move_randomly_(static_cast<unsigned>(rank) + 7) {}

  // Calls that go on are moved on by another thread, too, under a lock, as an engine's are; those that wait are made without it.
  void run() {
    std::atomic<bool> made{false};
    std::thread mover([&] {
      while (!made.load()) {
        move_on();
        std::this_thread::yield();
      }
    });
    for (std::uint64_t n = 0; n < kCalls; ++n) {
      turns_.come_to(n);
      Part part = plan({n});
      if (random_() % 4 == 0) {  // goes on
        const std::lock_guard lock(mutex_);
        turns_.begin(n);
        later_.push_back(std::move(part));
        continue;
      }
      while (!step(part)) move_on();
      turns_.end(n);
    }
    while (move_on()) continue;
    made.store(true);
    mover.join();
  }
  int wrong() const { return wrong_; }

 private:
  struct Part {
    Call call;
    std::vector<LaneTurns::Turn> turns;  // by round; none where this rank says nothing
    int round = 0;
    bool said = false;
    int heard = 0;
  };
  int ranks() const { return turns_.size(); }
  Part plan(const Call& call) {
    Part part{call, {}, 0, false, 0};
    for (int round = 0; call.says(turns_.rank(), ranks()) && round < (call.twice() ? 2 : 1); ++round)
      part.turns.push_back(turns_.take_turn(call.number, round, LaneTurns::kEverybody));
    return part;
  }
  // True: over.
  bool step(Part& part) {
    for (; part.round < (part.call.twice() ? 2 : 1); ++part.round, part.said = false, part.heard = 0) {
      if (!part.said && !say(part)) return false;
      part.said = true;
      for (; part.heard < ranks(); ++part.heard)
        if (part.call.says(part.heard, ranks()) && !hear(part)) return false;
    }
    return true;
  }
  bool say(const Part& part) {
    if (part.turns.empty()) return true;
    const LaneTurns::Turn& turn = part.turns[static_cast<std::size_t>(part.round)];
    if (!turns_.is_free(turn, nobody_is_gone)) return false;
    const std::vector<std::byte> bytes(part.call.bytes(part.round), part.call.value(turns_.rank(), part.round));
    turns_.write(turn, bytes.data(), all_of(Bytes{bytes.size()}), 0, handing());
    return true;
  }
  bool hear(const Part& part) {
    const LaneSlot* const slot = turns_.hear(part.heard, part.call.number, part.round);
    const std::size_t bytes = part.call.bytes(part.round);
    if (slot == nullptr) return false;
    const std::size_t there = slot->ready.load(std::memory_order_acquire);
    const std::byte* const place = slot->place_for(bytes);
    const std::byte expected = part.call.value(part.heard, part.round);
    const bool right =
        slot->bytes == all_of(Bytes{bytes}) && std::all_of(place, place + there, [&](std::byte b) { return b == expected; });
    wrong_ += right ? 0 : 1;
    return there == bytes;
  }
  // False: nothing goes on any more.
  bool move_on() {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < later_.size();) {
      if (move_randomly_() % 2 == 0 || !step(later_[i])) {
        ++i;
        continue;
      }
      turns_.end_later(later_[i].call.number);
      later_.erase(later_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (move_randomly_() % 64 == 0) std::this_thread::yield();
    return !later_.empty();
  }

  LaneTurns turns_;
  std::mt19937 random_;
  std::mutex mutex_;
  std::mt19937 move_randomly_;
  std::vector<Part> later_;
  std::atomic<int> wrong_{0};
};

void all_members_run(int ranks, std::size_t slots) {
  const Lanes memory(ranks);
  const std::vector<Lane*>& lanes = memory.all();
  std::vector<std::unique_ptr<Member>> members;
  for (int rank = 0; rank < ranks; ++rank) members.push_back(std::make_unique<Member>(lanes, rank, slots));
  std::vector<std::thread> threads;
  for (const auto& member : members) threads.emplace_back([&member] { member->run(); });
  for (std::thread& each : threads) each.join();
  for (const auto& member : members) EXPECT_EQ(0, member->wrong()) << ranks << " ranks";
}

TEST(Lanes, EveryReaderGetsWhatWasSaidWholeWhetherCallsWaitOrGoOn) {
  for (const int ranks : {2, 3, 4}) all_members_run(ranks, kFewSlots);
  all_members_run(3, kLaneSlots);
}

TEST(Lanes, WhatGoesPastTheCachesIsThereWhenItIsShown) {
  HandingCopy::force(CopyPace::Way::past);
  all_members_run(2, kFewSlots);
  HandingCopy::force(std::nullopt);
}

// Ranks that say something to one rank, and calls that some make another way; numbers beyond those that a stamp holds.
TEST(Lanes, ASlotIsFreeWhenItsReadersCameFurtherWhateverCallsWentAnotherWay) {
  const std::byte byte{7};
  for (const std::uint64_t first : {std::uint64_t{0}, (std::uint64_t{1} << 34) - 6, (std::uint64_t{1} << 35) - 3}) {
    const Lanes memory(2);
    const std::vector<Lane*>& lanes = memory.all();
    LaneTurns mine(lanes, 0, 3, kFewSlots);
    LaneTurns theirs(lanes, 1, 3, kFewSlots);
    for (std::uint64_t call = first; call < first + 40; ++call) {
      SCOPED_TRACE(call);
      mine.come_to(call);
      const LaneTurns::Turn turn = mine.take_turn(call, 0, call % 2 == 0 ? 1 : LaneTurns::kEverybody);
      ASSERT_TRUE(mine.is_free(turn, nobody_is_gone));
      mine.write(turn, &byte, all_of(Bytes{1}), 0, handing());
      mine.end(call);
      theirs.come_to(call);
      if ((call - first) % 7 < 5) continue;  // made another way there
      ASSERT_NE(nullptr, theirs.hear(0, call, 0));
      theirs.end(call);
    }
    // Nobody comes any further: the places are taken, unless the reader is gone.
    for (std::uint64_t call = first + 40; call < first + 44; ++call) {
      const LaneTurns::Turn turn = mine.take_turn(call, 0, LaneTurns::kEverybody);
      if (call < first + 43) {
        ASSERT_TRUE(mine.is_free(turn, nobody_is_gone)) << call - first;
        mine.write(turn, &byte, all_of(Bytes{1}), 0, handing());
        mine.end(call);
      } else {
        EXPECT_FALSE(mine.is_free(turn, nobody_is_gone));
        EXPECT_TRUE(mine.is_free(turn, [](int rank) { return rank == 1; }));
      }
    }
  }
}

// Rooted calls alone, more of them than half of the numbers that a word of progress has: of each stretch of a million a few stand for all.
constexpr std::uint64_t kManyCalls = (std::uint64_t{1} << 33) + 64;
template <class Call>
void many_calls(const Call& make) {
  for (std::uint64_t call = 8; call < kManyCalls - 8; call += std::uint64_t{1} << 20)
    for (std::uint64_t next = call; next < call + 4; ++next) make(next);
  for (std::uint64_t call = kManyCalls - 8; call < kManyCalls; ++call) make(call);
}

TEST(Lanes, ARankThatOnlyListenedForLongFindsItsPlacesFree) {
  const Lanes memory(2);
  const std::byte byte{7};
  LaneTurns root(memory.all(), 0, 3, kFewSlots);
  LaneTurns other(memory.all(), 1, 3, kFewSlots);
  const auto say = [&](LaneTurns& who, std::uint64_t call) {
    const LaneTurns::Turn turn = who.take_turn(call, 0, LaneTurns::kEverybody);
    ASSERT_TRUE(who.is_free(turn, nobody_is_gone)) << "rank " << who.rank() << ", call " << call;
    who.write(turn, &byte, all_of(Bytes{1}), 0, handing());
  };
  const auto broadcast = [&](std::uint64_t call, bool both) {
    for (LaneTurns* const who : {&root, &other}) who->come_to(call);
    say(root, call);
    if (both) {
      say(other, call);
      ASSERT_NE(nullptr, root.hear(1, call, 0));
    }
    ASSERT_NE(nullptr, other.hear(0, call, 0));
    for (LaneTurns* const who : {&root, &other}) who->end(call);
  };
  for (std::uint64_t call = 0; call < 8; ++call) broadcast(call, true);
  many_calls([&](std::uint64_t call) { broadcast(call, false); });
  broadcast(kManyCalls, true);
}

TEST(Lanes, ARankThatNobodyListenedToForLongIsNotTakenForOneThatIsAhead) {
  const Lanes memory(3);
  const std::byte byte{7};
  LaneTurns root(memory.all(), 0, 3, kFewSlots);
  LaneTurns second(memory.all(), 1, 3, kFewSlots);
  LaneTurns third(memory.all(), 2, 3, kFewSlots);
  const auto all = {&root, &second, &third};
  const auto gather = [&](std::uint64_t call) {
    for (LaneTurns* const who : all) who->come_to(call);
    for (LaneTurns* const who : {&second, &third}) {
      const LaneTurns::Turn turn = who->take_turn(call, 0, 0);
      ASSERT_TRUE(who->is_free(turn, nobody_is_gone));
      who->write(turn, &byte, all_of(Bytes{1}), 0, handing());
      ASSERT_NE(nullptr, root.hear(who->rank(), call, 0));
    }
    for (LaneTurns* const who : all) who->end(call);
  };
  for (std::uint64_t call = 0; call < 8; ++call) gather(call);
  many_calls(gather);
  for (LaneTurns* const who : all) who->come_to(kManyCalls);
  second.write(second.take_turn(kManyCalls, 0, LaneTurns::kEverybody), &byte, all_of(Bytes{1}), 0, handing());
  second.end(kManyCalls);
  EXPECT_FALSE(second.is_past(2, kManyCalls));
  second.come_to(kManyCalls + 4);
  EXPECT_FALSE(second.is_free(second.take_turn(kManyCalls + 4, 0, LaneTurns::kEverybody), nobody_is_gone));
}

// A rank that comes to a later call while an early one is under way says so when that is over, whatever it made in between another way.
TEST(Lanes, WhatIsOverIsSaidWhenTheCallThatWasUnderWayEnds) {
  const Lanes memory(2);
  const std::vector<Lane*>& lanes = memory.all();
  const std::byte byte{7};
  LaneTurns mine(lanes, 0, 3, kFewSlots);
  LaneTurns theirs(lanes, 1, 3, kFewSlots);
  theirs.begin(0);
  for (std::uint64_t call = 0; call < 5; ++call) {
    mine.come_to(call);
    theirs.come_to(call);
    if (call > 1) continue;  // both make it another way
    mine.write(mine.take_turn(call, 0, LaneTurns::kEverybody), &byte, all_of(Bytes{1}), 0, handing());
    mine.end(call);
  }
  mine.come_to(5);
  theirs.come_to(5);
  const LaneTurns::Turn turn = mine.take_turn(5, 0, LaneTurns::kEverybody);
  EXPECT_FALSE(mine.is_free(turn, nobody_is_gone));
  ASSERT_NE(nullptr, theirs.hear(0, 0, 0));
  theirs.end_later(0);
  EXPECT_TRUE(mine.is_free(turn, nobody_is_gone));
}

// What stands in a place that was skipped is an older call's, which others read than those of the skipped one.
TEST(Lanes, APlaceThatWasSkippedWaitsForEverybody) {
  const Lanes memory(3);
  const std::vector<Lane*>& lanes = memory.all();
  const std::byte byte{7};
  LaneTurns root(lanes, 0, 4, kFewSlots);
  LaneTurns second(lanes, 1, 4, kFewSlots);
  LaneTurns third(lanes, 2, 4, kFewSlots);
  root.write(root.take_turn(0, 0, LaneTurns::kEverybody), &byte, all_of(Bytes{1}), 0, handing());
  root.end(0);
  root.skip(root.take_turn(4, 0, 1));
  root.end(4);
  second.end(4);
  const LaneTurns::Turn turn = root.take_turn(8, 0, LaneTurns::kEverybody);
  EXPECT_FALSE(root.is_free(turn, nobody_is_gone));  // the third has not read call 0
  third.end(4);
  EXPECT_TRUE(root.is_free(turn, nobody_is_gone));
}

// A call that waits may be given up, and its turn with it, before an older one that goes on has had its own in that place.
TEST(Lanes, ATurnThatIsSkippedBeforeAnOlderOneHadItsOwnHoldsUpNobody) {
  const Lanes memory(2);
  const std::byte byte{7};
  LaneTurns mine(memory.all(), 0, 4, kFewSlots);
  LaneTurns theirs(memory.all(), 1, 4, kFewSlots);
  mine.begin(0);
  const LaneTurns::Turn first = mine.take_turn(0, 0, LaneTurns::kEverybody);
  const LaneTurns::Turn second = mine.take_turn(4, 0, LaneTurns::kEverybody);
  EXPECT_FALSE(mine.is_free(second, nobody_is_gone));
  mine.skip(second);
  const LaneTurns::Turn third = mine.take_turn(8, 0, LaneTurns::kEverybody);
  EXPECT_FALSE(mine.is_free(third, nobody_is_gone));
  ASSERT_TRUE(mine.is_free(first, nobody_is_gone));
  mine.write(first, &byte, all_of(Bytes{1}), 0, handing());
  EXPECT_FALSE(mine.is_free(third, nobody_is_gone));
  ASSERT_NE(nullptr, theirs.hear(0, 0, 0));
  theirs.end(0);
  theirs.come_to(8);
  EXPECT_FALSE(mine.is_past(1, 8));
  EXPECT_TRUE(mine.is_past(1, 7));
  mine.end_later(0);
  mine.come_to(8);
  EXPECT_TRUE(mine.is_free(third, nobody_is_gone));
}

// A reader that has let go of a communicator, and goes on with another one on the same lane, needs nothing of it.
TEST(Lanes, AReaderThatWentOnWithAnotherCommunicatorHoldsUpNobody) {
  const Lanes memory(3);
  const std::vector<Lane*>& lanes = memory.all();
  const std::byte byte{7};
  LaneTurns root(lanes, 0, 21, kFewSlots);
  {
    LaneTurns second(lanes, 1, 21, kFewSlots);
    LaneTurns third(lanes, 2, 21, kFewSlots);
    root.write(root.take_turn(0, 0, LaneTurns::kEverybody), &byte, all_of(Bytes{1}), 0, handing());
    root.end(0);
    EXPECT_FALSE(root.idle(nobody_is_gone));
    ASSERT_NE(nullptr, second.hear(0, 0, 0));
    second.end(0);
    ASSERT_NE(nullptr, third.hear(0, 0, 0));
    third.end(0);
  }
  const std::vector<Lane*> two{lanes[1], lanes[2]};
  LaneTurns second(two, 0, 22, kFewSlots);
  LaneTurns third(two, 1, 22, kFewSlots);
  second.end(0);
  third.end(0);
  EXPECT_TRUE(root.idle(nobody_is_gone));
}

// A communicator that has a lane after another one takes nothing of that one's words for its own.
TEST(Lanes, WhatAnotherCommunicatorSaidThereIsNoNews) {
  const Lanes memory(2);
  const std::vector<Lane*>& lanes = memory.all();
  const std::byte byte{7};
  {
    LaneTurns mine(lanes, 0, 11, kFewSlots);
    LaneTurns theirs(lanes, 1, 11, kFewSlots);
    mine.write(mine.take_turn(0, 0, LaneTurns::kEverybody), &byte, all_of(Bytes{1}), 0, handing());
    mine.end(0);
    EXPECT_FALSE(mine.idle(nobody_is_gone));
    EXPECT_TRUE(mine.idle([](int rank) { return rank == 1; }));
    ASSERT_NE(nullptr, theirs.hear(0, 0, 0));
    theirs.end(0);
    EXPECT_TRUE(mine.idle(nobody_is_gone));
  }
  LaneTurns mine(lanes, 0, 12, kFewSlots);
  LaneTurns theirs(lanes, 1, 12, kFewSlots);
  EXPECT_EQ(nullptr, theirs.hear(0, 0, 0));
  mine.write(mine.take_turn(0, 0, LaneTurns::kEverybody), &byte, all_of(Bytes{1}), 0, handing());
  mine.end(0);
  EXPECT_FALSE(mine.idle(nobody_is_gone));  // though the one before had said that it needs nothing of its own call 0
}

}  // namespace
}  // namespace ist
