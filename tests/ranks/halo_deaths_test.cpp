// A rank that dies ends the exchanges of its neighbours, which say who it was; what they have can be freed.
#include <isthmus/halo.h>

#include <array>
#include <vector>

#include "forked_ranks.hpp"

namespace {

using namespace forked_ranks;

class HaloDeaths : public testing::TestWithParam<ist_halo_way> {};

TEST_P(HaloDeaths, EndTheExchangesOfNeighboursAndAreNamed) {
  for (const int victim : {0, 2})
    expect_all_but(
        run_ranks(3, "host",
                  [&](const Here& here) {
                    constexpr int dims[] = {3}, periods[] = {1};
                    const ist_halo_range range{1, 1, 1, 2000, 2002};
                    std::vector<double> cells(2002);
                    const ist_halo_field field{ist_host(cells.data()), 8, &range, nullptr};
                    const ist_halo_options options{sizeof options, 0, IST_HALO_LOOPS, GetParam(), 0};
                    ist_halo_grid grid = IST_HALO_GRID_NULL;
                    ist_halo halo = IST_HALO_NULL;
                    if (ist_halo_grid_create(here.comm, 1, dims, periods, nullptr, &grid) != IST_OK) return 50;
                    if (ist_halo_create(grid, 1, &field, &options, &halo) != IST_OK) return 51;
                    for (int step = 0; step < 3; ++step)
                      if (ist_halo_pack(halo) != IST_OK || ist_halo_exchange(halo) != IST_OK ||
                          ist_halo_unpack(halo) != IST_OK)
                        return 52;
                    if (here.rank == victim) die_soon();
                    const auto killed = Clock::now() + kBefore;
                    if (ist_halo_pack(halo) != IST_OK) return 53;
                    int wrong = expect_death("exchange", here, victim, killed, [&] { return ist_halo_exchange(halo); });
                    // Of a one-sided one the end is collective, and says so once more.
                    const int freed = ist_halo_free(&halo);
                    wrong += halo == IST_HALO_NULL && (freed == IST_OK || GetParam() == IST_HALO_ONE_SIDED) ? 0 : 1;
                    return wrong + (ist_halo_grid_free(&grid) == IST_OK ? 0 : 1);
                  }),
        victim);
}

INSTANTIATE_TEST_SUITE_P(Ways, HaloDeaths, testing::Values(IST_HALO_MESSAGES, IST_HALO_ONE_SIDED),
                         [](const testing::TestParamInfo<ist_halo_way>& way) {
                           return way.param == IST_HALO_MESSAGES ? "Messages" : "OneSided";
                         });

}  // namespace
