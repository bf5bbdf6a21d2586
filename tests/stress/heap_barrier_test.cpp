// The barrier of symmetric heaps among threads, each of which stands for a PE: what all put before it is there behind it, and nothing of
// what comes next. Under ThreadSanitizer nothing but the barrier's words orders the data, which are no atomics.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "heap/flag_barrier.hpp"
#include "heap/word.hpp"

namespace ist {
namespace {

constexpr std::size_t kPlane = 16;  // words that each PE puts at each
constexpr int kEpochs = 1500;

struct alignas(64) Line {
  std::byte bytes[FlagBarrier::kLine];
};

class Team {
 public:
  explicit Team(int pes)
      : pes_(pes), words_(static_cast<std::size_t>(pes * pes)), planes_(static_cast<std::size_t>(pes * pes) * kPlane) {
    std::memset(words_.data(), 0, words_.size() * sizeof(Line));
  }
  FlagBarrier barrier(int pe) { return {words_.data()->bytes, FlagBarrier::size(pes_), Pe{pe}, pes_}; }
  std::uint64_t* plane(int at, int of) { return &planes_[static_cast<std::size_t>(at * pes_ + of) * kPlane]; }

 private:
  int pes_;
  std::vector<Line> words_;
  std::vector<std::uint64_t> planes_;
};

void wait(FlagBarrier& barrier, int pes) {
  barrier.check_in();
  for (int missing = 0; (missing = barrier.first_missing(missing)) < pes;) std::this_thread::yield();
}

void run_pe(Team& team, int pe, int pes, int& wrong) {
  FlagBarrier barrier = team.barrier(pe);
  std::mt19937 random(static_cast<unsigned>(pe) + 1);
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    for (int at = 0; at < pes; ++at)
      for (std::size_t i = 0; i < kPlane; ++i) team.plane(at, pe)[i] = static_cast<std::uint64_t>(epoch * 100 + pe);
    if (random() % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 50));
    wait(barrier, pes);
    for (int of = 0; of < pes; ++of)
      for (std::size_t i = 0; i < kPlane; ++i)
        if (team.plane(pe, of)[i] != static_cast<std::uint64_t>(epoch * 100 + of)) ++wrong;
    wait(barrier, pes);
  }
}

TEST(HeapBarrier, KeepsEveryEpochOfEveryPeApart) {
  for (const int pes : {1, 2, 3, 4}) {
    Team team{pes};
    std::vector<int> wrong(static_cast<std::size_t>(pes), 0);
    std::vector<std::thread> threads;
    for (int pe = 0; pe < pes; ++pe)
      threads.emplace_back([&, pe] { run_pe(team, pe, pes, wrong[static_cast<std::size_t>(pe)]); });
    for (std::thread& each : threads) each.join();
    for (const int each : wrong) EXPECT_EQ(0, each) << pes << " PEs";
  }
}

// A signal's word is all that orders the bytes before it, and adds of several lose nothing.
TEST(HeapWords, ASignalOrdersWhatWasPutBeforeIt) {
  constexpr int kWriters = 3;
  alignas(8) std::byte word[8] = {};
  std::vector<std::uint64_t> bytes(kWriters, 0);
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w)
    writers.emplace_back([&, w] {
      for (int i = 0; i < 1000; ++i) change<std::uint64_t>(word, IST_ATOMIC_ADD, 0);
      bytes[static_cast<std::size_t>(w)] = 7;
      change<std::uint64_t>(word, IST_ATOMIC_ADD, 1);
    });
  while (!compares(read_word(word, 8), word_type(IST_UINT64), IST_COMPARE_GE, kWriters)) std::this_thread::yield();
  for (const std::uint64_t each : bytes) EXPECT_EQ(7U, each);
  for (std::thread& each : writers) each.join();
}

}  // namespace
}  // namespace ist
