#include "boot/watcher.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "ranks.hpp"

namespace ist::test {
namespace {

using Fate = AbortBoard::Fate;

// A world's start-up, as the face does it.
struct World {
  std::unique_ptr<Boot> boot;
  std::unique_ptr<Peers> peers;
  std::unique_ptr<AbortBoard> board;
  std::unique_ptr<std::atomic<int>> wakes = std::make_unique<std::atomic<int>>(0);
  std::unique_ptr<Watcher> watcher;
};

Rank nobody_died(Rank) { return kNobody; }

World make_world(std::function<bool(Rank)> has_left, std::function<Rank(Rank)> death_told_by = nobody_died) {
  World world;
  world.boot = join_job(Settings{}).value();
  world.peers = Peers::connect(*world.boot, Settings{}).value();
  world.board = std::make_unique<AbortBoard>(world.peers->size());
  auto watcher = Watcher::start(*world.peers, *world.board,
                                {std::move(has_left), std::move(death_told_by), [wakes = world.wakes.get()] { ++*wakes; }});
  EXPECT_TRUE(watcher.ok()) << watcher.status().text();
  world.watcher = std::move(*watcher);
  EXPECT_TRUE(world.boot->all_gather("ready").ok());
  return world;
}

Fate wait_for_fate(const AbortBoard& board, Rank rank, double seconds) {
  const double start = now();
  while (board.fate(rank) == Fate::present && now() - start < seconds) ::usleep(500);
  return board.fate(rank);
}

bool nobody_left(Rank) { return false; }

TEST(Watcher, a_killed_rank_is_marked_dead_within_a_second_by_all_others) {
  const auto ends = run_launched(4, [](int rank) {
    auto world = make_world(nobody_left);
    if (rank == 2) ::kill(::getpid(), SIGKILL);
    const double start = now();
    EXPECT_EQ(wait_for_fate(*world.board, Rank{2}, 5.0), Fate::dead);
    EXPECT_LT(now() - start, 1.0);
    EXPECT_EQ(world.board->first_dead().value, 2);
    EXPECT_EQ(world.board->fate(Rank{rank}), Fate::present);
    ::usleep(1000);
    EXPECT_GE(world.wakes->load(), 1);
    // nobody may end before all have looked: an ending rank is a death too
    ::usleep(300000);
  });
  EXPECT_EQ(ends, (std::vector{0, 0, -SIGKILL, 0}));
}

TEST(Watcher, a_rank_that_left_because_of_a_death_makes_it_known_before_it_counts_as_left) {
  const auto ends = run_launched(3, [](int rank) {
    // Rank 1 says that rank 2 died; rank 2 still lives, as far as its socket tells.
    auto world =
        make_world([](Rank who) { return who == Rank{1}; }, [](Rank who) { return who == Rank{1} ? Rank{2} : kNobody; });
    if (rank == 1) {
      world.watcher.reset();
      world.peers.reset();
    } else if (rank == 0) {
      EXPECT_EQ(wait_for_fate(*world.board, Rank{1}, 5.0), Fate::left);
      EXPECT_EQ(world.board->fate(Rank{2}), Fate::dead);
      EXPECT_EQ(world.board->first_dead(), Rank{2});
    }
    ::usleep(300000);
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Watcher, a_rank_that_left_in_order_is_marked_left_and_stays_so_when_its_process_ends) {
  const auto ends = run_launched(2, [](int rank) {
    auto world = make_world([](Rank) { return true; });
    if (rank == 1) {
      world.watcher.reset();
      world.peers.reset();
      ::usleep(100000);
      return;
    }
    EXPECT_EQ(wait_for_fate(*world.board, Rank{1}, 5.0), Fate::left);
    ::usleep(300000);
    EXPECT_EQ(world.board->fate(Rank{1}), Fate::left);
    EXPECT_EQ(world.board->first_dead().value, -1);
    EXPECT_EQ(world.wakes->load(), 1);
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Watcher, a_dead_rank_whose_forked_child_keeps_its_sockets_open_is_noticed) {
  const auto ends = run_launched(2, [](int rank) {
    auto world = make_world(nobody_left);
    if (rank == 1) {
      if (::fork() == 0) {
        ::usleep(1500000);
        ::_exit(0);
      }
      ::kill(::getpid(), SIGKILL);
    }
    const double start = now();
    EXPECT_EQ(wait_for_fate(*world.board, Rank{1}, 5.0), Fate::dead);
    EXPECT_LT(now() - start, 1.0);
  });
  EXPECT_EQ(ends, (std::vector{0, -SIGKILL}));
}

TEST(Watcher, descriptors_on_their_way_are_no_event_and_are_not_eaten) {
  const auto ends = run_launched(2, [](int rank) {
    auto world = make_world(nobody_left);
    const Rank other{1 - rank};
    for (std::uint32_t purpose = 0; purpose < 50; ++purpose)
      ASSERT_TRUE(world.peers->send_descriptor(other, purpose, 0).ok());
    ::usleep(100000);
    EXPECT_EQ(world.board->changes(), 0U);
    for (std::uint32_t purpose = 0; purpose < 50; ++purpose) {
      auto taken = world.peers->take_descriptor(other, purpose, 5.0);
      ASSERT_TRUE(taken.ok());
      ASSERT_TRUE(taken->has_value());
    }
    world.boot->all_gather("done").status();
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Watcher, its_thread_takes_no_signal_and_leaves_the_callers_mask_alone) {
  const auto ends = run_launched(2, [](int) {
    auto world = make_world(nobody_left);
    int threads = 0;
    for (const auto& task : std::filesystem::directory_iterator{"/proc/self/task"}) {
      ++threads;
      if (task.path().filename() == std::to_string(::getpid())) continue;
      std::ifstream status{task.path() / "status"};
      for (std::string line; std::getline(status, line);) {
        if (!line.starts_with("SigBlk:")) continue;
        // All but SIGKILL and SIGSTOP; what it may do wrong itself (SIGSEGV, SIGBUS, SIGFPE, SIGILL) only while it begins. Signals
        // 32 and 33 are the C library's own business, and 31, SIGSYS, is open in a sanitizer's thread.
        constexpr std::uint64_t kFaults = 0x4c8;
        const auto blocked = std::stoull(line.substr(7), nullptr, 16);
        EXPECT_EQ((blocked | kFaults) & 0xfffffffe3fffffffULL, 0xfffffffe3ffbfeffULL) << line;
      }
    }
    EXPECT_GE(threads, 2);
    sigset_t mine;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mine);
    EXPECT_FALSE(::sigismember(&mine, SIGTERM)) << "the caller's own mask is as it was";
    world.boot->all_gather("done").status();
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Watcher, stops_at_once_and_starts_again) {
  const auto ends = run_launched(2, [](int) {
    for (int round = 0; round < 5; ++round) {
      auto world = make_world([](Rank) { return true; });
      world.boot->all_gather("used").status();
      const double start = now();
      world.watcher.reset();
      EXPECT_LT(now() - start, 0.5);
    }
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Watcher, a_world_of_one_has_nobody_to_watch) {
  const auto ends = run_launched(1, [](int) {
    auto world = make_world(nobody_left);
    ::usleep(20000);
    EXPECT_EQ(world.board->changes(), 0U);
  });
  EXPECT_EQ(failures(ends), 0);
}

}  // namespace
}  // namespace ist::test
