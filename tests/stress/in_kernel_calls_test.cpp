// The algorithms of isthmus/device.cuh on threads of the processor: addresses, copies, atomics, and small collective calls.
#include <gtest/gtest.h>

#include <isthmus/device/window.cuh>

#include <array>
#include <cstring>
#include <numeric>

#include "in_kernel_support.hpp"

using namespace in_kernel;

namespace {

TEST(InKernelAddresses, AreArithmeticAlsoWhereTheStrideIsNegative) {
  unsigned char memory[64];
  ist_team_view view{};
  view.pe = 1;
  view.pes = 3;
  view.base = memory + 40;
  view.stride = std::uint64_t{0} - 16;
  EXPECT_EQ(memory + 40, part_of(view, 0));
  EXPECT_EQ(memory + 8, part_of(view, 2));
  EXPECT_EQ(memory + 8 + 3, peer_ptr(view, memory + 24 + 3, 2));
  EXPECT_EQ(memory + 40 + 5, peer_ptr(view, std::uint64_t{5}, 0));
}

// Every place beside a vector, at both ends, and every small size: nothing else is touched.
TEST(InKernelCopies, MoveEveryByteAndNoOther) {
  const Team team(2);
  constexpr std::uint64_t kRoom = 256;
  std::atomic<std::uint64_t> wrong{0};
  team.play({2, 2}, [&](const Player& crew, const ist_team_view& view) {
    unsigned char* const mine = team.room(view.pe);
    const unsigned all = crew.blocks * crew.threads, number = crew.block * crew.threads + crew.thread;
    std::uint64_t epoch = 0;
    for (std::uint64_t from = 0; from < 17; ++from) {
      for (std::uint64_t to = 0; to < 17; to += 1 + from % 3) {
        for (const std::uint64_t bytes : {0, 1, 2, 7, 15, 16, 17, 33, 63, 64, 100}) {
          ++epoch;
          if (number == 0)
            for (std::uint64_t i = 0; i < kRoom; ++i)
              mine[i] = byte_of(view.pe, epoch, i), mine[kRoom + i] = mine[2 * kRoom + i] = 0xa5;
          if (barrier(crew, view, kDeadline) != Status::ok) wrong += 1000000;
          put(crew, view, mine + kRoom + to, mine + from, bytes, 1 - view.pe);
          get(crew, view, mine + 2 * kRoom + to, mine + from, bytes, 1 - view.pe);
          if (barrier(crew, view, kDeadline) != Status::ok) wrong += 1000000;
          for (std::uint64_t i = number; i < kRoom; i += all) {
            const unsigned char wanted = i >= to && i < to + bytes ? byte_of(1 - view.pe, epoch, from + i - to) : 0xa5;
            wrong += mine[kRoom + i] != wanted;
            wrong += mine[2 * kRoom + i] != wanted;
          }
          if (barrier(crew, view, kDeadline) != Status::ok) wrong += 1000000;
        }
      }
    }
  });
  EXPECT_EQ(0U, wrong.load());
}

// By name, elements are counted; without one, bytes, whatever the addresses are of.
TEST(InKernelCopies, OfATypeCountElementsAndOthersBytes) {
  const Team team(2);
  std::array<std::array<std::int32_t, 8>, 2> windowed{};
  team.play({1, 2}, [&](const Player& crew, const ist_team_view& view) {
    auto* const mine = reinterpret_cast<std::int32_t*>(team.room(view.pe));
    const std::int32_t ours = 10 * view.pe + 1, theirs = 10 * (1 - view.pe) + 1;
    if (crew.thread == 0)
      for (int i = 0; i < 8; ++i) mine[i] = ours, mine[8 + i] = mine[16 + i] = mine[24 + i] = -1;
    EXPECT_EQ(Status::ok, barrier(crew, view, kDeadline));
    put<std::int32_t>(crew, view, mine + 8, mine, 4, 1 - view.pe);
    put(crew, view, mine + 16, mine, 4, 1 - view.pe);
    get<std::int32_t>(crew, view, mine + 24, mine, 3, 1 - view.pe);
    ist_window_view window{};
    window.pe = view.pe, window.pes = view.pes;
    for (int pe = 0; pe < 2; ++pe)
      window.base[pe] = reinterpret_cast<unsigned char*>(windowed[static_cast<std::size_t>(pe)].data());
    put<std::int32_t>(crew, window, 4, mine, 2, 1 - view.pe);
    EXPECT_EQ(Status::ok, barrier(crew, view, kDeadline));
    if (crew.thread != 0) return;
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(i < 4 ? theirs : -1, mine[8 + i]) << i;
      EXPECT_EQ(i < 1 ? theirs : -1, mine[16 + i]) << i;
      EXPECT_EQ(i < 3 ? theirs : -1, mine[24 + i]) << i;
      EXPECT_EQ(i == 1 || i == 2 ? theirs : 0, windowed[static_cast<std::size_t>(view.pe)][static_cast<std::size_t>(i)])
          << i;
    }
    std::array<std::int32_t, 2> found{};
    get<std::int32_t>(Player{0, 1, 0, 1, nullptr}, window, found.data(), 8, 1, view.pe);
    EXPECT_EQ(theirs, found[0]);
    EXPECT_EQ(0, found[1]);
  });
}

// By crews of any number of threads, wherever both sides lie: the bytes, and none beside them.
TEST(InKernelCopies, ShortOnesAreWholeWhereverTheyLie) {
  constexpr std::uint64_t kMost = 300, kGuard = 32;
  alignas(64) std::array<unsigned char, kMost + 2 * kGuard> source{}, found{};
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = byte_of(0, 1, i);
  std::uint64_t wrong = 0;
  for (const unsigned threads : {1U, 2U, 3U, 32U, 33U, 64U, 256U})
    for (const std::uint64_t to : {0U, 1U, 2U, 4U, 8U, 12U})
      for (const std::uint64_t from : {0U, 1U, 2U, 4U, 8U, 12U})
        for (std::uint64_t bytes = 0; bytes <= kMost; ++bytes) {
          found.fill(0xa5);
          for (unsigned thread = 0; thread < threads; ++thread)
            copy(Player{thread, threads, 0, 1, nullptr}, &found[kGuard / 2 + to], &source[from], bytes);
          for (std::uint64_t i = 0; i < found.size(); ++i) {
            const std::uint64_t at = i - kGuard / 2 - to;  // before the first byte it goes round
            wrong += found[i] != (at < bytes ? source[from + at] : 0xa5);
          }
        }
  EXPECT_EQ(0U, wrong);
}

struct Rgb {
  unsigned char red, green, blue;
};

// Of elements that lie as their type has to, by one thread and by more of them than there are elements, there and back.
template <class T>
void puts_and_gets_elements() {
  const Team team(2);
  const ist_team_view view = team.view(0);
  auto* const mine = reinterpret_cast<T*>(team.room(0));
  auto* const theirs = reinterpret_cast<unsigned char*>(team.room(1));
  constexpr std::uint64_t kMost = 70;
  alignas(16) std::array<unsigned char, kMost * sizeof(T)> source{}, back{};
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = byte_of(1, sizeof(T), i);
  std::uint64_t wrong = 0;
  for (const unsigned threads : {1U, 3U, 32U, 128U})
    for (const std::uint64_t place : {0U, 1U, 2U, 3U})
      for (std::uint64_t count = 0; count <= kMost; ++count) {
        std::fill_n(theirs, (kMost + 8) * sizeof(T), static_cast<unsigned char>(0xa5));
        back.fill(0x5a);
        const auto each = [&](const auto& call) {
          for (unsigned thread = 0; thread < threads; ++thread) call(Player{thread, threads, 0, 1, nullptr});
        };
        each([&](const Player& crew) {
          put<T>(crew, view, mine + place, reinterpret_cast<const T*>(source.data()), count, 1);
        });
        each([&](const Player& crew) { get<T>(crew, view, reinterpret_cast<T*>(back.data()), mine + place, count, 1); });
        const std::uint64_t bytes = count * sizeof(T);
        for (std::uint64_t i = 0; i < (kMost + 8) * sizeof(T); ++i) {
          const std::uint64_t at = i - place * sizeof(T);
          wrong += theirs[i] != (at < bytes ? source[at] : 0xa5);
        }
        for (std::uint64_t i = 0; i < back.size(); ++i) wrong += back[i] != (i < bytes ? source[i] : 0x5a);
      }
  EXPECT_EQ(0U, wrong) << sizeof(T);
}
TEST(InKernelCopies, OfElementsOfAnySizeAreWhole) {
  puts_and_gets_elements<char>();
  puts_and_gets_elements<std::uint16_t>();
  puts_and_gets_elements<Rgb>();
  puts_and_gets_elements<float>();
  puts_and_gets_elements<std::uint64_t>();
  puts_and_gets_elements<Pair>();
}

TEST(InKernelCopies, WithStridesGoElementByElement) {
  const Team team(2);
  team.play({1, 3}, [&](const Player& crew, const ist_team_view& view) {
    auto* const mine = reinterpret_cast<std::int32_t*>(team.room(view.pe));
    if (crew.thread == 0)
      for (int i = 0; i < 300; ++i) mine[i] = 1000 * view.pe + i, mine[300 + i] = mine[600 + i] = -1;
    EXPECT_EQ(Status::ok, barrier(crew, view, kDeadline));
    put_strided(crew, view, mine + 300, mine, 3, 2, 90, 1 - view.pe);
    get_strided(crew, view, mine + 899, mine, -3, 2, 90, 1 - view.pe);
    EXPECT_EQ(Status::ok, barrier(crew, view, kDeadline));
    const int theirs = 1000 * (1 - view.pe);
    for (int i = 0; i < 300 && crew.thread == 0; ++i) {
      EXPECT_EQ(i % 3 == 0 && i / 3 < 90 ? theirs + i / 3 * 2 : -1, mine[300 + i]) << i;
      EXPECT_EQ(i % 3 == 0 && i / 3 < 90 ? theirs + i / 3 * 2 : -1, mine[899 - i]) << i;
    }
  });
}

TEST(InKernelCopies, OfOneElementGoBothWays) {
  const Team team(3);
  team.play({1, 1}, [&](const Player& crew, const ist_team_view& view) {
    auto* const mine = reinterpret_cast<double*>(team.room(view.pe));
    p(view, mine + 1, 2.5 + view.pe, (view.pe + 1) % 3);
    mine[0] = 7.0 + view.pe;
    EXPECT_EQ(Status::ok, barrier(crew, view, kDeadline));
    EXPECT_EQ(2.5 + (view.pe + 2) % 3, mine[1]);
    EXPECT_EQ(7.0 + (view.pe + 2) % 3, g(view, mine, (view.pe + 2) % 3));
  });
}

// Every thread of every PE on the same words.
template <class T>
void hammer() {
  const Team team(3);
  constexpr int kTimes = 500;
  team.play({1, 2}, [&](const Player& crew, const ist_team_view& view) {
    auto* const words = reinterpret_cast<T*>(team.room(view.pe));
    const unsigned number = static_cast<unsigned>(view.pe) * 2 + crew.thread;
    for (int i = 0; i < kTimes; ++i) {
      atomic_inc(view, words, 0);
      static_cast<void>(atomic_fetch_inc(view, words, 0));
      atomic_add(view, words + 1, static_cast<T>(number), 2);
      T before = atomic_fetch(view, words + 2, 1), found{};
      while ((found = atomic_compare_swap(view, words + 2, before, static_cast<T>(before + 1), 1)) != before) before = found;
    }
    atomic_or(view, words + 3, static_cast<T>(T{1} << number), 0);
    atomic_xor(view, words + 4, static_cast<T>(T{1} << number), 0);
    static_cast<void>(atomic_fetch_and(view, words + 5, static_cast<T>(~(T{1} << number)), 0));
    if (number == 0) {
      atomic_set(view, words + 6, T{41}, 1);
      EXPECT_EQ(T{41}, atomic_swap(view, words + 6, T{42}, 1));
      EXPECT_EQ(T{42}, atomic_fetch_or(view, words + 6, T{1}, 1));
      EXPECT_EQ(T{43}, atomic_fetch_xor(view, words + 6, T{1}, 1));
    }
    EXPECT_EQ(Status::ok, barrier(crew, view, kDeadline));
  });
  const auto* const at_0 = reinterpret_cast<T*>(team.room(0));
  EXPECT_EQ(T{2 * kTimes * 6}, at_0[0]);
  EXPECT_EQ(T{kTimes * (0 + 1 + 2 + 3 + 4 + 5)}, reinterpret_cast<T*>(team.room(2))[1]);
  EXPECT_EQ(T{kTimes * 6}, reinterpret_cast<T*>(team.room(1))[2]);
  EXPECT_EQ(T{63}, at_0[3]);
  EXPECT_EQ(T{63}, at_0[4]);
  EXPECT_EQ(T{0}, at_0[5]);
  EXPECT_EQ(T{42}, reinterpret_cast<T*>(team.room(1))[6]);
}

TEST(InKernelAtomics, OfFourAndEightBytesLoseNothing) {
  hammer<std::int32_t>();
  hammer<std::uint32_t>();
  hammer<std::int64_t>();
  hammer<std::uint64_t>();
}

// One of the three in turn, of sizes that differ, with delays; `pes` of them.
std::uint64_t wrong_calls(int pes, Shape shape, std::uint32_t first, std::uint32_t count) {
  const Team team(pes);
  for (int pe = 0; pe < pes; ++pe) {
    control_of(team.view(pe), pe).calls = first;
    for (int other = 0; other < pes; ++other) control_of(team.view(pe), pe).peers[other].finished = first;
  }
  std::atomic<std::uint64_t> wrong{0};
  team.play(shape, [&](const Player& crew, const ist_team_view& view) {
    auto* const mine = reinterpret_cast<std::int32_t*>(team.room(view.pe));
    auto* const all = mine + 16384;
    for (std::uint32_t n = 1; n <= count; ++n) {
      const std::uint32_t each = 1 + static_cast<std::uint32_t>(mixed(5, n, 0)) % (n % 8 == 0 ? 1024 : 40);
      const std::uint32_t have = n % 3 == 2 ? each * static_cast<std::uint32_t>(pes) : each;
      const auto value = [&](int pe, std::uint32_t i) {
        return static_cast<std::int32_t>(mixed(static_cast<std::uint64_t>(pe), n, i) % 100000) - 50000;
      };
      for (std::uint32_t i = thread_of(crew); i < have; i += threads_of(crew)) mine[i] = value(view.pe, i);
      meet(crew, view);
      dawdle(view.pe, n, thread_of(crew));
      const int root = static_cast<int>(n / 3 % static_cast<std::uint32_t>(pes));
      Status status = Status::ok;
      if (n % 3 == 0) status = allreduce<Sum>(crew, view, all, mine, each, kDeadline);
      if (n % 3 == 1) status = broadcast(crew, view, all, mine, each * 4, root, kDeadline);
      if (n % 3 == 2) status = alltoall(crew, view, all, mine, each * 4, kDeadline);
      if (status != Status::ok) wrong += 1000000;
      // Seen by other threads than those that stored it; and sources are changed.
      for (std::uint32_t i = threads_of(crew) - 1 - thread_of(crew); i < have; i += threads_of(crew)) {
        mine[i] = -1;
        std::int32_t wanted = 0;
        if (n % 3 == 0)
          for (int pe = 0; pe < pes; ++pe) wanted += value(pe, i);
        if (n % 3 == 1) wanted = value(root, i);
        if (n % 3 == 2) wanted = value(static_cast<int>(i / each), i % each + static_cast<std::uint32_t>(view.pe) * each);
        wrong += all[i] != wanted;
      }
      meet(crew, view);
    }
  });
  return wrong.load();
}

TEST(InKernelCalls, GiveWhatASerialProgramFinds) {
  EXPECT_EQ(0U, wrong_calls(1, {1, 1}, 0, 60));
  EXPECT_EQ(0U, wrong_calls(2, {1, 1}, 0, 1500));
  EXPECT_EQ(0U, wrong_calls(2, {1, 3}, 0, 500));
  EXPECT_EQ(0U, wrong_calls(4, {1, 2}, 0, 300));
  EXPECT_EQ(0U, wrong_calls(3, {1, 1}, kCleaning - 30, 120)) << "slots are cleaned, and numbers come again";
  EXPECT_EQ(0U, wrong_calls(3, {1, 1}, 0U - 30, 120));
}

TEST(InKernelCalls, GiveTheSameToAGrid) {
  EXPECT_EQ(0U, wrong_calls(1, {3, 1}, 0, 60));
  EXPECT_EQ(0U, wrong_calls(2, {2, 2}, 0, 300));
  EXPECT_EQ(0U, wrong_calls(3, {2, 1}, 0, 200));
  EXPECT_EQ(0U, wrong_calls(2, {2, 2}, kCleaning - 30, 90)) << "slots are cleaned, and numbers come again";
  EXPECT_EQ(0U, wrong_calls(2, {3, 1}, 0U - 30, 90));
}

TEST(InKernelCalls, BroadcastArrivesWhereSourceAndResultAreOne) {
  const Team team(3);
  team.play({1, 2}, [&](const Player& crew, const ist_team_view& view) {
    auto* const mine = reinterpret_cast<std::uint64_t*>(team.room(view.pe));
    for (int root = 0; root < 3; ++root) {
      for (std::uint64_t i = crew.thread; i < 100; i += crew.threads)
        mine[i] = mixed(static_cast<std::uint64_t>(view.pe), 6, i);
      crew.sync();
      EXPECT_EQ(Status::ok, broadcast(crew, view, mine, mine, 800, root, kDeadline));
      for (std::uint64_t i = crew.thread; i < 100; i += crew.threads)
        EXPECT_EQ(mixed(static_cast<std::uint64_t>(root), 6, i), mine[i]) << root;
      crew.sync();
    }
  });
}

TEST(InKernelCalls, MinimumAndMaximumOfEveryElementAndTheSameBitsEverywhere) {
  const Team team(3);
  team.play({1, 2}, [&](const Player& crew, const ist_team_view& view) {
    auto* const mine = reinterpret_cast<double*>(team.room(view.pe));
    for (unsigned i = crew.thread; i < 33; i += crew.threads) mine[i] = (view.pe * 7 + static_cast<int>(i)) % 5 - 2.25;
    crew.sync();
    Calls<Player> calls(crew, view);
    EXPECT_EQ(Status::ok, calls.allreduce<Min>(mine + 64, mine, 33, kDeadline));
    EXPECT_EQ(Status::ok, calls.allreduce<Max>(mine + 128, mine, 33, kDeadline));
    // In place, and of numbers whose sum depends on the order.
    for (unsigned i = crew.thread; i < 33; i += crew.threads) mine[i] = view.pe == 1 ? 1e17 : 1.0 + view.pe;
    crew.sync();
    EXPECT_EQ(Status::ok, calls.allreduce<Sum>(mine, mine, 33, kDeadline));
    for (unsigned i = crew.thread; i < 33; i += crew.threads) {
      double least = 99, most = -99;
      for (int pe = 0; pe < 3; ++pe) {
        const double one = (pe * 7 + static_cast<int>(i)) % 5 - 2.25;
        least = std::min(least, one);
        most = std::max(most, one);
      }
      EXPECT_EQ(least, mine[64 + i]);
      EXPECT_EQ(most, mine[128 + i]);
      EXPECT_EQ((1.0 + 1e17) + 3.0, mine[i]) << "in the order of PEs";
    }
  });
}

TEST(InKernelCalls, ThatAreTooLongOrOfTooManyBlocksAreMisuse) {
  const Team team(1);
  std::vector<double> many(2000);
  team.play({1, 1}, [&](const Player& crew, const ist_team_view& view) {
    EXPECT_EQ(Status::misuse, allreduce<Sum>(crew, view, many.data(), many.data(), kCallBytes / 8 + 1));
    EXPECT_EQ(Status::misuse, broadcast(crew, view, many.data(), many.data(), 8, 1));
    EXPECT_EQ(Status::misuse, alltoall(crew, view, many.data(), many.data() + 1000, kCallBytes + 1));
    EXPECT_EQ(Status::ok, allreduce<Sum>(crew, view, many.data(), many.data(), kCallBytes / 8));
  });
  // Nobody waits for anybody: a thread of one block says so.
  const ist_team_view view = team.view(0);
  auto* const words = reinterpret_cast<std::uint64_t*>(team.room(0));
  const Player crew{0, 1, 0, kMaxBlocks + 1, nullptr};
  EXPECT_EQ(Status::misuse, broadcast(crew, view, many.data(), many.data(), 8, 0));
  EXPECT_EQ(Status::misuse, send(crew, view, 0, 0, many.data(), 8, 1));
  EXPECT_EQ(Status::misuse, receive(crew, view, 0, 0, many.data(), 8, 1));
  EXPECT_EQ(Status::misuse, agreed(crew, view, Status::ok));
  many[0] = 5;
  EXPECT_EQ(Status::misuse, put_signal(crew, view, words + 1, many.data(), 8, words, 1, Signal::set, 0));
  EXPECT_EQ(0U, words[0]);
  EXPECT_EQ(0U, words[1]) << "nothing was put";
}

}  // namespace
