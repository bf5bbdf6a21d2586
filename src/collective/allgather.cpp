// Everybody's part to everybody: all at once, or round a ring where many ranks have much to say.
#include "collective/choose.hpp"
#include "collective/collectives.hpp"
#include "collective/nccl_call.hpp"
#include "collective/shared.hpp"

namespace ist {
namespace {

void direct(Plan& plan, const Piece& own, const Piece& recv, const Division& layout) {
  const int size = plan.size();
  for (int distance = 1; distance < size; ++distance) {
    const int from = (plan.rank() - distance + size) % size;
    plan.receive(layout.of(recv, from), from, 0, {});
    plan.send(own, (plan.rank() + distance) % size, 0, {});
  }
}

// In round k rank r passes on the part of rank r - k.
void ring(Plan& plan, const Piece& own, const Piece& recv, const Division& layout) {
  const int size = plan.size();
  const int right = (plan.rank() + 1) % size;
  const int left = (plan.rank() - 1 + size) % size;
  Plan::Step heard = Plan::kNone;
  for (int k = 0; k < size - 1; ++k) {
    const int passed = (plan.rank() - k + size) % size;
    plan.send(k == 0 ? own : layout.of(recv, passed), right, k, {heard});
    heard = plan.receive(layout.of(recv, (passed - 1 + size) % size), left, k, {});
  }
}

}  // namespace

void plan_allgather(Plan& plan, const Piece& send, const Piece& recv, const Division& layout, bool in_place) {
  plan.tell(Plan::Call::allgather, layout.total(), layout.alike() ? 0 : 1);
  const Piece place = layout.of(recv, plan.rank());
  const Piece own = in_place ? place : send;
  if (layout.alike() && plan.suits_nccl(ChosenCall::allgather, layout.total()))
    return offer_bytes(plan, {.what = ChosenCall::allgather, .send = own, .recv = recv}, layout.largest(),
                       [=](Plan& late) { plan_allgather(late, send, recv, layout, in_place); });
  const Algorithm chosen = plan.choose(ChosenCall::allgather, layout.total(), layout.alike());
  if (chosen == Algorithm::shared) return shared_allgather(plan, own, recv, layout, in_place);
  plan.walk_longer(layout.largest());
  if (!in_place) plan.copy(place, send, {});
  if (chosen == Algorithm::ring) return ring(plan, own, recv, layout);
  direct(plan, own, recv, layout);
}

}  // namespace ist
