// Kernels that change words of heaps in host memory, by their processes' proxies, while hosts change them too; a process for each PE. Only what
// waits for another PE's kernel needs a GPU for each.
#include <isthmus/heap.h>
#include <isthmus/device/host_words.cuh>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "../ranks/forked_ranks.hpp"
#include "heap_kernels.hpp"
#include "held_target.hpp"
#include "shorter.hpp"

namespace {

using namespace forked_ranks;
using namespace heap_kernels;

int wrong_in(const Here& here, const char* what, const Found& found, int status = 0) {
  if (found.wrong == 0 && found.status == status && found.refused.empty()) return 0;
  std::fprintf(stderr, "[%d] %s: %llu wrong, status %d instead of %d, %s\n", here.rank, what, found.wrong, found.status,
               status, found.refused.c_str());
  return 1;
}

// Of one rank: zeros in a heap of either kind, with the view for kernels.
struct Symmetric {
  int device = 0;
  ist_heap heap = IST_HEAP_NULL;
  ist_device_view view{};
  std::uint64_t* words = nullptr;  // for host code
  unsigned char* data = nullptr;
  bool made(const Here& here, ist_kind kind, int on) {
    device = on;
    void *some = nullptr, *more = nullptr;
    const bool fine = ist_heap_create(here.comm, kind, kind == IST_KIND_HOST ? 0 : device, 4 << 20, 0, &heap) == IST_OK &&
                      ist_heap_calloc(heap, kHostWords, 8, &some) == IST_OK &&
                      ist_heap_calloc(heap, 1 << 17, 1, &more) == IST_OK &&
                      ist_heap_device_view(heap, device, &view) == IST_OK;
    if (!fine) std::fprintf(stderr, "[%d] %s\n", here.rank, ist_error_text());
    words = static_cast<std::uint64_t*>(some);
    data = static_cast<unsigned char*>(more);
    return fine;
  }
  std::uint64_t* in_kernels() const { return ist::device::for_kernel(view, words); }
  int sum_is_not(const Here& here, int word, std::uint64_t wanted) const {
    std::uint64_t found = 0;
    if (ist_heap_atomic64(heap, IST_ATOMIC_FETCH, words + word, 0, &found, here.rank) == IST_OK && found == wanted) return 0;
    std::fprintf(stderr, "[%d] word %d is %llu instead of %llu (%s)\n", here.rank, word,
                 static_cast<unsigned long long>(found), static_cast<unsigned long long>(wanted), ist_error_text());
    return 1;
  }
  int end() { return ist_heap_destroy(&heap) == IST_OK ? 0 : 1; }
};

class HostHeap : public testing::Test {
 protected:
  void needs_gpus(int count) {
    gpus_ = devices();
    if (gpus_ < count)
      GTEST_SKIP() << "not covered here: kernels that change words of host memory; they need " << count << " CUDA device(s)";
  }
  int gpu_of(const Here& here) const { return here.rank % gpus_; }
  // A kernel that waits must not hold up the loading of the next one.
  Variables eager_{{"CUDA_MODULE_LOADING", "EAGER"}};
  int gpus_ = 0;
};

// One counter of each heap, host and CUDA, of every PE; from every host and every kernel at once.
TEST_F(HostHeap, CountsInBothHeapsWhatKernelsAndHostsAddAtOnce) {
  needs_gpus(1);
  if (IsSkipped()) return;
  const std::uint32_t by_kernels = 8 * shorter(500);
  const std::uint64_t by_hosts = shorter(2000000), to_devices = shorter(500);
  constexpr std::uint64_t kEach = 1000000007;
  expect_all_but(
      run_ranks(2, "host,cuda",
                [&](const Here& here) {
                  Symmetric host, cuda;
                  if (!host.made(here, IST_KIND_HOST, gpu_of(here)) || !cuda.made(here, IST_KIND_CUDA, gpu_of(here)))
                    return 50;
                  std::atomic<int> wrong{0};
                  // Once before, so that nothing is loaded while kernels run.
                  if (ist_heap_atomic64(cuda.heap, IST_ATOMIC_FETCH, cuda.words + 2, 0, nullptr, here.rank) != IST_OK)
                    ++wrong;
                  wrong += wrong_in(here, "a first launch",
                                    add_in_both(host.view, host.in_kernels(), cuda.view, cuda.words, host.device, 0));
                  if (ist_heap_barrier(host.heap) != IST_OK) ++wrong;
                  std::thread kernel([&] {
                    wrong +=
                        wrong_in(here, "add",
                                 add_in_both(host.view, host.in_kernels(), cuda.view, cuda.words, host.device, by_kernels));
                  });
                  for (std::uint64_t n = 0; n < by_hosts; ++n)
                    for (int pe = 0; pe < here.size; ++pe) {
                      if (ist_heap_atomic64(host.heap, IST_ATOMIC_ADD, host.words, kEach, nullptr, pe) != IST_OK) ++wrong;
                      if (n < to_devices &&
                          ist_heap_atomic64(cuda.heap, IST_ATOMIC_ADD, cuda.words + 2, kEach, nullptr, pe) != IST_OK)
                        ++wrong;
                    }
                  kernel.join();
                  if (ist_heap_barrier(host.heap) != IST_OK || ist_heap_barrier(cuda.heap) != IST_OK) ++wrong;
                  const auto pes = static_cast<std::uint64_t>(here.size);
                  constexpr std::uint64_t kThreads = std::uint64_t{kAdders} * kAddingBlocks;
                  wrong += host.sum_is_not(here, 0, pes * (by_hosts * kEach + kThreads * by_kernels));
                  wrong += cuda.sum_is_not(here, 2, pes * (to_devices * kEach + kThreads * by_kernels));
                  wrong += host.sum_is_not(here, 1, here.rank == 0 ? pes * kThreads * (by_kernels / 8) : 0);
                  if (ist_heap_barrier(host.heap) != IST_OK) ++wrong;
                  return wrong + host.end() + cuda.end();
                }),
      -1);
}

TEST_F(HostHeap, MakesEveryChangeThatKernelsAskFor) {
  needs_gpus(1);
  if (IsSkipped()) return;
  const std::uint32_t times = shorter(100), timed_times = shorter(5000);
  expect_all_but(run_ranks(2, "host,cuda",
                           [&](const Here& here) {
                             Symmetric host;
                             if (!host.made(here, IST_KIND_HOST, gpu_of(here))) return 50;
                             int wrong = wrong_in(here, "changes",
                                                  change_in_host_heap(host.view, host.in_kernels(), host.device, times));
                             if (ist_heap_barrier(host.heap) != IST_OK) ++wrong;
                             const auto pes = static_cast<std::uint64_t>(here.size);
                             wrong += host.sum_is_not(here, 2, here.rank == 0 ? pes * kChangers * times : 0);
                             wrong += host.sum_is_not(here, 17, ~std::uint64_t{});
                             const Found timed = time_in_host_heap(host.view, host.in_kernels(), host.device, timed_times);
                             wrong += wrong_in(here, "timed changes", timed);
                             std::fprintf(stderr, "[%d] a change that is answered: %lld ns; one that is not: %lld ns\n",
                                          here.rank, timed.first_ns, timed.second_ns);
                             if (ist_heap_barrier(host.heap) != IST_OK) ++wrong;
                             wrong += host.sum_is_not(here, 6, std::uint64_t{2} * timed_times);
                             return wrong + host.end();
                           }),
                 -1);
}

TEST_F(HostHeap, SignalsBehindTheBytesThatKernelsPut) {
  needs_gpus(2);
  if (IsSkipped()) return;
  expect_all_but(run_ranks(2, "host,cuda",
                           [&](const Here& here) {
                             Symmetric host;
                             if (!host.made(here, IST_KIND_HOST, gpu_of(here))) return 50;
                             const int wrong = wrong_in(here, "signals",
                                                        signal_in_host_heap(host.view, host.data + host.view.shift,
                                                                            host.in_kernels(), host.device, shorter(3000)));
                             return wrong + host.end();
                           }),
                 -1);
}

// As wait_for_host() in a kernel, by a processor, with no call of the library: its own loads and stores, and rank 0's word at `answer`.
int wait_as_host(const Here& here, unsigned char* data, std::uint64_t* words, std::uint64_t* answer, std::uint32_t epochs) {
  std::vector<unsigned char> wanted(kFromHost);
  for (std::uint32_t n = 1; n <= epochs; ++n) {
    const auto end = Clock::now() + std::chrono::seconds(10);
    while (std::atomic_ref(words[2]).load(std::memory_order_acquire) < n && Clock::now() < end) continue;
    fill_on_host(wanted.data(), kFromHost, 0, n);
    if (!std::equal(wanted.begin(), wanted.end(), data) || std::atomic_ref(words[0]).load() != held_word(n)) {
      std::fprintf(stderr, "[%d] epoch %u brought word %llu, or other bytes\n", here.rank, n,
                   static_cast<unsigned long long>(words[0]));
      return 1;
    }
    fill_on_host(data + kAnswered, kFromHost, 1, n);
    std::atomic_ref(*answer).store(n, std::memory_order_release);
  }
  return 0;
}

TEST(HostHeapOfHosts, NeedsNoCallOfAPeWhilePutsGetsAndChangesOfWordsReachIt) {
  const std::uint32_t epochs = shorter(2000);
  expect_all(run_ranks(2, "host", [&](const Here& here) {
    ist_heap heap = IST_HEAP_NULL;
    void *words = nullptr, *data = nullptr, *answer = nullptr;
    if (ist_heap_create(here.comm, IST_KIND_HOST, 0, 4 << 20, 0, &heap) != IST_OK ||
        ist_heap_calloc(heap, kHostWords, 8, &words) != IST_OK || ist_heap_calloc(heap, kData, 1, &data) != IST_OK ||
        ist_heap_pointer(heap, static_cast<std::uint64_t*>(words) + 3, 0, &answer) != IST_OK)
      return 50;
    HeldTarget target(here, heap, static_cast<unsigned char*>(data), static_cast<std::uint64_t*>(words));
    if (target.begin() != 0) return 51;
    int wrong = here.rank == 0 ? target.use(epochs)
                               : wait_as_host(here, static_cast<unsigned char*>(data), static_cast<std::uint64_t*>(words),
                                              static_cast<std::uint64_t*>(answer), epochs);
    wrong += ist_heap_barrier(heap) == IST_OK ? 0 : 1;
    return wrong + (ist_heap_destroy(&heap) == IST_OK ? 0 : 1);
  }));
}

// As of heap_view_test.cpp: rank 1's processor makes no call while its kernel waits for rank 0's, which changes its part of the host's memory.
TEST_F(HostHeap, HoldsAKernelWhileAnotherPesHostPutsGetsAndChangesItsWords) {
  needs_gpus(1);
  if (IsSkipped()) return;
  const std::uint32_t epochs = shorter(2000);
  expect_all(run_ranks(2, "host,cuda", [&](const Here& here) {
    Symmetric host;
    if (!host.made(here, IST_KIND_HOST, gpu_of(here))) return 50;
    HeldTarget target(here, host.heap, host.data, host.words);
    if (target.begin() != 0) return 51;
    int wrong =
        here.rank == 0
            ? target.use(epochs)
            : wrong_in(here, "held",
                       wait_for_host(host.view.team, host.device, {host.data + host.view.shift, host.in_kernels()}, epochs));
    wrong += ist_heap_barrier(host.heap) == IST_OK ? 0 : 1;
    return wrong + host.end();
  }));
}

TEST_F(HostHeap, ReleasesKernelsThatWaitForOneThatWasKilled) {
  needs_gpus(1);
  if (IsSkipped()) return;
  expect_all_but(
      run_ranks(2, "host,cuda",
                [&](const Here& here) {
                  Symmetric host;
                  if (!host.made(here, IST_KIND_HOST, gpu_of(here))) return 50;
                  // Once before, so that nothing is loaded while it is timed.
                  int wrong = wrong_in(here, "changes", change_in_host_heap(host.view, host.in_kernels(), host.device, 1));
                  here.has_come_to(1);
                  here.wait_for(1 - here.rank, 1);
                  if (here.rank == 1) die_soon();
                  const auto killed = Clock::now() + kBefore;
                  constexpr int dead = 1;  // ist::device::Status::peer_dead
                  wrong +=
                      wrong_in(here, "wait",
                               wait_for_ever(host.view.team, host.device, {nullptr, host.in_kernels()}, 10000000000), dead);
                  if (Clock::now() - killed > std::chrono::seconds(1)) {
                    std::fprintf(stderr, "[%d] the kernel was released late\n", here.rank);
                    ++wrong;
                  }
                  return wrong + expect_death("barrier", here, 1, killed, [&] { return ist_heap_barrier(host.heap); });
                }),
      1);
}

}  // namespace
