// A part of everybody's for everybody: all pairs at once, each rank beginning with another partner.
#include <algorithm>

#include "collective/collectives.hpp"
#include "collective/nccl_call.hpp"
#include "collective/shared.hpp"

namespace ist {
namespace {

// What arrives waits beside the buffer until what lies in its place has gone, a chunk at a time.
void exchange_in_place(Plan& plan, const Piece& buffer, const Division& layout, int partner) {
  const Piece part = layout.of(buffer, partner);
  // Of bytes: what is an element on one rank may be a part of a layout on another.
  const Parts chunks = Parts::chunks({part.size.value, Bytes{1}}, Plan::chunk_of(part.size));
  const Piece aside = plan.scratch_for(buffer, false, chunks.elements(0).bytes());
  Plan::Step moved = Plan::kNone;
  for (int c = 0; c < chunks.size(); ++c) {
    const Piece chunk = chunks.of(part, c);
    const Piece arriving = aside.part(Offset{}, chunk.size);
    const Plan::Step arrived = plan.receive(arriving, partner, c, {moved});
    const Plan::Step sent = plan.send(chunk, partner, c, {});
    moved = plan.copy(chunk, arriving, {arrived, sent});
  }
}

}  // namespace

void plan_alltoall(Plan& plan, const Piece& send, const Division& sent, const Piece& recv, const Division& received,
                   bool in_place) {
  const bool alike = sent.alike() && received.alike();
  plan.tell(Plan::Call::alltoall, alike ? received.total() : Bytes{}, alike ? 0 : 1);
  if (alike && plan.suits_nccl(ChosenCall::alltoall, received.total()))
    return offer_bytes(plan, {.what = ChosenCall::alltoall, .send = send, .recv = recv, .usable = !in_place},
                       received.largest(), [=](Plan& late) { plan_alltoall(late, send, sent, recv, received, in_place); });
  if (alike && plan.size() > 1 && plan.choose(ChosenCall::alltoall, received.total()) == Algorithm::shared)
    return shared_alltoall(plan, in_place ? recv : send, recv, received);
  plan.take(Algorithm::direct);
  // In place, each pair's two messages lie in two rounds, and a rank must not wait in one for what comes in another.
  if (!in_place) plan.walk_longer(std::max(sent.largest(), received.largest()));
  const int size = plan.size();
  for (int distance = 1; distance < size; ++distance) {
    const int from = (plan.rank() - distance + size) % size;
    const int to = (plan.rank() + distance) % size;
    if (in_place) {
      exchange_in_place(plan, recv, received, to);
    } else {
      plan.receive(received.of(recv, from), from, 0, {});
      plan.send(sent.of(send, to), to, 0, {});
    }
  }
  if (!in_place) plan.copy(received.of(recv, plan.rank()), sent.of(send, plan.rank()), {});
}

}  // namespace ist
