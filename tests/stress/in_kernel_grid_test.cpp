// The algorithms of isthmus/device.cuh on threads of the processor: where the blocks of a grid agree, and what becomes of those that are missed.
#include <gtest/gtest.h>
#include <isthmus/device/window.cuh>

#include <array>
#include <cstdlib>

#include "in_kernel_support.hpp"

using namespace in_kernel;

namespace {

std::uint32_t times(std::uint32_t quick) { return std::getenv("ISTHMUS_TEST_LONG") != nullptr ? 20 * quick : quick; }

// In each meeting some thread of one block has met something: all learn it, and what others stored before is there. They go on behind it.
std::uint64_t wrong_meetings(const Team& team, Shape shape, std::uint32_t count) {
  static constexpr std::array kEnds{Status::ok, Status::ok, Status::late, Status::misuse};
  std::atomic<std::uint64_t> wrong{0};
  team.play(shape, [&](const Player& crew, const ist_team_view& view) {
    auto* const planes = reinterpret_cast<std::uint64_t*>(team.room(view.pe));
    for (std::uint32_t n = 1; n <= count; ++n) {
      const std::uint64_t dice = mixed(static_cast<std::uint64_t>(view.pe) + 20, n, 0);
      const Status ends = kEnds[dice % kEnds.size()];
      // Two planes: the next but one is written behind the next meeting, before which this one was read.
      std::uint64_t* const plane = planes + n % 2 * 1024;
      dawdle(view.pe, n, thread_of(crew));
      plane[thread_of(crew)] = mixed(static_cast<std::uint64_t>(view.pe), n, thread_of(crew));
      const bool mine = dice / 16 % threads_of(crew) == thread_of(crew);
      if (agreed(crew, view, mine ? ends : Status::ok, kDeadline) != ends) ++wrong;
      for (unsigned i = 0; i < threads_of(crew); ++i) wrong += plane[i] != mixed(static_cast<std::uint64_t>(view.pe), n, i);
    }
  });
  return wrong.load();
}

TEST(InKernelGrids, LearnTheWorstThatOneOfTheirThreadsMetAndGoOn) {
  const Team team(2);
  // One after the other, as kernels are: of other sizes, in the same words.
  EXPECT_EQ(0U, wrong_meetings(team, {2, 1}, times(1000)));
  EXPECT_EQ(0U, wrong_meetings(team, {4, 2}, times(300)));
  EXPECT_EQ(0U, wrong_meetings(team, {1, 3}, times(100)));
  EXPECT_EQ(0U, wrong_meetings(team, {3, 1}, times(300)));
}

// Collective calls and messages of grids and of single blocks by turns, as kernels one after the other: their numbers go on.
TEST(InKernelGrids, AndBlocksCountTheSameCallsAndMessages) {
  const Team team(2);
  std::atomic<std::uint64_t> wrong{0};
  std::uint32_t sequence = 0;
  for (const Shape shape : {Shape{1, 2}, Shape{2, 2}, Shape{3, 1}, Shape{1, 1}, Shape{2, 1}}) {
    team.play(shape, [&, sequence](const Player& crew, const ist_team_view& view) {
      auto* const mine = reinterpret_cast<std::int64_t*>(team.room(view.pe));
      for (std::uint32_t n = sequence + 1; n <= sequence + 20; ++n) {
        if (is_first(crew)) mine[0] = view.pe + n;
        meet(crew, view);
        wrong += allreduce<Sum>(crew, view, mine + 1, mine, 1, kDeadline) != Status::ok;
        wrong += mine[1] != 2 * std::int64_t{n} + 1;
        wrong += send(crew, view, 1 - view.pe, 0, mine, 8, n, kDeadline) != Status::ok;
        wrong += receive(crew, view, 1 - view.pe, 0, mine + 2, 8, n, kDeadline) != Status::ok;
        wrong += mine[2] != 1 - view.pe + std::int64_t{n};
        wrong += barrier(crew, view, kDeadline) != Status::ok;
      }
    });
    sequence += 20;
  }
  EXPECT_EQ(0U, wrong.load());
}

// Its parts lie anywhere, here in the rooms of a team's parts.
ist_window_view window_over(const Team& team, const ist_team_view& view) {
  ist_window_view window{};
  window.pe = view.pe, window.pes = view.pes;
  window.abort_word = view.abort_word;
  for (int pe = 0; pe < view.pes; ++pe) window.base[pe] = team.room(pe);
  return window;
}

// The signal follows what all blocks have put, of sizes that leave some of them without bytes, too.
TEST(InKernelGrids, PutIntoAWindowAndSignalWhenAllBlocksHave) {
  constexpr std::uint64_t kLands = 1 << 16, kCame = 2 << 16, kRead = kCame + 8;
  const Team team(2);
  std::atomic<std::uint64_t> wrong{0};
  team.play({3, 2}, [&](const Player& crew, const ist_team_view& view) {
    const ist_window_view window = window_over(team, view);
    const int other = 1 - view.pe;
    unsigned char* const own = team.room(view.pe);
    for (std::uint32_t n = 1; n <= times(500); ++n) {
      const std::uint64_t bytes = n % 7 == 0 ? n % 9 : mixed(11, n, 0) % 3000;
      fill(crew, view, own, bytes, n);
      dawdle(view.pe, n, thread_of(crew));
      wrong +=
          put_signal(crew, view, window, kLands + n % 16, own, bytes, kCame, 1, Signal::add, other, kDeadline) != Status::ok;
      Status came = Status::ok;
      if (is_first(crew))
        came =
            wait_until(window, peer_ptr<std::uint64_t>(window, kCame, view.pe), Compare::equal, std::uint64_t{n}, kDeadline);
      wrong += agreed(crew, view, came, kDeadline) != Status::ok;
      wrong += wrong_in(crew, view, own + kLands + n % 16, bytes, other, n);
      // No bytes, and a word: all have read.
      wrong += put_signal(crew, view, window, 0, own, 0, kRead, n, Signal::set, other, kDeadline) != Status::ok;
      if (is_first(crew))
        came =
            wait_until(window, peer_ptr<std::uint64_t>(window, kRead, view.pe), Compare::equal, std::uint64_t{n}, kDeadline);
      wrong += agreed(crew, view, came, kDeadline) != Status::ok;
    }
  });
  EXPECT_EQ(0U, wrong.load());
}

// So long that both blocks of a loaded machine come to the call in that time.
constexpr std::uint64_t kLongEnough = 2000000000;  // ns

// What one block waits for in vain ends for all of them at the deadline, and the channel alone is not to be used again.
TEST(InKernelGrids, AreLateTogetherAndThenMeetAsBefore) {
  const Team team(2);
  std::array<std::atomic<int>, 4> ended{};
  std::atomic<std::uint64_t> wrong{0};
  team.play({2, 1}, [&](const Player& crew, const ist_team_view& view) {
    auto* const mine = reinterpret_cast<std::uint64_t*>(team.room(view.pe));
    if (view.pe == 0) {
      // The first of two units comes, which block 0 takes: block 1 alone is late.
      if (crew.block == 0) store_relaxed(slot_of(view, 1, 0, 0, 1), packed(number_of(1), 7));
    } else {
      ended[crew.block] = static_cast<int>(receive(crew, view, 0, 0, mine, 16, 1, kLongEnough));
    }
    wrong += agreed(crew, view, Status::ok, kDeadline) != Status::ok;
    wrong += put_signal(crew, view, mine + 8, mine, 16, mine + 16, 5, Signal::set, 1 - view.pe, kDeadline) != Status::ok;
    wrong += wait_until(view, mine + 16, Compare::equal, std::uint64_t{5}, kDeadline) != Status::ok;
  });
  EXPECT_EQ(static_cast<int>(Status::late), ended[0].load());
  EXPECT_EQ(static_cast<int>(Status::late), ended[1].load());
  EXPECT_EQ(0U, wrong.load());
}

// A block that does not make the call: the others are late, no signal is set, and it finds so when it comes.
TEST(InKernelGrids, GiveUpABlockThatDoesNotComeForEver) {
  for (const unsigned missing : {1U, 0U}) {
    const Team team(1);
    auto* const words = reinterpret_cast<std::uint64_t*>(team.room(0));
    const auto call = [&](const Player& crew, const ist_team_view& view) {
      EXPECT_EQ(Status::late, put_signal(crew, view, words + 8, words, 8, words + 16, 1, Signal::set, 0, 5000000))
          << crew.block << " of three without " << missing;
      EXPECT_EQ(Status::late,
                put_signal(crew, view, window_over(team, view), 64, words, 8, 136, 1, Signal::set, 0, 5000000));
    };
    team.play({3, 1}, [&](const Player& crew, const ist_team_view& view) {
      if (crew.block != missing) call(crew, view);
    });
    // Block 0 has said so, and says it for ever; so have those that waited for it.
    for (int again = 0; again < 2; ++again) team.play({3, 1}, call);
    EXPECT_EQ(0U, words[16] + words[17]) << "no signal without all data";
  }
}

// The first call of a team has two meetings: where the first one was given up nobody comes to the second, in which some blocks would find
// others that came to it before.
TEST(InKernelGrids, MakeNoCollectiveCallAfterOneThatABlockMissed) {
  for (const unsigned missing : {1U, 0U, 2U}) {
    const Team team(1);
    auto* const words = reinterpret_cast<std::uint64_t*>(team.room(0));
    std::atomic<int> wrong{0}, counted{0};
    const auto call = [&](const Player& crew, const ist_team_view& view) {
      wrong += allreduce<Sum>(crew, view, words, words, 1, std::uint64_t{5000000}) != Status::late;
      counted += static_cast<int>(load_relaxed(&control_of(view, 0).calls));
    };
    team.play({3, 1}, [&](const Player& crew, const ist_team_view& view) {
      if (crew.block != missing) call(crew, view);
    });
    for (int again = 0; again < 4; ++again) team.play({3, 1}, call);
    EXPECT_EQ(0, wrong.load()) << "without " << missing;
    EXPECT_EQ(0, counted.load()) << "without " << missing;
  }
}

TEST(InKernelGrids, EndWhenAPeHasDiedAllTheSame) {
  Team team(2);
  std::array<std::atomic<int>, 6> ended{};
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    team.abort();
  });
  team.play({3, 2}, [&](const Player& crew, const ist_team_view& view) {
    auto* const mine = reinterpret_cast<std::uint64_t*>(team.room(view.pe));
    if (view.pe != 0) return;
    ended[thread_of(crew)] = static_cast<int>(allreduce<Sum>(crew, view, mine, mine, 9));
  });
  killer.join();
  for (const auto& status : ended) EXPECT_EQ(static_cast<int>(Status::peer_dead), status.load());
}

}  // namespace
