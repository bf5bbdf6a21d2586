// Barrier by dissemination (Hensgen, Finkel, Manber 1988), ceil(log2 n) rounds; in round k rank r tells r + 2^k
// and hears from r - 2^k; or where all ranks see each other's memory, and are few, each tells all.
#include "collective/collectives.hpp"
#include "collective/shared.hpp"

namespace ist {

void plan_barrier(Plan& plan) {
  plan.tell(Plan::Call::barrier, Bytes{});
  if (plan.size() > 1 && plan.comm().algorithm(ChosenCall::barrier, Bytes{}, true) == Algorithm::shared)
    return shared_barrier(plan);
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
