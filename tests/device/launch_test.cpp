// How many blocks of a grid fit on a GPU where the worker of this process is (isthmus/launch.cuh).
#include <isthmus/worker.h>

#include <array>

#include "../ranks/forked_ranks.hpp"
#include "heap_kernels.hpp"

namespace {

using namespace forked_ranks;

TEST(LaunchedGrids, BesideAWorkerOfThisProcessAreRefusedWhereItTakesTheirRoom) {
  if (heap_kernels::devices() < 1) GTEST_SKIP() << "not covered here: a grid beside a worker, which needs a CUDA device";
  const Variables worker{{"ISTHMUS_WORKER", "1"}};
  expect_all(run_ranks(1, "host,cuda", [](const Here& here) {
    ist_buffer memory{};
    std::array<char, 8> data{};
    if (ist_memory_alloc(here.world, IST_KIND_CUDA, 0, data.size(), &memory) != IST_OK) return 50;
    ist_worker_blocks taken{};
    // Behind the first small copies in a row.
    for (int n = 0; n < 10000 && taken.blocks == 0; ++n)
      if (ist_memory_copy(here.world, memory, ist_host(data.data()), data.size()) != IST_OK ||
          ist_worker_blocks_on(0, &taken) != IST_OK)
        return 51;
    const std::string wrong = heap_kernels::fit_beside_a_worker(0);
    if (!wrong.empty()) std::fprintf(stderr, "%s\n", wrong.c_str());
    return (wrong.empty() ? 0 : 1) + (ist_memory_free(here.world, memory) == IST_OK ? 0 : 1);
  }));
}

}  // namespace
