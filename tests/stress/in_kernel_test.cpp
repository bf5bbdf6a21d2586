// The algorithms of isthmus/device.cuh on threads of the processor: packets, signals, barriers; data that says which epoch it is of.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "in_kernel_support.hpp"

using namespace in_kernel;

namespace {

bool is_long() { return std::getenv("ISTHMUS_TEST_LONG") != nullptr; }
std::uint32_t epochs(std::uint32_t quick) { return is_long() ? 20 * quick : quick; }

std::uint32_t size_of(std::uint32_t epoch, std::uint32_t most) {
  const std::uint64_t dice = mixed(99, epoch, 0);
  const std::uint32_t bound = dice % 8 == 0 ? most : dice % 8 < 4 ? 64 : 600;
  return static_cast<std::uint32_t>(dice >> 20) % (bound + 1);
}
std::uint32_t shift_of(std::uint32_t epoch) {
  return mixed(98, epoch, 0) % 2 == 0 ? 0 : static_cast<std::uint32_t>(mixed(97, epoch, 0) % 16);
}

struct Exchange {
  int channel = 0;
  std::uint32_t most = 16384;
  std::uint32_t first = 0;  // the sequence before the first
  std::uint32_t count = 0;
  bool one_way = false;
};

// Both send and then receive; or PE 0 sends and PE 1 receives, and nothing but the credit holds it back. Most by one Channel, some by
// calls of their own in between.
template <Reuse kReuse>
std::uint64_t wrong_bytes_of(const Team& team, Shape shape, const Exchange& exchange) {
  std::atomic<std::uint64_t> wrong{0};
  team.play(shape, [&](const Player& crew, const ist_team_view& view) {
    const int other = 1 - view.pe;
    unsigned char* const source = team.room(view.pe);
    unsigned char* const found = source + 32768;
    Channel<Player, kReuse> lasting(crew, view, other, exchange.channel);
    for (std::uint32_t n = 1; n <= exchange.count; ++n) {
      const bool alone = n % 5 == 0;
      const std::uint32_t epoch = exchange.first + n, bytes = size_of(epoch, exchange.most), shift = shift_of(epoch);
      if (!exchange.one_way || view.pe == 0) {
        fill(crew, view, source + shift, bytes, epoch);
        dawdle(view.pe, epoch, thread_of(crew));
        const Status sent = alone
                                ? send<kReuse>(crew, view, other, exchange.channel, source + shift, bytes, epoch, kDeadline)
                                : lasting.send(source + shift, bytes, epoch, kDeadline);
        if (sent != Status::ok) wrong += 1000000;
      }
      if (!exchange.one_way || view.pe == 1) {
        dawdle(view.pe + 2, epoch, thread_of(crew));
        const Status come =
            alone ? receive<kReuse>(crew, view, other, exchange.channel, found + shift, bytes, epoch, kDeadline)
                  : lasting.receive(found + shift, bytes, epoch, kDeadline);
        if (come != Status::ok) wrong += 1000000;
        wrong += wrong_in(crew, view, found + shift, bytes, other, epoch);
      }
    }
  });
  return wrong.load();
}

TEST(InKernelPackets, ArriveWholeInBothDirectionsOverManyEpochs) {
  for (const Shape shape : {Shape{1, 1}, Shape{1, 3}, Shape{2, 2}}) {
    const Team team(2);
    const std::uint32_t count = epochs(shape.blocks == 1 ? 1500 : 300);
    EXPECT_EQ(0U, wrong_bytes_of<Reuse::credited>(team, shape, {0, 16384, 0, count, false})) << shape.threads;
    EXPECT_EQ(0U, wrong_bytes_of<Reuse::answered>(team, shape, {1, 4096, 0, count, false})) << shape.threads;
  }
}

TEST(InKernelPackets, OneWayAreHeldBackByTheCreditAlone) {
  const Team team(2);
  EXPECT_EQ(0U, wrong_bytes_of<Reuse::credited>(team, {1, 2}, {3, 4096, 0, epochs(3000), true}));
  EXPECT_EQ(0U, wrong_bytes_of<Reuse::credited>(team, {3, 1}, {2, 4096, 0, epochs(500), true}));
}

// Slots are cleaned twice before numbers come again; what was there before must not pass for what comes.
TEST(InKernelPackets, NumbersThatComeAgainNameNoOldMessage) {
  for (const std::uint32_t first : {kCleaning - 40, 2 * kCleaning - 40, 0U - 40}) {
    const Team team(2);
    for (const int pe : {0, 1}) control_of(team.view(pe), pe).peers[1 - pe].taken[0] = first;
    EXPECT_EQ(0U, wrong_bytes_of<Reuse::credited>(team, {1, 2}, {0, 16384, first, 200, false})) << first;
    for (const int pe : {0, 1}) control_of(team.view(pe), pe).peers[1 - pe].taken[1] = first;
    EXPECT_EQ(0U, wrong_bytes_of<Reuse::credited>(team, {2, 1}, {1, 4096, first, 100, false})) << first;
  }
  EXPECT_TRUE(cleans(kCleaning + 1));
  EXPECT_FALSE(cleans(kCleaning));
  EXPECT_NE(number_of(0), 0U) << "zeroed memory has no number";
}

TEST(InKernelPackets, WhatDoesNotFitIsMisuseAndNothingIsStored) {
  const Team team(2);
  std::vector<unsigned char> bytes(20000, 7);
  team.play({1, 1}, [&](const Player& crew, const ist_team_view& view) {
    if (view.pe != 0) return;
    EXPECT_EQ(Status::misuse, send(crew, view, 1, 0, bytes.data(), kLongest + 1, 1));
    EXPECT_EQ(Status::misuse, send(crew, view, 1, 1, bytes.data(), kShortest + 1, 1));
    EXPECT_EQ(Status::misuse, send(crew, view, 2, 0, bytes.data(), 8, 1));
    EXPECT_EQ(Status::misuse, send(crew, view, -1, 0, bytes.data(), 8, 1));
    EXPECT_EQ(Status::misuse, receive(crew, view, 1, kChannels, bytes.data(), 8, 1));
    EXPECT_EQ(Status::ok, send(crew, view, 1, 0, bytes.data(), kLongest, 1));
  });
  EXPECT_EQ(0U, slot_of(team.view(0), 1, 0, 1, 1)->low);
  EXPECT_NE(0U, slot_of(team.view(0), 1, 0, 0, 1)->low);
}

// PE 0 puts, PE 1 compares and answers with its own; by turns a sum and a new value.
TEST(InKernelSignals, DataIsThereWhenItsSignalIs) {
  for (const Shape shape : {Shape{1, 1}, Shape{1, 3}, Shape{2, 2}, Shape{3, 1}}) {
    const Team team(2);
    std::atomic<std::uint64_t> wrong{0};
    team.play(shape, [&](const Player& crew, const ist_team_view& view) {
      unsigned char* const mine = team.room(view.pe);
      auto* const word = reinterpret_cast<std::uint64_t*>(mine + 200000);
      for (std::uint32_t n = 1; n <= epochs(shape.blocks == 1 ? 1500 : 300); ++n) {
        const std::uint32_t bytes = size_of(n, 65536), shift = shift_of(n), there = shift_of(n + 1);
        for (int turn = 0; turn < 2; ++turn) {
          if (turn == view.pe) {
            fill(crew, view, mine + shift, bytes, n);
            dawdle(view.pe, n, thread_of(crew));
            const Signal how = n % 2 == 0 ? Signal::add : Signal::set;
            if (put_signal(crew, view, mine + 70000 + there, mine + shift, bytes, word, n % 2 == 0 ? 1 : n, how, 1 - turn,
                           kDeadline) != Status::ok)
              wrong += 1000000;
            // All blocks have read it.
            for (std::uint64_t i = thread_of(crew); i < bytes; i += threads_of(crew)) mine[shift + i] = 0x5a;
          } else {
            Status status = Status::ok;
            if (is_first(crew)) status = wait_until(view, word, Compare::equal, std::uint64_t{n}, kDeadline);
            if (agreed(crew, view, status, kDeadline) != Status::ok) wrong += 1000000;
            wrong += wrong_in(crew, view, mine + 70000 + there, bytes, 1 - view.pe, n);
          }
        }
      }
    });
    EXPECT_EQ(0U, wrong.load()) << shape.blocks << " of " << shape.threads;
  }
}

// Planes that say which epoch they are of, put into every other PE's memory. Two planes: the next but one is put after the next barrier,
// before which this one was compared.
std::uint64_t wrong_planes(int pes, Shape shape, std::uint32_t count) {
  const Team team(pes, 1 << 18);
  static constexpr std::uint32_t kWords = 8;
  std::atomic<std::uint64_t> wrong{0};
  team.play(shape, [&](const Player& crew, const ist_team_view& view) {
    const auto place = [&](std::uint32_t n, int from, unsigned block) {
      return reinterpret_cast<std::uint64_t*>(team.room(view.pe)) +
             ((n % 2 * static_cast<std::uint32_t>(pes) + static_cast<std::uint32_t>(from)) * shape.blocks + block) * kWords;
    };
    const auto word = [](int from, std::uint32_t n, unsigned block, unsigned i) {
      return mixed(static_cast<std::uint64_t>(from) + 3, n, block * kWords + i);
    };
    for (std::uint32_t n = 1; n <= count; ++n) {
      dawdle(view.pe, n, crew.block * 64 + crew.thread);
      for (int pe = 0; pe < pes; ++pe)
        for (unsigned i = crew.thread; i < kWords; i += crew.threads)
          *peer_ptr(view, place(n, view.pe, crew.block) + i, pe) = word(view.pe, n, crew.block, i);
      // An object of its own each time: its number is read from the area.
      if (barrier(crew, view, kDeadline) != Status::ok) wrong += 1000000;
      const unsigned block = (crew.block + 1) % crew.blocks;  // of another block than the own one
      for (int pe = 0; pe < pes; ++pe)
        for (unsigned i = crew.thread; i < kWords; i += crew.threads)
          wrong += place(n, pe, block)[i] != word(pe, n, block, i);
    }
  });
  return wrong.load();
}

TEST(InKernelBarrier, ShowsWhatWasStoredBeforeIt) {
  EXPECT_EQ(0U, wrong_planes(1, {1, 1}, epochs(200)));
  EXPECT_EQ(0U, wrong_planes(2, {1, 1}, epochs(3000)));
  EXPECT_EQ(0U, wrong_planes(2, {1, 3}, epochs(1000)));
  EXPECT_EQ(0U, wrong_planes(3, {2, 2}, epochs(300)));
  EXPECT_EQ(0U, wrong_planes(2, {4, 1}, epochs(500)));
}

TEST(InKernelBarrier, OfMorePesThanTellEachOtherIsGatheredAtOne) {
  EXPECT_EQ(0U, wrong_planes(kFlatPes, {1, 1}, epochs(300)));
  EXPECT_EQ(0U, wrong_planes(kFlatPes + 1, {1, 1}, epochs(300)));
  EXPECT_EQ(0U, wrong_planes(kFlatPes + 2, {2, 1}, epochs(100)));
}

TEST(InKernelBarrier, OneAfterTheOtherWithTheirNumberInARegister) {
  const Team team(2);
  std::atomic<int> ahead{0};
  std::atomic<std::uint64_t> come[2] = {0, 0};
  team.play({2, 2}, [&](const Player& crew, const ist_team_view& view) {
    Meeting<Player> meeting(crew, view);
    for (std::uint64_t n = 1; n <= epochs(500); ++n) {
      if (crew.block == 0 && crew.thread == 0) come[view.pe].store(n);
      const Status status = n % 2 == 0 ? meeting.meet(kDeadline) : meeting.meet<Order::nothing>(kDeadline);
      if (status != Status::ok || come[0].load() < n || come[1].load() < n) ++ahead;
    }
  });
  EXPECT_EQ(0, ahead.load());
}

// A misuse by one thread is no deadline that has passed, and a death is worse than both.
TEST(InKernelWaits, TellEveryThreadOfACrewTheWorstThatOneMet) {
  const std::array all{Status::ok, Status::late, Status::misuse, Status::peer_dead};  // from good to worst
  const Team team(1);
  std::atomic<int> wrong{0};
  team.play({1, 3}, [&](const Player& crew, const ist_team_view&) {
    for (std::size_t n = 0; n < all.size() * all.size() * all.size(); ++n) {
      const std::array met{n % all.size(), n / all.size() % all.size(), n / all.size() / all.size()};
      if (agreed(crew, all[met[crew.thread]]) != all[*std::max_element(met.begin(), met.end())]) ++wrong;
    }
  });
  EXPECT_EQ(0, wrong.load());
}

TEST(InKernelWaits, EndAtTheirDeadlineAndWhenAPeHasDied) {
  Team team(2);
  std::vector<Status> ended(4, Status::ok);
  team.play({1, 2}, [&](const Player& crew, const ist_team_view& view) {
    if (view.pe == 1) return;
    Status status = Status::ok;
    auto* const word = reinterpret_cast<std::uint64_t*>(team.room(0));
    if (crew.thread == 0) status = wait_until(view, word, Compare::not_equal, std::uint64_t{0}, 5000000);
    ended[crew.thread] = agreed(crew, status);
  });
  EXPECT_EQ(Status::late, ended[0]);
  EXPECT_EQ(Status::late, ended[1]) << "every thread of the crew learns of it";
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    team.abort();
  });
  team.play({2, 2}, [&](const Player& crew, const ist_team_view& view) {
    if (view.pe == 0) ended[crew.block * 2 + crew.thread] = barrier(crew, view);
  });
  killer.join();
  for (const Status status : ended) EXPECT_EQ(Status::peer_dead, status);
}

// Of one wait after the other by the same object, whichever of its looks is the one after which it looks around.
TEST(InKernelWaits, EndAtTheirDeadlineAfterAnyNumberThatWereNotInVain) {
  const Team team(1);
  const ist_team_view view = team.view(0);
  for (const int come : {0, 1, kLooks - 1, kLooks, kLooks + 1, 3 * kLooks}) {
    Waiter waiter(view, 1000000);
    for (int n = 0; n < come; ++n) ASSERT_EQ(Status::ok, waiter.wait([] { return true; }));
    EXPECT_EQ(Status::late, waiter.wait([] { return false; })) << come;
  }
  // One that comes with the very look after which it would have looked around.
  int left = kLooks;
  Waiter waiter(view, 1000000);
  EXPECT_EQ(Status::ok, waiter.wait([&] { return --left == 0; }));
  EXPECT_EQ(Status::late, waiter.wait([] { return false; }));
}

// A loop that tests, and does something else in between, ends as a wait does: the abort word is looked at once in so many looks in vain.
TEST(InKernelWaits, ThatTestInALoopEndAtADeadlineAndWhenAPeHasDied) {
  Team team(1);
  const ist_team_view view = team.view(0);
  auto* const word = reinterpret_cast<std::uint64_t*>(team.room(0));
  *word = 4;
  const auto looks_until = [&](Waiter& waiter, Status wanted, std::uint64_t value) {
    for (int looks = 1;; ++looks) {
      bool is = true;
      const Status status = test(waiter, word, Compare::equal, value, is);
      EXPECT_EQ(status == Status::ok && value == 4, is);
      if (status == wanted && (is || status != Status::ok)) return looks;
      if (status != Status::ok || looks > 100 * kLooks) return -1;
    }
  };
  Waiter patient(view, 0);
  EXPECT_EQ(1, looks_until(patient, Status::ok, 4));
  Waiter hasty(view, 1);
  EXPECT_EQ(2 * kLooks, looks_until(hasty, Status::late, 5)) << "the clock is read once in so many looks";
  team.abort();
  EXPECT_EQ(kLooks, looks_until(patient, Status::peer_dead, 5)) << "the one that was not in vain does not count";
  ist_window_view window{};
  window.abort_word = view.abort_word;
  Waiter of_window(window, 0);
  EXPECT_EQ(kLooks, looks_until(of_window, Status::peer_dead, 5));
}

TEST(InKernelWaits, CompareAsTheyAreTold) {
  const Team team(1);
  const ist_team_view view = team.view(0);
  auto* const word = reinterpret_cast<std::int64_t*>(team.room(0));
  auto* const narrow = reinterpret_cast<float*>(team.room(0) + 64);
  for (const std::int64_t value : {-5, 0, 5}) {
    *word = value;
    *narrow = static_cast<float>(value);
    EXPECT_EQ(value == 0, test(word, Compare::equal, std::int64_t{0}));
    EXPECT_EQ(value != 0, test(word, Compare::not_equal, std::int64_t{0}));
    EXPECT_EQ(value > 0, test(word, Compare::greater, std::int64_t{0}));
    EXPECT_EQ(value >= 0, test(word, Compare::greater_equal, std::int64_t{0}));
    EXPECT_EQ(value < 0, test(narrow, Compare::less, 0.0F));
    EXPECT_EQ(value <= 0, test(narrow, Compare::less_equal, 0.0F));
    std::int64_t seen = 99;
    EXPECT_EQ(Status::ok, wait_until(view, word, Compare::less_equal, std::int64_t{5}, kDeadline, &seen));
    EXPECT_EQ(value, seen);
  }
}

}  // namespace
