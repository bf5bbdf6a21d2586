// Kernels of one process for each GPU over windows onto memory of cudaMalloc: every byte compared, and a PE that is killed while another
// one's kernel waits for it.
#include <isthmus/window.h>

#include <atomic>
#include <thread>

#include "../ranks/forked_ranks.hpp"
#include "heap_kernels.hpp"
#include "shorter.hpp"
#include "window_kernels.hpp"

namespace {

using namespace forked_ranks;
using heap_kernels::shorter;
using window_kernels::Found;

// Of one rank, on the GPU of its number, at another place of its allocation than at the other ranks.
struct Registered {
  unsigned char* memory = nullptr;
  ist_window window = IST_WINDOW_NULL;
  ist_window_view view{};
  bool made(const Here& here) {
    const std::uint64_t before = 256 * (1 + static_cast<std::uint64_t>(here.rank));
    std::string refused;
    memory =
        static_cast<unsigned char*>(window_kernels::allocate(here.rank, before + window_kernels::kBytes + 4096, refused));
    const bool fine =
        memory != nullptr &&
        ist_window_create(here.comm, ist_cuda(memory + before, nullptr), window_kernels::kBytes, &window) == IST_OK &&
        ist_window_view_of(window, &view) == IST_OK && view.base[here.rank] == memory + before;
    if (!fine) std::fprintf(stderr, "[%d] %s %s\n", here.rank, refused.c_str(), ist_error_text());
    return fine;
  }
  // So many things were wrong.
  int freed() {
    const int wrong = ist_window_free(&window) == IST_OK ? 0 : 1;
    window_kernels::release(memory);
    return wrong;
  }
};

int wrong_in(const Here& here, const char* what, const Found& found, int status = 0) {
  if (found.wrong == 0 && found.status == status && found.refused.empty()) return 0;
  std::fprintf(stderr, "[%d] %s: %llu wrong, status %d, %s\n", here.rank, what, found.wrong, found.status,
               found.refused.c_str());
  return 1;
}

// That word of PE 0 or another, by this rank's device.
int wrong_word(const Here& here, const Registered& mine, int number, std::uint64_t wanted, int pe) {
  std::uint64_t found = 0;
  const std::uint64_t offset = window_kernels::kWords + static_cast<std::uint64_t>(number) * 8;
  if (ist_window_atomic64(mine.window, IST_ATOMIC_FETCH, offset, 0, &found, pe) == IST_OK && found == wanted) return 0;
  std::fprintf(stderr, "[%d] word %d of PE %d is %llu instead of %llu (%s)\n", here.rank, number, pe,
               static_cast<unsigned long long>(found), static_cast<unsigned long long>(wanted), ist_error_text());
  return 1;
}

class WindowView : public testing::Test {
 protected:
  void SetUp() override {
    // Two processes' kernels on one GPU do not run together.
    if (heap_kernels::devices() < 2)
      GTEST_SKIP() << "not covered here: kernels of two processes over a window; each needs a GPU of its own";
  }
  // A kernel that waits must not hold up the loading of the next one.
  Variables eager_{{"CUDA_MODULE_LOADING", "EAGER"}};
};

TEST_F(WindowView, CarriesKernelsOfTwoProcessesToEachOther) {
  const std::uint32_t epochs = shorter(2000);
  expect_all_but(run_ranks(2, "host,cuda",
                           [&](const Here& here) {
                             Registered mine;
                             if (!mine.made(here)) return 50;
                             int wrong = ist_barrier(here.comm) == IST_OK ? 0 : 1;
                             wrong += wrong_in(here, "exchange", window_kernels::exchange(mine.view, here.rank, epochs));
                             wrong += ist_barrier(here.comm) == IST_OK ? 0 : 1;
                             // What kernels left is seen by the host.
                             wrong += wrong_word(here, mine, 2, std::uint64_t{3} * epochs * 2, 0);
                             for (int pe = 0; pe < here.size; ++pe) wrong += wrong_word(here, mine, 0, epochs, pe);
                             return wrong + mine.freed();
                           }),
                 -1);
}

TEST_F(WindowView, CarriesGridsThatMeetInWordsOfATeam) {
  expect_all_but(run_ranks(2, "host,cuda",
                           [&](const Here& here) {
                             Registered mine;
                             ist_heap heap = IST_HEAP_NULL;
                             ist_team_view team{};
                             if (!mine.made(here) ||
                                 ist_heap_create(here.comm, IST_KIND_CUDA, here.rank, 4 << 20, 0, &heap) != IST_OK ||
                                 ist_heap_view(heap, &team) != IST_OK)
                               return 50;
                             int wrong = ist_barrier(here.comm) == IST_OK ? 0 : 1;
                             const Found found =
                                 window_kernels::exchange_as_grids(team, mine.view, here.rank, shorter(1000));
                             wrong += wrong_in(here, "exchange of grids", found);
                             wrong += ist_barrier(here.comm) == IST_OK ? 0 : 1;
                             for (int pe = 0; pe < here.size; ++pe)
                               for (int word : {13, 14}) wrong += wrong_word(here, mine, word, shorter(1000), pe);
                             wrong += ist_heap_destroy(&heap) == IST_OK ? 0 : 1;
                             return wrong + mine.freed();
                           }),
                 -1);
}

// Every host and every kernel at once, at every PE's word.
TEST_F(WindowView, CountsWhatKernelsAndHostsAddAtOnce) {
  const std::uint32_t by_kernels = shorter(20000);
  const std::uint64_t by_hosts = shorter(1000);
  constexpr std::uint64_t kWord = window_kernels::kWords + std::uint64_t{3} * 8;
  expect_all_but(
      run_ranks(2, "host,cuda",
                [&](const Here& here) {
                  Registered mine;
                  if (!mine.made(here)) return 50;
                  std::atomic<int> wrong{0};
                  // Once before, so that nothing is loaded while the others' kernels run.
                  wrong += wrong_word(here, mine, 3, 0, here.rank);
                  if (ist_barrier(here.comm) != IST_OK) ++wrong;
                  std::thread kernel([&] {
                    wrong += wrong_in(here, "add", window_kernels::add_everywhere(mine.view, here.rank, by_kernels));
                  });
                  for (std::uint64_t n = 0; n < by_hosts; ++n)
                    for (int pe = 0; pe < here.size; ++pe)
                      if (ist_window_atomic64(mine.window, IST_ATOMIC_ADD, kWord, 1000000007, nullptr, pe) != IST_OK)
                        ++wrong;
                  kernel.join();
                  if (ist_barrier(here.comm) != IST_OK) ++wrong;
                  const std::uint64_t each = by_hosts * 1000000007 + std::uint64_t{window_kernels::kAdders} * by_kernels;
                  for (int pe = 0; pe < here.size; ++pe) wrong += wrong_word(here, mine, 3, 2 * each, pe);
                  return wrong + mine.freed();
                }),
      -1);
}

TEST_F(WindowView, ReleasesKernelsThatWaitForOneThatWasKilled) {
  expect_all_but(run_ranks(2, "host,cuda",
                           [](const Here& here) {
                             Registered mine;
                             if (!mine.made(here)) return 50;
                             if (ist_barrier(here.comm) != IST_OK) return 51;
                             // Once before, so that nothing is loaded while it is timed.
                             if (wrong_in(here, "exchange", window_kernels::exchange(mine.view, here.rank, 10)) != 0)
                               return 52;
                             here.has_come_to(1);
                             here.wait_for(1 - here.rank, 1);
                             if (here.rank == 1) die_soon();
                             const auto killed = Clock::now() + kBefore;
                             constexpr int dead = 1;  // ist::device::Status::peer_dead
                             int wrong = wrong_in(here, "wait", window_kernels::wait_for_ever(mine.view, here.rank), dead);
                             if (Clock::now() - killed > std::chrono::seconds(1)) {
                               std::fprintf(stderr, "[%d] the kernel was released late\n", here.rank);
                               ++wrong;
                             }
                             return wrong +
                                    expect_death("free", here, 1, killed, [&] { return ist_window_free(&mine.window); });
                           }),
                 1);
}

}  // namespace
