// The kernels of meetings, played by threads on plain memory: numbers that come again after 2^31 meetings, ranks that run ahead, and what a
// rank does when another one makes another call.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "../fake_cuda/lone_crew.hpp"
#include "memory/cuda/meeting_protocol.hpp"

namespace {

using namespace ist::meeting;

using fake::Crew;

// Sums of 64-bit numbers, which wrap.
struct Sum {
  Quad operator()(const Quad& a, const Quad& b) const { return {a.low + b.low, a.high + b.high}; }
};

struct alignas(128) Line {
  std::byte bytes[128];
};

struct Rank {
  std::vector<Line> memory;
  Report report{};
  Mailbox* mailbox() { return reinterpret_cast<Mailbox*>(memory.data()); }
};

class Meeting : public testing::Test {
 protected:
  // All have met so often before.
  void make(std::uint32_t ranks, std::uint64_t before) {
    ranks_ = std::vector<Rank>(ranks);
    for (Rank& rank : ranks_) {
      rank.memory.assign(size_for(ranks) / sizeof(Line) + 1, Line{});
      rank.mailbox()->met = before;
      for (std::uint32_t other = 0; other < ranks && before > 0; ++other)
        rank.mailbox()->begun[other] = begun_as(before - 1, 7);
    }
  }
  MeetWork work(std::uint32_t rank, const void* from, void* to, std::uint64_t bytes, std::uint32_t root,
                std::uint32_t what) {
    MeetWork made{};
    made.own = ranks_[rank].mailbox();
    made.from = static_cast<const std::byte*>(from);
    made.to = static_cast<std::byte*>(to);
    made.bytes = bytes;
    made.ranks = static_cast<std::uint32_t>(ranks_.size());
    made.rank = rank;
    made.root = root;
    made.what = what;
    made.gone = &gone_;
    made.report = &ranks_[rank].report;
    for (std::uint32_t other = 0; other < made.ranks; ++other) made.members[other] = ranks_[other].mailbox();
    return made;
  }
  template <class Body>
  void on_all(const Body& body) {
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) threads.emplace_back([&, rank] { body(rank); });
    for (std::thread& thread : threads) thread.join();
  }
  std::vector<Rank> ranks_;
  std::uint32_t gone_ = 0;
};

// Sums, broadcasts and barriers of lengths that change, so that packets lie about from long before.
TEST_F(Meeting, GoesOnWhereNumbersAndCountsComeAgain) {
  constexpr std::uint32_t kRanks = 3;
  for (const std::uint64_t before :
       {std::uint64_t{0}, (std::uint64_t{1} << 30) - 5, (std::uint64_t{1} << 31) - 5, (std::uint64_t{1} << 32) - 5}) {
    make(kRanks, before);
    on_all([&](std::uint32_t rank) {
      for (std::uint64_t n = 0; n < 40; ++n) {
        const std::uint64_t words = 1 + n * 7 % 60;
        std::vector<std::uint64_t> data(words);
        const auto root = static_cast<std::uint32_t>(n % kRanks);
        for (std::uint64_t i = 0; i < words; ++i) data[i] = (n << 32 | i) * (rank + 1);
        const auto call = [&](std::uint32_t to) { return work(rank, data.data(), data.data(), words * 8, to, 7); };
        if (n % 5 == 4) {
          barrier(Crew{}, call(kEverybody));
        } else if (n % 5 == 3) {
          bcast(Crew{}, call(root));
          for (std::uint64_t i = 0; i < words; ++i) ASSERT_EQ((n << 32 | i) * (root + 1), data[i]) << n << ", word " << i;
        } else {
          reduce(Crew{}, call(n % 5 == 2 ? root : kEverybody), Sum{});
          const bool mine = n % 5 != 2 || root == rank;
          for (std::uint64_t i = 0; i < words && mine; ++i) ASSERT_EQ((n << 32 | i) * 6, data[i]) << n << ", word " << i;
        }
      }
    });
    for (Rank& rank : ranks_) {
      EXPECT_EQ(before + 40, rank.mailbox()->met);
      EXPECT_EQ(0U, rank.report.failed);
    }
  }
}

// What lay there with the same number 2^31 meetings before is gone.
TEST_F(Meeting, CleansWhatLiesThereBeforeItsNumberComesAgain) {
  make(2, 0);
  const std::uint64_t told = 0x1122334455667788;
  std::uint64_t heard = 0;
  on_all([&](std::uint32_t rank) { bcast(Crew{}, work(rank, &told, &heard, 8, 0, 7)); });
  EXPECT_EQ(told, heard);
  EXPECT_FALSE(has_come(load_relaxed(packets_of(ranks_[1].mailbox(), 2, 0, 0)), ist::channel::number_of(0)));
  // The slots after those of the first meetings are left as they are.
  ranks_[0].mailbox()->met = ranks_[1].mailbox()->met = 9;
  ranks_[0].mailbox()->begun[1] = ranks_[1].mailbox()->begun[0] = begun_as(8, 7);
  on_all([&](std::uint32_t rank) { bcast(Crew{}, work(rank, &told, &heard, 8, 0, 7)); });
  EXPECT_TRUE(has_come(load_relaxed(packets_of(ranks_[1].mailbox(), 2, 9, 0)), ist::channel::number_of(9)));
}

TEST_F(Meeting, ARootThatIsAheadWaitsWhenAllSlotsAreFull) {
  make(2, 0);
  std::uint64_t words[12];
  std::thread root([&] {
    for (std::uint64_t n = 0; n < 12; ++n) {
      words[n] = n + 100;
      bcast(Crew{}, work(0, &words[n], &words[n], 8, 0, 7));
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_GE(kSlots, load_relaxed(&ranks_[0].mailbox()->met)) << "nothing has been heard yet";
  for (std::uint64_t n = 0; n < 12; ++n) {
    std::uint64_t heard = 0;
    bcast(Crew{}, work(1, &heard, &heard, 8, 0, 7));
    EXPECT_EQ(n + 100, heard);
  }
  root.join();
}

TEST_F(Meeting, WhoWaitsForWhatAnotherCallNeverTellsGivesUpAndSoDoTheOthers) {
  make(3, 100);
  std::vector<std::uint64_t> data[3];
  for (auto& each : data) each.assign(64, 1);
  // Rank 1 has shorter vectors; it is through, and goes on to the next meeting, where the others do not come.
  on_all([&](std::uint32_t rank) {
    const std::uint64_t bytes = rank == 1 ? 64 : 512;
    const std::uint32_t what = rank == 1 ? 8 : 7;
    for (int n = 0; n < 3; ++n)
      reduce(Crew{}, work(rank, data[rank].data(), data[rank].data(), bytes, kEverybody, what), Sum{});
  });
  for (const std::uint32_t rank : {0U, 2U}) {
    EXPECT_EQ(1U, ranks_[rank].report.failed) << rank;
    EXPECT_EQ(100U, ranks_[rank].mailbox()->met) << rank;
  }
  // Either of them may hear of the other's giving up first, but not both.
  EXPECT_TRUE(ranks_[0].report.message == 2 || ranks_[2].report.message == 2);
  EXPECT_EQ(1U, ranks_[1].report.failed);
  EXPECT_EQ(0U, ranks_[1].report.message);
  EXPECT_EQ(101U, ranks_[1].mailbox()->met);
}

TEST_F(Meeting, NobodyWaitsForWhoIsGone) {
  make(2, 0);
  gone_ = 1;
  std::uint64_t word = 5;
  reduce(Crew{}, work(0, &word, &word, 8, kEverybody, 7), Sum{});
  EXPECT_EQ(1U, ranks_[0].report.failed);
  EXPECT_EQ(0U, ranks_[0].report.message);
  EXPECT_EQ(5U, word);
  // What came before it was gone is taken all the same.
  make(2, 0);
  reduce(Crew{}, work(0, &word, &word, 8, 1, 7), Sum{});
  std::uint64_t sum = 6;
  reduce(Crew{}, work(1, &sum, &sum, 8, 1, 7), Sum{});
  EXPECT_EQ(11U, sum);
  EXPECT_EQ(0U, ranks_[1].report.failed);
}

}  // namespace
