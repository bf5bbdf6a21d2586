// Kernels of one process for each GPU over the view of a symmetric heap: every byte compared, and a PE that is killed while another
// one's kernel waits for it.
#include <isthmus/halo.h>
#include <isthmus/heap.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../ranks/forked_ranks.hpp"
#include "heap_kernels.hpp"
#include "other_work.hpp"
#include "shorter.hpp"

namespace {

using namespace forked_ranks;
using heap_kernels::Found;
using heap_kernels::Places;
using heap_kernels::shorter;
using heap_kernels::Told;
using heap_kernels::Work;

// Of one rank, on the GPU of its number.
struct Symmetric {
  ist_heap heap = IST_HEAP_NULL;
  ist_team_view view{};
  Places places{};
  bool made(const Here& here) {
    void* data = nullptr;
    void* words = nullptr;
    const bool fine = ist_heap_create(here.comm, IST_KIND_CUDA, here.rank, 4 << 20, 0, &heap) == IST_OK &&
                      ist_heap_calloc(heap, heap_kernels::kData, 1, &data) == IST_OK &&
                      ist_heap_calloc(heap, 4, 8, &words) == IST_OK && ist_heap_view(heap, &view) == IST_OK;
    if (!fine) std::fprintf(stderr, "[%d] %s\n", here.rank, ist_error_text());
    places = {static_cast<unsigned char*>(data), static_cast<std::uint64_t*>(words)};
    return fine;
  }
};

int wrong_in(const Here& here, const char* what, const Found& found, int status = 0) {
  if (found.wrong == 0 && found.status == status && found.refused.empty()) return 0;
  std::fprintf(stderr, "[%d] %s: %llu wrong, status %d, %s\n", here.rank, what, found.wrong, found.status,
               found.refused.c_str());
  return 1;
}

class HeapView : public testing::Test {
 protected:
  void SetUp() override {
    // Two processes' kernels on one GPU do not run together.
    if (heap_kernels::devices() < 2)
      GTEST_SKIP() << "not covered here: kernels of two processes over the view of a heap; each needs a GPU of its own";
  }
  // A kernel that waits must not hold up the loading of the next one.
  Variables eager_{{"CUDA_MODULE_LOADING", "EAGER"}};
};

TEST_F(HeapView, CarriesKernelsOfTwoProcessesToEachOther) {
  expect_all_but(run_ranks(2, "host,cuda",
                           [](const Here& here) {
                             Symmetric symmetric;
                             if (!symmetric.made(here)) return 50;
                             const auto& [heap, view, places] = symmetric;
                             int wrong = wrong_in(here, "exchange", exchange(view, here.rank, places, shorter(2000)));
                             wrong += wrong_in(here, "grids", meet_as_grids(view, here.rank, places, shorter(5000)));
                             wrong += wrong_in(here, "exchange of grids",
                                               exchange_as_grids(view, here.rank, places, shorter(2000), shorter(1000)));
                             // What kernels left is seen by the host, and the other way round.
                             std::uint64_t sum = 0;
                             const ist_buffer there = ist_host(&sum);
                             if (ist_heap_barrier(heap) != IST_OK ||
                                 ist_heap_get(heap, there, places.words + 1, sizeof sum, 0) != IST_OK ||
                                 sum != std::uint64_t{6} * (shorter(2000) + shorter(1000)))
                               ++wrong;
                             ist_heap last = heap;
                             return wrong + (ist_heap_destroy(&last) == IST_OK ? 0 : 1);
                           }),
                 -1);
}

// Barriers of grids, each with a plane put before it and compared behind it, by as many GPUs as there are, up to four.
TEST_F(HeapView, MeetsAMillionTimes) {
  const int pes = std::min(heap_kernels::devices(), 4);
  expect_all(run_ranks(pes, "host,cuda", [](const Here& here) {
    Symmetric symmetric;
    if (!symmetric.made(here)) return 50;
    const auto& [heap, view, places] = symmetric;
    int wrong = wrong_in(here, "exchange", exchange(view, here.rank, places, 500));
    wrong += wrong_in(here, "grids", meet_as_grids(view, here.rank, places, 1000000));
    ist_heap last = heap;
    return wrong + (ist_heap_destroy(&last) == IST_OK ? 0 : 1);
  }));
}

// Barriers of a block in a graph, which is captured once and replayed, by as many GPUs as there are, up to four.
TEST_F(HeapView, MeetsInEveryReplayOfAGraph) {
  const int pes = std::min(heap_kernels::devices(), 4);
  const std::uint32_t replays = shorter(100);
  expect_all(run_ranks(pes, "host,cuda", [&](const Here& here) {
    Symmetric symmetric;
    if (!symmetric.made(here)) return 50;
    const auto& [heap, view, places] = symmetric;
    int wrong = wrong_in(here, "replays", meet_in_replays(view, here.rank, places, replays));
    // A second graph goes on where the first one has ended; each replay counted.
    wrong += wrong_in(here, "replays of a second graph", meet_in_replays(view, here.rank, places, replays));
    std::uint64_t met = 0;
    if (ist_heap_get(heap, ist_host(&met), places.words, sizeof met, here.rank) != IST_OK ||
        met != std::uint64_t{2} * replays * heap_kernels::kMeetings)
      ++wrong;
    ist_heap last = heap;
    return wrong + (ist_heap_destroy(&last) == IST_OK ? 0 : 1);
  }));
}

// Until this PE's own word says so; false, and it is told, where it does not within 10 s.
bool comes(const Here& here, ist_heap heap, const std::uint64_t* word, std::int64_t value) {
  const auto end = Clock::now() + std::chrono::seconds(10);
  int is = 0;
  while (is == 0 && Clock::now() < end)
    if (ist_heap_test(heap, word, IST_UINT64, IST_COMPARE_GE, value, &is) != IST_OK) break;
  if (is == 0)
    std::fprintf(stderr, "[%d] no answer to epoch %lld: %s\n", here.rank, static_cast<long long>(value), ist_error_text());
  return is != 0;
}

// Rank 1 is in a kernel all the time, and its processor in no call of the library: what rank 0's processor puts comes all the same.
TEST_F(HeapView, HoldsAKernelUntilAnotherPesHostHasPut) {
  const std::uint32_t epochs = shorter(2000);
  expect_all(run_ranks(2, "host,cuda", [&](const Here& here) {
    Symmetric symmetric;
    if (!symmetric.made(here)) return 50;
    const auto& [heap, view, places] = symmetric;
    // Once before, so that nothing is loaded while a kernel waits; of the host's calls, too.
    if (wrong_in(here, "exchange", exchange(view, here.rank, places, 10)) != 0) return 51;
    std::vector<unsigned char> bytes(heap_kernels::kFromHost);
    if (ist_heap_put_signal(heap, places.data, ist_host(bytes.data()), 0, places.words + 2, 0, IST_SIGNAL_ADD, 1) !=
            IST_OK ||
        ist_heap_barrier(heap) != IST_OK)
      return 52;
    int wrong = here.rank == 1 ? wrong_in(here, "held", wait_for_host(view, here.rank, places, epochs)) : 0;
    for (std::uint32_t n = 1; n <= epochs && here.rank == 0; ++n) {
      heap_kernels::fill_on_host(bytes.data(), heap_kernels::kFromHost, here.rank, n);
      const bool adds = n % 2 == 0;
      if (ist_heap_put_signal(heap, places.data, ist_host(bytes.data()), bytes.size(), places.words + 2, adds ? 1 : n,
                              adds ? IST_SIGNAL_ADD : IST_SIGNAL_SET, 1) != IST_OK ||
          !comes(here, heap, places.words + 3, n))
        return 53;
    }
    wrong += ist_heap_barrier(heap) == IST_OK ? 0 : 1;
    ist_heap last = heap;
    return wrong + (ist_heap_destroy(&last) == IST_OK ? 0 : 1);
  }));
}

// A grid that is as large as the launch helper allows waits in a kernel for an atomic operation of the host's on the same GPU, which takes a
// kernel: it finds room, whatever the grid's blocks take of their multiprocessors, and however these divide their memory. Ends by itself where it does not.
TEST(HeapViewOfOne, LetsHostsChangeWordsThatTheLargestGridWaitsFor) {
  if (heap_kernels::devices() < 1) GTEST_SKIP() << "not covered here: a grid that fills a GPU and waits for its host";
  const Variables eager{{"CUDA_MODULE_LOADING", "EAGER"}};
  expect_all(run_ranks(1, "host,cuda", [](const Here& here) {
    Symmetric symmetric;
    if (!symmetric.made(here)) return 50;
    ist_heap heap = symmetric.heap;
    std::uint64_t* const word = symmetric.places.words;
    int wrong = 0;
    for (const heap_kernels::Blocks& blocks :
         {heap_kernels::Blocks{1024, 0}, heap_kernels::Blocks{512, 0}, heap_kernels::Blocks{256, 0},
          heap_kernels::Blocks{32, 0}, heap_kernels::Blocks{256, 40000}, heap_kernels::Blocks{128, 90000},
          heap_kernels::Blocks{256, 16384}}) {
      // Once before, so that nothing is loaded or locked while the grid runs.
      if (ist_heap_atomic64(heap, IST_ATOMIC_SET, word, 0, nullptr, 0) != IST_OK) ++wrong;
      int code = IST_OK;
      const auto change = [&] { code = ist_heap_atomic64(heap, IST_ATOMIC_ADD, word, heap_kernels::kAwaited, nullptr, 0); };
      const std::string what = "a grid of blocks of " + std::to_string(blocks.threads) + " threads and " +
                               std::to_string(blocks.shared_bytes) + " bytes";
      const Found found = wait_as_the_largest_grid(symmetric.view, here.rank, symmetric.places, blocks, change);
      wrong += wrong_in(here, what.c_str(), found) + (code == IST_OK ? 0 : 1);
    }
    return wrong + (ist_heap_destroy(&heap) == IST_OK ? 0 : 1);
  }));
}

// Every host and every kernel at once, at every PE's word.
TEST_F(HeapView, CountsWhatKernelsAndHostsAddAtOnce) {
  const std::uint32_t by_kernels = shorter(20000);
  const std::uint64_t by_hosts = shorter(1000);
  expect_all_but(
      run_ranks(
          2, "host,cuda",
          [&](const Here& here) {
            Symmetric symmetric;
            if (!symmetric.made(here)) return 50;
            const auto& [heap, view, places] = symmetric;
            std::uint64_t* const word = places.words + 2;
            std::atomic<int> wrong{0};
            // Once before, so that nothing is loaded while the others' kernels run.
            if (ist_heap_atomic64(heap, IST_ATOMIC_FETCH, word, 0, nullptr, here.rank) != IST_OK) ++wrong;
            if (ist_heap_barrier(heap) != IST_OK) ++wrong;
            std::thread kernel([&] { wrong += wrong_in(here, "add", add_everywhere(view, here.rank, places, by_kernels)); });
            for (std::uint64_t n = 0; n < by_hosts; ++n)
              for (int pe = 0; pe < here.size; ++pe)
                if (ist_heap_atomic64(heap, IST_ATOMIC_ADD, word, 1000000007, nullptr, pe) != IST_OK) ++wrong;
            kernel.join();
            if (ist_heap_barrier(heap) != IST_OK) ++wrong;
            std::uint64_t sum = 0;
            if (ist_heap_atomic64(heap, IST_ATOMIC_FETCH, word, 0, &sum, here.rank) != IST_OK) ++wrong;
            const auto pes = static_cast<std::uint64_t>(here.size);
            const std::uint64_t wanted = pes * (by_hosts * 1000000007 + std::uint64_t{heap_kernels::kAdders} * by_kernels);
            if (sum != wanted) {
              std::fprintf(stderr, "[%d] %llu instead of %llu (%s)\n", here.rank, static_cast<unsigned long long>(sum),
                           static_cast<unsigned long long>(wanted), ist_error_text());
              ++wrong;
            }
            ist_heap last = heap;
            return wrong + (ist_heap_destroy(&last) == IST_OK ? 0 : 1);
          }),
      -1);
}

TEST_F(HeapView, CarriesHalosThatKernelsPutWhereTheyBelong) {
  expect_all_but(
      run_ranks(2, "host,cuda",
                [](const Here& here) {
                  Symmetric symmetric;
                  if (!symmetric.made(here)) return 50;
                  constexpr int dims[] = {2, 1}, periods[] = {1, 1};
                  constexpr std::int64_t minus = heap_kernels::kMinus, plus = heap_kernels::kPlus;
                  constexpr std::int64_t rows = heap_kernels::kRows, columns = heap_kernels::kColumns;
                  const ist_halo_range ranges[] = {{minus, plus, minus, minus + rows - 1, minus + rows + plus},
                                                   {minus, plus, minus, minus + columns - 1, minus + columns + plus}};
                  const ist_halo_field field{ist_host(nullptr), 8, ranges, nullptr};
                  ist_halo_grid grid = IST_HALO_GRID_NULL;
                  ist_halo_sides sides{};
                  if (ist_halo_grid_create(here.comm, 2, dims, periods, nullptr, &grid) != IST_OK ||
                      ist_halo_sides_of(grid, &field, 0, &sides) != IST_OK || sides.count != 8)
                    return 51;
                  int wrong = wrong_in(here, "halos",
                                       exchange_halos(symmetric.view, here.rank, symmetric.places, sides, shorter(5000)));
                  wrong += ist_halo_grid_free(&grid) == IST_OK ? 0 : 1;
                  return wrong + (ist_heap_destroy(&symmetric.heap) == IST_OK ? 0 : 1);
                }),
      -1);
}

int wrong_with(const Here& here, const Work& work, const std::string& text) {
  if (text.empty()) return 0;
  std::fprintf(stderr, "[%d] %s: %s\n", here.rank, work.name(), text.c_str());
  return 1;
}

// Until `ended`, at least once. With a pause: without one a kernel waited 10 s for the other PE's once (two H100), probably since who launches got none
// of the driver's locks beside threads that let go of them for no longer than it takes to ask again.
int go_on(const Here& here, Work& work, const std::atomic<bool>& ended) {
  do {
    std::string text = work.prepare();
    if (text.empty()) text = work.make();
    if (text.empty()) text = work.prove();
    if (!text.empty()) return wrong_with(here, work, text);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  } while (!ended);
  return 0;
}

// Kernels that end by themselves, one after the other, while a thread for each kind of call does nothing else: what waits for a kernel there waits
// for one that ends, and holds up the launch of the next one for no longer.
TEST_F(HeapView, GoesOnBesideOtherWorkOfItsProcess) {
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Symmetric symmetric;
    if (!symmetric.made(here)) return 50;
    Told* const told = heap_kernels::told_memory(here.rank);
    if (told == nullptr) return 51;
    std::atomic<bool> ended{false};
    std::atomic<int> wrong{0};
    const auto works = heap_kernels::all_work(here.rank);
    std::vector<std::thread> crew;
    for (const auto& work : works)
      if (work->name() != std::string_view(heap_kernels::kWaitsForDevice))
        crew.emplace_back([&] { wrong += go_on(here, *work, ended); });
    const auto until = Clock::now() + std::chrono::seconds(3);
    std::uint32_t before = 0;
    for (bool ends = false; !ends;) {
      if (Clock::now() > until) told->end = 1;
      const Found found = exchange_until_told(symmetric.view, here.rank, symmetric.places, before, 100, told);
      const int found_wrong = wrong_in(here, "exchange", found);
      wrong += found_wrong;
      before += static_cast<std::uint32_t>(found.first_ns);
      ends = found.second_ns != 0 || found_wrong != 0;
    }
    ended = true;
    for (std::thread& one : crew) one.join();
    return wrong + (ist_heap_destroy(&symmetric.heap) == IST_OK ? 0 : 1);
  }));
}

// A kernel that stays until it is told to end, beside one call: of those that CUDA lets wait for kernels the call may return when it has ended, and
// of all others before. `number` is the call's, and `before` the epochs of the kernels before.
int stay_beside(const Here& here, const Symmetric& symmetric, Work& work, int number, Told* told, std::uint32_t& before) {
  told->end = 0;
  const std::string unprepared = work.prepare();
  if (!unprepared.empty() || ist_heap_barrier(symmetric.heap) != IST_OK)
    return wrong_with(here, work, unprepared + " (before)");
  Found found;
  std::thread kernel(
      [&] { found = exchange_until_told(symmetric.view, here.rank, symmetric.places, before, 1U << 30, told); });
  const auto begun = Clock::now();
  const volatile unsigned& epoch = told->epoch;
  while (epoch == before && Clock::now() - begun < std::chrono::seconds(5))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::atomic<bool> over{false};
  std::string text;
  const auto called = Clock::now();
  std::thread caller([&] {
    text = work.make();
    over = true;
  });
  const auto patience = std::chrono::milliseconds(work.may_wait() ? 500 : 5000);
  while (!over && Clock::now() - called < patience) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const bool came = over;
  // The other rank's call has its time, too: kernels end together.
  here.has_come_to(number);
  here.wait_for(1 - here.rank, number);
  *static_cast<volatile unsigned*>(&told->end) = 1;
  kernel.join();
  caller.join();
  std::printf("[%d] beside a kernel that stays: %s %s\n", here.rank, work.name(), came ? "went on" : "waited for it to end");
  std::fflush(stdout);
  before += static_cast<std::uint32_t>(found.first_ns);
  if (text.empty()) text = work.prove();
  if (text.empty() && !came && !work.may_wait()) text = "came back only when the kernel had ended";
  return wrong_in(here, work.name(), found) + wrong_with(here, work, text);
}

TEST_F(HeapView, StaysUntilItIsToldBesideOtherWork) {
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Symmetric symmetric;
    if (!symmetric.made(here)) return 50;
    Told* const told = heap_kernels::told_memory(here.rank);
    if (told == nullptr) return 51;
    std::uint32_t before = 0;
    int wrong = 0, number = 0;
    for (const auto& work : heap_kernels::all_work(here.rank))
      wrong += stay_beside(here, symmetric, *work, ++number, told, before);
    return wrong + (ist_heap_destroy(&symmetric.heap) == IST_OK ? 0 : 1);
  }));
}

TEST_F(HeapView, ReleasesKernelsThatWaitForOneThatWasKilled) {
  expect_all_but(
      run_ranks(2, "host,cuda",
                [](const Here& here) {
                  Symmetric symmetric;
                  if (!symmetric.made(here)) return 50;
                  // Once before, so that nothing is loaded while it is timed.
                  if (wrong_in(here, "exchange", exchange(symmetric.view, here.rank, symmetric.places, 10)) != 0) return 51;
                  here.has_come_to(1);
                  here.wait_for(1 - here.rank, 1);
                  if (here.rank == 1) die_soon();
                  const auto killed = Clock::now() + kBefore;
                  constexpr int dead = 1;  // ist::device::Status::peer_dead
                  int wrong = wrong_in(here, "wait", wait_for_ever(symmetric.view, here.rank, symmetric.places), dead);
                  if (Clock::now() - killed > std::chrono::seconds(1)) {
                    std::fprintf(stderr, "[%d] the kernel was released late\n", here.rank);
                    ++wrong;
                  }
                  return wrong + expect_death("barrier", here, 1, killed, [&] { return ist_heap_barrier(symmetric.heap); });
                }),
      1);
}

}  // namespace
