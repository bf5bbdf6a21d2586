// jacobi's kernels, played by the processor over the fake driver: each launch is a host function in its stream, so that exchanges, graphs, norms
// and heaps between processes are run where there is no GPU. The kernels' own code is not.
#include <sched.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "fake_cuda/fake_cuda.h"
#include "isthmus/device/move.cuh"
#include "jacobi/kernels.hpp"
#include "played_driver.hpp"

namespace {

using played::host, played::number_of, played::post;
using namespace jacobi;

Sweep on_host(Sweep sweep) {
  sweep.from = host(const_cast<float*>(sweep.from));
  sweep.to = host(sweep.to);
  sweep.beside_up = host(sweep.beside_up);
  sweep.beside_down = host(sweep.beside_down);
  sweep.sum = host(sweep.sum);
  sweep.cleared = host(sweep.cleared);
  return sweep;
}

void play_row(const Sweep& sweep, int y, float& sum) {
  const float* const here = sweep.from + y * sweep.pitch;
  float* const to = sweep.to + y * sweep.pitch;
  for (std::int64_t x = 1; x < sweep.columns - 1; ++x) {
    to[x] = sweep.factor * (here[x - 1] + here[x + 1] + here[x - sweep.pitch] + here[x + sweep.pitch]);
    sum += (to[x] - here[x]) * (to[x] - here[x]);
  }
  const auto copy = [&](float* beside) {
    if (beside != nullptr) std::memcpy(beside, to, static_cast<std::size_t>(sweep.columns) * sizeof(float));
  };
  if (y == 1) copy(sweep.beside_up);
  if (y == sweep.rows) copy(sweep.beside_down);
}

// Two streams may add at once.
void add_to(float* sum, float value) {
  auto& word = *reinterpret_cast<std::uint32_t*>(sum);
  std::uint32_t before = __atomic_load_n(&word, __ATOMIC_ACQUIRE);
  while (!__atomic_compare_exchange_n(&word, &before, std::bit_cast<std::uint32_t>(std::bit_cast<float>(before) + value),
                                      false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
  }
}

void play(const Sweep& sweep, Share share) {
  float sum = 0;
  const auto outermost = [&](int y) { return y == 1 || y == sweep.rows; };
  for (int y = 1; y <= sweep.rows; ++y)
    if (share == Share::all || outermost(y) == (share == Share::sides)) play_row(sweep, y, sum);
  if (share != Share::interior && sweep.cleared != nullptr) *sweep.cleared = 0;
  if (sweep.sum != nullptr) add_to(sweep.sum, sum);
}

// Others, with addresses of the processor's.
struct Peers {
  int pe, pes;
  std::uint64_t *flags, *flag_above, *flag_below, *failure;
  std::uint64_t* inbox;
  std::vector<std::uint64_t*> inboxes;  // of all PEs
  explicit Peers(const Others& of) : pe(of.view.pe), pes(of.view.pes) {
    flags = host(of.flags);
    flag_above = host(ist::device::peer_ptr(of.view, of.flags + 1, of.up));
    flag_below = host(ist::device::peer_ptr(of.view, of.flags, of.down));
    failure = host(of.failure);
    inbox = host(of.inbox);
    for (int other = 0; other < pes; ++other) inboxes.push_back(host(ist::device::peer_ptr(of.view, of.inbox, other)));
  }
  template <class Is>
  bool await(const Is& is, std::uint64_t step, Awaited what) const {
    const auto begun = std::chrono::steady_clock::now();
    while (!is()) {
      if (std::chrono::steady_clock::now() - begun > std::chrono::nanoseconds(kDeadline)) {
        __atomic_store_n(failure, step << 8 | static_cast<std::uint64_t>(what) << 4 | 2U, __ATOMIC_RELEASE);
        return false;
      }
      sched_yield();
    }
    return true;
  }
  bool rows_are_here(std::uint64_t step) const {
    const auto has = [&](int side) {
      return [this, side, step] { return __atomic_load_n(&flags[side], __ATOMIC_ACQUIRE) >= step - 1; };
    };
    return await(has(0), step, Awaited::above) && await(has(1), step, Awaited::below);
  }
  void tell_neighbours(std::uint64_t step) const {
    __atomic_store_n(flag_above, step, __ATOMIC_RELEASE);
    __atomic_store_n(flag_below, step, __ATOMIC_RELEASE);
  }
  void tell_sum(std::uint64_t step, std::uint64_t number, float sum) const {
    for (std::uint64_t* const there : inboxes)
      __atomic_store_n(there + number % kRing * static_cast<unsigned>(pes) + pe,
                       step << 32 | std::bit_cast<std::uint32_t>(sum), __ATOMIC_RELEASE);
  }
  bool sum_of_all(std::uint64_t step, std::uint64_t number, float& sum) const {
    sum = 0;
    for (int other = 0; other < pes; ++other) {
      const std::uint64_t* const packet = inbox + number % kRing * static_cast<unsigned>(pes) + other;
      if (!await([&] { return __atomic_load_n(packet, __ATOMIC_ACQUIRE) >> 32 == step; }, step, Awaited::norm)) return false;
      sum += std::bit_cast<float>(static_cast<std::uint32_t>(__atomic_load_n(packet, __ATOMIC_ACQUIRE)));
    }
    return true;
  }
  void add_norm(const Norm& norm, const float* mine, std::uint64_t* published) const {
    tell_sum(norm.step, norm.number, *mine);
    float sum = 0;
    if (sum_of_all(norm.step, norm.number, sum))
      __atomic_store_n(published, norm.step << 32 | std::bit_cast<std::uint32_t>(sum), __ATOMIC_RELEASE);
  }
};

void play_all(const Job& job, const Cells& cells, const std::vector<float*>& beside, const Peers& peers, Outcome& outcome) {
  float sum = 0, last = 0;
  for (int n = 1;; ++n) {
    const std::uint64_t step = job.steps + static_cast<unsigned>(n);
    const auto number = [&](int iteration) { return job.norms + static_cast<unsigned>(iteration / job.nccheck); };
    sum = 0;
    const auto to = static_cast<std::size_t>(n % 2);
    if (!peers.rows_are_here(step)) return;
    play({cells.levels[1 - to], cells.levels[to], beside[to], beside[2 + to], cells.pitch, cells.columns, cells.rows,
          job.height, job.fine_rows, job.factor, &sum, nullptr},
         Share::all);
    peers.tell_neighbours(step);
    const auto hears = [&](int iteration) {
      if (!peers.sum_of_all(job.steps + static_cast<unsigned>(iteration), number(iteration), last)) return false;
      outcome.norm = std::sqrt(last);
      if (iteration == 1) outcome.first_norm = outcome.norm;
      return static_cast<double>(outcome.norm) <= job.tolerance;
    };
    outcome.run = outcome.iterations = n;
    const bool ends = n > 1 && (n - 1) % job.nccheck == 0 && hears(n - 1);
    if (n % job.nccheck == 0) peers.tell_sum(step, number(n), sum);
    if (ends) --outcome.iterations;
    if (!ends && n == job.iterations && n % job.nccheck == 0) hears(n);
    if (ends || n == job.iterations) return;
  }
}

}  // namespace

namespace jacobi {

void launch_sweep(const Sweep& sweep, Share share, int /*batch*/, cudaStream_t stream) {
  post(stream, [=, here = on_host(sweep)] { play(here, share); });
}
void launch_step(const Sweep& sweep, const Others& others, std::uint64_t step, const Norm* before, int /*batch*/,
                 cudaStream_t stream) {
  const Norm norm = before != nullptr ? *before : Norm{};
  post(stream, [=, here = on_host(sweep), peers = Peers(others), mine = host(const_cast<float*>(norm.sum)),
                published = host(norm.published), adds = before != nullptr] {
    if (!peers.rows_are_here(step)) return;
    play(here, Share::all);
    peers.tell_neighbours(step);
    if (adds) peers.add_norm(norm, mine, published);
  });
}
void launch_norm(const Others& others, const Norm& norm, cudaStream_t stream) {
  post(stream, [=, peers = Peers(others), mine = host(const_cast<float*>(norm.sum)), published = host(norm.published)] {
    peers.add_norm(norm, mine, published);
  });
}
void launch_publish(const float* total, std::uint32_t* times, std::uint64_t* published, cudaStream_t stream) {
  post(stream, [all = host(const_cast<float*>(total)), count = host(times), to = host(published)] {
    const std::uint64_t stamp = ++*count;
    __atomic_store_n(to, stamp << 32 | std::bit_cast<std::uint32_t>(*all), __ATOMIC_RELEASE);
  });
}
void launch_fill(const Cells& cells, const float* edges, cudaStream_t stream) {
  post(stream, [=, first = host(cells.levels[0]), second = host(cells.levels[1]), sides = host(const_cast<float*>(edges))] {
    for (int y = 0; y < cells.rows + 2; ++y)
      for (int x = 0; x < cells.pitch; ++x)
        first[y * cells.pitch + x] = second[y * cells.pitch + x] = x == 0 || x == cells.columns - 1 ? sides[y] : 0;
  });
}
void launch_copy(float* to, const float* from, std::int64_t floats, cudaStream_t stream) {
  post(stream, [floats, there = host(to), here = host(const_cast<float*>(from))] {
    std::memcpy(there, here, static_cast<std::size_t>(floats) * sizeof(float));
  });
}
void launch_persistent(const Job& job, int /*batch*/, cudaStream_t stream) {
  Cells cells = job.cells;
  std::vector<float*> beside;
  for (float*& level : cells.levels) level = host(level);
  for (float* const row : {job.beside_up[0], job.beside_up[1], job.beside_down[0], job.beside_down[1]})
    beside.push_back(host(row));
  post(stream,
       [=, peers = Peers(job.others), outcome = host(job.outcome)] { play_all(job, cells, beside, peers, *outcome); });
}

}  // namespace jacobi
