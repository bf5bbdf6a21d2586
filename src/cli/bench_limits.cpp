#include "cli/bench_limits.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

namespace ist::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

bool move_to(int processor) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(static_cast<std::size_t>(processor), &mask);
  return sched_setaffinity(0, sizeof mask, &mask) == 0;
}

// Two words on lines of their own, far enough apart that prefetching one does not take the other along.
struct Lines {
  alignas(128) std::atomic<std::uint32_t> there{0};
  alignas(128) std::atomic<std::uint32_t> back{0};
};

double cache_line_us(int other_processor) {
  constexpr std::uint32_t kTrips = 2000;
  constexpr std::uint32_t kBatches = 51;
  const int mine = sched_getcpu();
  if (mine < 0 || other_processor < 0 || mine == other_processor) return 0;
  Lines lines;
  std::atomic<int> placed{0};  // 1: the partner is on its processor, -1: it may not go there
  std::thread partner([&] {
    const bool moved = move_to(other_processor);
    placed.store(moved ? 1 : -1, std::memory_order_release);
    if (!moved) return;
    for (std::uint32_t n = 1; n <= kTrips * kBatches; ++n) {
      while (lines.there.load(std::memory_order_acquire) != n) {
      }
      lines.back.store(n, std::memory_order_release);
    }
  });
  while (placed.load(std::memory_order_acquire) == 0) std::this_thread::yield();
  std::vector<double> times;
  if (placed.load(std::memory_order_acquire) == 1) {
    for (std::uint32_t batch = 0; batch < kBatches; ++batch) {
      const auto start = Clock::now();
      for (std::uint32_t n = batch * kTrips + 1; n <= (batch + 1) * kTrips; ++n) {
        lines.there.store(n, std::memory_order_release);
        while (lines.back.load(std::memory_order_acquire) != n) {
        }
      }
      times.push_back(seconds_since(start) * 1e6 / (2.0 * kTrips));
    }
  }
  partner.join();
  return times.empty() ? 0 : median(times);
}

double memcpy_gbps(std::size_t bytes) {
  std::vector<std::byte> from(bytes, std::byte{1});
  std::vector<std::byte> to(bytes, std::byte{2});
  std::vector<double> times;
  for (int n = 0; n < 7; ++n) {
    const auto start = Clock::now();
    std::memcpy(to.data(), from.data(), bytes);
    // The copy must not be moved out of the timed stretch, nor left out.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    times.push_back(seconds_since(start));
    from[static_cast<std::size_t>(n)] = to[bytes - 1];
  }
  return static_cast<double>(bytes) / median(times) / 1e9;
}

}  // namespace

Limits measure_limits(int other_processor) {
  Limits limits;
  limits.cache_line_us = cache_line_us(other_processor);
  limits.memcpy_bytes = 64 << 20;
  limits.memcpy_gbps = memcpy_gbps(limits.memcpy_bytes);
  return limits;
}

}  // namespace ist::cli
