// A rank that dies, leaves or frees its exchange early ends the exchanges of its neighbours, which say who it was; what they have can be freed.
#include <isthmus/halo.h>

#include <array>
#include <cstddef>
#include <string>
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
                    // Nobody leaves before the others know.
                    here.has_come_to(1);
                    here.wait_for(3 - victim - here.rank, 1);
                    // Of a one-sided one the end is collective, and says so once more.
                    const int freed = ist_halo_free(&halo);
                    wrong += halo == IST_HALO_NULL && (freed == IST_OK || GetParam() == IST_HALO_ONE_SIDED) ? 0 : 1;
                    return wrong + (ist_halo_grid_free(&grid) == IST_OK ? 0 : 1);
                  }),
        victim);
}

// An exchange around three ranks that each has done twice.
struct Around {
  std::vector<std::byte> cells;
  ist_halo_grid grid = IST_HALO_GRID_NULL;
  ist_halo halo = IST_HALO_NULL;
  int wrong = 0;
  Around(const Here& here, ist_halo_way way, std::int64_t element = 8) : cells(static_cast<std::size_t>(5 * element)) {
    constexpr int dims[] = {3}, periods[] = {1};
    const ist_halo_range range{1, 1, 1, 3, 5};
    const ist_halo_field field{ist_host(cells.data()), element, &range, nullptr};
    const ist_halo_options options{sizeof options, 0, IST_HALO_LOOPS, way, 0};
    expect(here, IST_OK, ist_halo_grid_create(here.comm, 1, dims, periods, nullptr, &grid));
    expect(here, IST_OK, ist_halo_create(grid, 1, &field, &options, &halo));
    for (int step = 0; step < 2 && wrong == 0; ++step) {
      expect(here, IST_OK, ist_halo_pack(halo));
      expect(here, IST_OK, ist_halo_exchange(halo));
      expect(here, IST_OK, ist_halo_unpack(halo));
    }
  }
  void expect(const Here& here, int wanted, int code, const char* words = "") {
    if (code == wanted && (code == IST_OK || std::string{ist_error_text()}.find(words) != std::string::npos)) return;
    std::fprintf(stderr, "[%d] %s: %s\n", here.rank, ist_code_name(code), ist_error_text());
    ++wrong;
  }
};

TEST_P(HaloDeaths, OfARankThatLeavesItsWorldEndExchangesToo) {
  expect_all(run_ranks(3, "host", [&](const Here& here) {
    Around in(here, GetParam());
    if (here.rank == 2 || in.wrong != 0) return in.wrong;
    in.expect(here, IST_OK, ist_halo_pack(in.halo));
    in.expect(here, IST_ERR_PEER_LEFT, ist_halo_exchange(in.halo), "rank 2 ");
    here.has_come_to(1);
    here.wait_for(1 - here.rank, 1);
    in.expect(here, GetParam() == IST_HALO_ONE_SIDED ? IST_ERR_PEER_LEFT : IST_OK, ist_halo_free(&in.halo));
    in.expect(here, IST_OK, ist_halo_grid_free(&in.grid));
    return in.wrong;
  }));
}

// Of the messages with rank 1, which is there, none stays behind. Long ones that nobody has taken are taken back, and another start finds the
// exchange as it was; short ones have gone, and then it can only be freed.
TEST(HaloStarts, ThatFailHalfWayLeaveNothingUnderWay) {
  for (const std::int64_t element : {std::int64_t{8}, std::int64_t{1} << 20})
    expect_all(run_ranks(3, "host", [&](const Here& here) {
      Around in(here, IST_HALO_MESSAGES, element);
      if (here.rank == 2 || in.wrong != 0) return in.wrong;
      in.expect(here, IST_OK, ist_halo_pack(in.halo));
      double word = 0;
      // Until it is known here that rank 2 has left.
      in.expect(here, IST_ERR_PEER_LEFT, ist_recv(ist_host(&word), 1, IST_DOUBLE, 2, 9, here.comm, IST_STATUS_IGNORE),
                "rank 2 ");
      if (here.rank == 0) {
        in.expect(here, IST_ERR_PEER_LEFT, ist_halo_start_exchange(in.halo), "rank 2 ");
        if (element == 8)
          in.expect(here, IST_ERR_ARGUMENT, ist_halo_start_exchange(in.halo), "nothing but ist_halo_free");
        else
          in.expect(here, IST_ERR_PEER_LEFT, ist_halo_start_exchange(in.halo), "rank 2 ");
      }
      here.has_come_to(1);
      here.wait_for(1 - here.rank, 1);
      in.expect(here, IST_OK, ist_halo_free(&in.halo));
      in.expect(here, IST_OK, ist_halo_grid_free(&in.grid));
      return in.wrong;
    }));
}

// Who waits in free is waited for by nobody else: the others hear of it, and free theirs.
TEST(HaloEnds, OfAOneSidedExchangeThatOneRankFreesEarlyAreErrorsAtItsNeighbours) {
  expect_all(run_ranks(3, "host", [&](const Here& here) {
    Around in(here, IST_HALO_ONE_SIDED);
    if (in.wrong != 0) return in.wrong;
    if (here.rank != 1) {
      in.expect(here, IST_OK, ist_halo_pack(in.halo));
      in.expect(here, IST_ERR_PEER_LEFT, ist_halo_exchange(in.halo), "rank 1 has freed the exchange after 2 times");
    }
    in.expect(here, IST_OK, ist_halo_free(&in.halo));
    in.expect(here, IST_OK, ist_halo_grid_free(&in.grid));
    return in.wrong;
  }));
}

INSTANTIATE_TEST_SUITE_P(Ways, HaloDeaths, testing::Values(IST_HALO_MESSAGES, IST_HALO_ONE_SIDED),
                         [](const testing::TestParamInfo<ist_halo_way>& way) {
                           return way.param == IST_HALO_MESSAGES ? "Messages" : "OneSided";
                         });

}  // namespace
