// What the programs of peers have in common, whatever library they time: ranks that are forked before any of them touches CUDA, a board
// that they share, and how a row is printed.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

namespace peers {

constexpr int kMostCalls = 1000;

// In memory that all ranks share: where they wait for each other.
struct MeetingPlace {
  std::atomic<int> arrived{0};
  std::atomic<int> round{0};

  void meet(int ranks) {
    const int now = round.load();
    if (arrived.fetch_add(1) + 1 == ranks) {
      arrived = 0;
      round = now + 1;
    } else {
      while (round.load() == now) {
      }
    }
  }
};

inline double percentile(const std::vector<double>& sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (position - std::floor(position));
}

// One of the "rows" of a program's JSON object.
inline void print_row(bool first, const char* benchmark, const char* way, std::size_t bytes, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  std::printf(
      "%s\n {\"benchmark\": \"%s\", \"way\": \"%s\", \"bytes\": %zu, \"median_us\": %.4f, \"p10_us\": %.4f, \"p90_us\": "
      "%.4f}",
      first ? "" : ",", benchmark, way, bytes, percentile(times, 0.5), percentile(times, 0.1), percentile(times, 0.9));
}

// A board that ranks forked later share; null where there is no memory.
template <class Board>
Board* shared_board() {
  void* shared = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return shared == MAP_FAILED ? nullptr : new (shared) Board;
}

// Every rank as a process of its own, in which be_rank(rank) gives the status. 1: some failed.
template <class BeRank>
int fork_ranks(int ranks, BeRank be_rank) {
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      const int status = be_rank(rank);
      std::fflush(stdout);
      _exit(status);
    }
    children.push_back(child);
  }
  int failed = 0;
  for (std::size_t ended = 0; ended < children.size(); ++ended) {
    int status = 0;
    wait(&status);
    if (status == 0) continue;
    failed = 1;
    for (const pid_t child : children) kill(child, SIGTERM);  // they would wait for it
  }
  return failed;
}

}  // namespace peers
