#include "cli/bench_limits.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace ist::cli {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::size_t kWindowLines = 64;
// How often one limit is measured, and for how many seconds at most: a busy machine gets fewer repetitions.
struct Effort {
  std::size_t batches;
  std::size_t copies;
  double longest;
};
constexpr Effort kWhole{201, 7, 0.3};
constexpr Effort kBrief{11, 2, 0.03};

double seconds_since(Steady::time_point start) { return std::chrono::duration<double>(Steady::now() - start).count(); }

bool move_to(int processor) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(static_cast<std::size_t>(processor), &mask);
  return sched_setaffinity(0, sizeof mask, &mask) == 0;
}

constexpr std::uint32_t kStop = 0xffffffff;

// Words on lines of their own, far enough apart that prefetching one does not take the other along; those of a window side by side, as
// slots are.
struct Lines {
  struct alignas(64) Line {
    std::atomic<std::uint32_t> word{0};
  };
  alignas(128) std::array<Line, kWindowLines> there{};
  alignas(128) std::atomic<std::uint32_t> back{0};
};

// Answers every window of so many lines on its own processor until it is told to stop.
void answer(Lines& lines, std::size_t window) {
  for (std::uint32_t next = 1;; ++next) {
    for (std::size_t n = 0; n < window; ++n) {
      std::uint32_t now = 0;
      while ((now = lines.there[n].word.load(std::memory_order_acquire)) != next)
        if (now == kStop) return;
    }
    lines.back.store(next, std::memory_order_release);
  }
}

// Microseconds from a window of lines to its answer; 0: no processor for the other side.
double window_us(int other_processor, std::size_t window, const Effort& effort) {
  constexpr std::uint32_t kTrips = 500;
  const int mine = sched_getcpu();
  if (mine < 0 || other_processor < 0 || mine == other_processor) return 0;
  Lines lines;
  std::vector<double> times;
  const auto measure = [&] {
    std::uint32_t trip = 0;
    const auto begin = Steady::now();
    while (times.empty() || (times.size() < effort.batches && seconds_since(begin) < effort.longest)) {
      const auto start = Steady::now();
      for (std::uint32_t n = 0; n < kTrips; ++n) {
        ++trip;
        for (std::size_t at = 0; at < window; ++at) lines.there[at].word.store(trip, std::memory_order_release);
        while (lines.back.load(std::memory_order_acquire) != trip) {
        }
      }
      times.push_back(seconds_since(start) * 1e6 / kTrips);
    }
    lines.there[0].word.store(kStop, std::memory_order_release);
  };
  return beside_partner(
             other_processor, [&] { answer(lines, window); }, measure)
             ? median(times)
             : 0;
}

double memcpy_gbps(std::size_t bytes, const Effort& effort) {
  std::vector<std::byte> from(bytes, std::byte{1});
  std::vector<std::byte> to(bytes, std::byte{2});
  std::vector<double> times;
  const auto begin = Steady::now();
  for (std::size_t n = 0; n < effort.copies && (n == 0 || seconds_since(begin) < effort.longest); ++n) {
    const auto start = Steady::now();
    std::memcpy(to.data(), from.data(), bytes);
    // The copy must not be moved out of the timed stretch, nor left out.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    times.push_back(seconds_since(start));
    from[n] = to[bytes - 1];
  }
  return static_cast<double>(bytes) / median(times) / 1e9;
}

}  // namespace

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

bool beside_partner(int other_processor, const std::function<void()>& partner, const std::function<void()>& measure) {
  std::atomic<int> placed{0};  // 1: the partner is on its processor, -1: it may not go there
  std::thread other([&] {
    const bool moved = move_to(other_processor);
    placed.store(moved ? 1 : -1, std::memory_order_release);
    if (moved) partner();
  });
  while (placed.load(std::memory_order_acquire) == 0) std::this_thread::yield();
  const bool there = placed.load(std::memory_order_acquire) == 1;
  if (there) measure();
  other.join();
  return there;
}

Pages take_pages(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  const std::size_t whole = (bytes / kPage + 1) * kPage;
  Pages pages{static_cast<std::byte*>(std::aligned_alloc(kPage, whole))};
  if (pages) std::memset(pages.get(), 1, whole);
  return pages;
}

double cache_lines_us(int other_processor) {
  return window_us(other_processor, kWindowLines, kWhole) / static_cast<double>(kWindowLines);
}

double warm_memcpy_gbps(std::size_t bytes) {
  // A batch is long beside the clock; all of them are short beside the row.
  constexpr std::size_t kBatchBytes = 1 << 20;
  constexpr std::size_t kFewest = 8;
  constexpr std::size_t kMost = 2000;
  constexpr std::size_t kBatches = 101;
  constexpr double kShort = 0.02;
  const auto from = take_pages(bytes);
  const auto to = take_pages(bytes);
  if (bytes == 0 || !from || !to) return 0;
  // Through a pointer that may change at any time, no copy is left out or done at once with the one before.
  void* (*volatile copy)(void*, const void*, std::size_t) = std::memcpy;
  const std::size_t each = std::clamp(kBatchBytes / bytes, kFewest, kMost);
  for (std::size_t n = 0; n < each; ++n) copy(to.get(), from.get(), bytes);
  std::vector<double> times;
  const auto begin = Steady::now();
  while (times.empty() || (times.size() < kBatches && seconds_since(begin) < kShort)) {
    const auto start = Steady::now();
    for (std::size_t n = 0; n < each; ++n) copy(to.get(), from.get(), bytes);
    times.push_back(seconds_since(start) / static_cast<double>(each));
  }
  return static_cast<double>(bytes) / median(times) / 1e9;
}

Limits measure_limits(int other_processor, bool briefly) {
  const Effort& effort = briefly ? kBrief : kWhole;
  Limits limits;
  limits.processor = sched_getcpu();
  limits.other_processor = other_processor;
  limits.cache_line_us = window_us(other_processor, 1, effort) / 2;
  limits.memcpy_bytes = 64 << 20;
  limits.memcpy_gbps = memcpy_gbps(limits.memcpy_bytes, effort);
  return limits;
}

}  // namespace ist::cli
