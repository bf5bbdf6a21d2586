// Collective calls beside a rank that has left the world, or leaves it in their middle. The ranks are forked.
#include <isthmus/collective.h>

#include "forked_ranks.hpp"

namespace {

using namespace forked_ranks;

int sum(const Here& here, ist_op op = IST_SUM) {
  const int mine = 1;
  int all = 0;
  return ist_allreduce(ist_host(&mine), ist_host(&all), 1, IST_INT, op, here.comm);
}

// Nothing is compared with what the one gave that is gone; that another one refuses the call still calls it off.
TEST(Leaving, ACallThatOneRankRefusesBesideOneThatHasLeftIsCalledOffForTheOthers) {
  const Variables variables{{"ISTHMUS_CHECK", "1"}};
  expect_all(run_ranks(3, "host", [](const Here& here) {
    if (here.rank == 2) {
      ist_world world = here.world;
      const int code = ist_world_destroy(&world);
      here.has_come_to(1);
      here.wait_for(0, 2);
      return code == IST_OK ? 0 : 1;
    }
    here.wait_for(2, 1);
    if (here.rank == 1) {
      const int code = sum(here, IST_OP_NULL);
      here.wait_for(0, 2);  // whatever the other one waits for, it is no call of this rank's
      return code == IST_OK ? 1 : 0;
    }
    const int code = sum(here);
    here.has_come_to(2);
    return code == IST_OK ? 1 : 0;
  }));
}

// Its world goes while its calls are under way, of which it has said nothing yet.
TEST(Leaving, WhoLeavesWhileItsCallsAreUnderWayIsSaidToHaveLeft) {
  for (int attempt = 0; attempt < 8; ++attempt)
    expect_all(run_ranks(2, "host", [](const Here& here) {
      if (here.rank == 1) {
        const int mine = 1;
        std::vector<int> all(5);
        std::vector<ist_request> requests(5, IST_REQUEST_NULL);
        for (std::size_t n = 0; n < all.size(); ++n)
          if (ist_iallreduce(ist_host(&mine), ist_host(&all[n]), 1, IST_INT, IST_SUM, here.comm, &requests[n]) != IST_OK)
            return 1;
        here.has_come_to(1);
        ist_world world = here.world;
        ist_world_destroy(&world);
        return 0;
      }
      here.wait_for(1, 1);
      int code = IST_OK;
      for (int n = 0; n < 6 && code == IST_OK; ++n) code = sum(here);
      if (code == IST_ERR_PEER_LEFT) return 0;
      std::fprintf(stderr, "[0] %s: %s\n", ist_code_name(code), ist_error_text());
      return 1;
    }));
}

}  // namespace
