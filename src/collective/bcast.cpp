// Broadcast: to all at once for what is small, a binomial tree where they are many, a chain of chunks for what is large.
#include <algorithm>

#include "collective/choose.hpp"
#include "collective/collectives.hpp"
#include "collective/nccl_call.hpp"
#include "collective/shared.hpp"

namespace ist {
namespace {

// The root tells everybody.
void flat(Plan& plan, const Piece& buffer, int root) {
  plan.walk_longer(buffer.size);
  if (plan.rank() != root) {
    plan.receive(buffer, root, 0, {});
    return;
  }
  for (int distance = 1; distance < plan.size(); ++distance) plan.send(buffer, (root + distance) % plan.size(), 0, {});
}

// In round k, the 2^k ranks that have it tell as many others; ranks are counted from the root.
void binomial(Plan& plan, const Piece& buffer, int root) {
  plan.walk_longer(buffer.size);
  const int size = plan.size();
  const int place = (plan.rank() - root + size) % size;
  Plan::Step heard = Plan::kNone;
  int distance = 1;
  while (distance < size && (place & distance) == 0) distance *= 2;
  if (place != 0) heard = plan.receive(buffer, (place - distance + root) % size, 0, {});
  // The farthest first: it has the most to pass on.
  for (distance /= 2; distance > 0; distance /= 2)
    if (place + distance < size) plan.send(buffer, (place + distance + root) % size, 0, {heard});
}

// Each rank passes chunk after chunk to the next: the root sends everything once, however many ranks there are.
void chain(Plan& plan, const Piece& buffer, int root) {
  const int size = plan.size();
  const int place = (plan.rank() - root + size) % size;
  // Of bytes: what is an element on one rank may be a part of a layout on another.
  const Parts chunks = Parts::chunks({buffer.size.value, Bytes{1}}, size == 2 ? buffer.size : Plan::chunk_of(buffer.size));
  for (int c = 0; c < chunks.size(); ++c) {
    Plan::Step heard = Plan::kNone;
    if (place > 0) heard = plan.receive(chunks.of(buffer, c), (plan.rank() - 1 + size) % size, c, {});
    if (place < size - 1) plan.send(chunks.of(buffer, c), (plan.rank() + 1) % size, c, {heard});
  }
}

}  // namespace

void plan_bcast(Plan& plan, const Piece& buffer, const Elements& elements, int root) {
  if (plan.size() == 1) return;
  plan.tell(Plan::Call::bcast, elements.bytes(), root);
  if (plan.suits_nccl(ChosenCall::bcast, elements.bytes()))
    return offer_bytes(plan, {.what = ChosenCall::bcast, .send = buffer, .recv = buffer, .root = root}, elements.bytes(),
                       [=](Plan& late) { plan_bcast(late, buffer, elements, root); });
  switch (plan.choose(ChosenCall::bcast, elements.bytes())) {
    case Algorithm::shared:
      return shared_bcast(plan, buffer, root);
    case Algorithm::flat:
      return flat(plan, buffer, root);
    case Algorithm::chain:
      return chain(plan, buffer, root);
    default:
      return binomial(plan, buffer, root);
  }
}

}  // namespace ist
