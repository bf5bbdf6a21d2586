// Barrier by dissemination (Hensgen, Finkel, Manber 1988), ceil(log2 n) rounds; in round k rank r tells r + 2^k
// and hears from r - 2^k.
#include "collective/collectives.hpp"

namespace ist {

void plan_barrier(Plan& plan) {
  const Piece nothing = host_piece(nullptr, Bytes{});
  plan.walk(Bytes{});
  const int size = plan.size();
  Plan::Step heard = Plan::kNone;
  Plan::Step told = Plan::kNone;  // after everything heard before
  int round = 0;
  for (int distance = 1; distance < size; distance *= 2, ++round) {
    const Plan::Step hearing = plan.receive(nothing, (plan.rank() - distance + size) % size, round, {});
    told = plan.send(nothing, (plan.rank() + distance) % size, round, {heard, told});
    heard = hearing;
  }
}

}  // namespace ist
