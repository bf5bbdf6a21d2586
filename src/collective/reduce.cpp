// Reductions to one rank, to all, and in parts.
//
// The order in which elements are combined is a fixed one everywhere: it depends on the ranks, never on which message came first. flat, direct
// and the ways through shared memory have the same one, by rank, and the others keep the operands in the order of ranks where an operation may
// not be commutative (order_of() of choose.hpp).
#include <array>
#include <bit>
#include <utility>

#include "collective/choose.hpp"
#include "collective/collectives.hpp"
#include "collective/in_order.hpp"
#include "collective/nccl_call.hpp"
#include "collective/pairwise.hpp"
#include "collective/shared.hpp"

namespace ist {
namespace {

// `from` is combined with `partial` on its left side or on its right; a result on the right side takes the place of `from`,
// so that the order stays without another copy.
void combine(Plan& plan, Partial& partial, const Piece& from, bool from_left, Plan::Step arrived, Plan::Step sent) {
  if (from_left) {
    partial.done = plan.combine(partial.piece, from, {arrived, sent, partial.done});
  } else {
    partial.done = plan.combine(from, partial.piece, {arrived, partial.done});
    partial.piece = from;
  }
}

// Everybody's whole vector to the root, or to everybody, and there combined in the order of ranks: one message's time.
void flat(Plan& plan, const ReductionData& data, int root) {
  plan.walk(data.elements.bytes());
  if (root != kEverybody && plan.rank() != root) {
    plan.send(data.send, root, 0, {});
    return;
  }
  const Partial mine = input_to_send(plan, data, root == kEverybody);
  for (int distance = 1; root == kEverybody && distance < plan.size(); ++distance)
    plan.send(mine.piece, (plan.rank() + distance) % plan.size(), 0, {mine.done});
  combine_in_order(plan, data, mine, 0, plan.size() - 1);
}

// Of two ranks, and long vectors: chunk by chunk, each combined as it comes, where a processor does that.
void to_the_other(Plan& plan, const ReductionData& data, int root) {
  const Bytes bytes = data.elements.bytes();
  const Parts chunks = Parts::chunks(data.elements, Plan::chunk_of(bytes));
  if (plan.rank() != root) {
    for (int c = 0; c < chunks.size(); ++c) plan.send(chunks.of(data.send, c), root, c, {});
    return;
  }
  // Whose input is first becomes the right operand.
  const bool came_left = plan.combiner().commutative == (root == 0);
  const bool in_result = plan.combines_on(data.recv, bytes);
  // As a left operand it is combined where it lies by processors alone.
  const bool serves = came_left || (data.send.kind == KindId::host && (!in_result || data.recv.kind == KindId::host));
  struct Turn {
    Piece room, partial, own;
    Plan::Step last_use = Plan::kNone;
  };
  std::array<Turn, 2> turns;
  for (Turn& turn : turns) {
    turn.room = plan.scratch_for(data.recv, in_result, chunks.elements(0).bytes());
    if (!in_result) turn.partial = plan.scratch_for(data.recv, false, chunks.elements(0).bytes());
    if (!serves) turn.own = plan.scratch_for(data.recv, in_result, chunks.elements(0).bytes());
    if (chunks.size() == 1) break;
  }
  for (int c = 0; c < chunks.size(); ++c) {
    Turn& turn = turns[static_cast<std::size_t>(c % 2)];
    const Piece result = chunks.of(data.recv, c);
    const Piece to = in_result ? result : turn.partial.part(Offset{}, result.size);
    Partial mine{chunks.of(data.send, c), Plan::kNone};
    if (!serves) {
      mine.done = plan.copy(turn.own.part(Offset{}, result.size), mine.piece, {turn.last_use});
      mine.piece = turn.own.part(Offset{}, result.size);
    }
    turn.last_use = plan.receive_combined({to, mine.piece, turn.room.part(Offset{}, result.size), came_left}, 1 - root, c,
                                          {turn.last_use}, {mine.done});
    if (!in_result) turn.last_use = plan.copy(result, to, {turn.last_use});
  }
}

// Recursive doubling. Those beyond a power of two give their input to their right neighbour and get the result from it.
void doubling(Plan& plan, const ReductionData& data) {
  const int size = plan.size();
  const int rank = plan.rank();
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
  const int extra = size - power;
  const Bytes bytes = data.elements.bytes();
  plan.walk(bytes);
  const bool beside = plan.combines_on(data.recv, bytes);
  if (rank < 2 * extra && rank % 2 == 0) {
    const Plan::Step told = plan.send(data.send, rank + 1, 0, {});
    plan.receive(data.recv, rank + 1, 1, {data.in_place ? told : Plan::kNone});
    return;
  }
  Partial partial = own_input(plan, data, beside);
  if (rank < 2 * extra) {
    const Piece theirs = plan.scratch_for(data.recv, beside, bytes);
    combine(plan, partial, theirs, true, plan.receive(theirs, rank - 1, 0, {}), Plan::kNone);
  }
  const int place = rank < 2 * extra ? rank / 2 : rank - extra;
  int number = 2;
  for (int distance = 1; distance < power; distance *= 2, ++number) {
    const int other = place ^ distance;
    const int partner = other < extra ? 2 * other + 1 : other + extra;
    const Piece theirs = plan.scratch_for(data.recv, beside, bytes);
    const Plan::Step arrived = plan.receive(theirs, partner, number, {});
    const Plan::Step sent = plan.send(partial.piece, partner, number, {partial.done});
    combine(plan, partial, theirs, partner < rank, arrived, sent);
  }
  plan.copy(data.recv, partial.piece, {partial.done});
  if (rank < 2 * extra) plan.send(partial.piece, rank - 1, 1, {partial.done});
}

// A binomial tree, the same one whoever is the root: what is combined with what, and on which side, follows from ranks alone. Two halves meet at the
// root if one of them is its own, and else at the first rank of both, so that no result has to be handed on.
void binomial(Plan& plan, const ReductionData& data, int root) {
  const Bytes bytes = data.elements.bytes();
  plan.walk(bytes);
  const bool beside = plan.combines_on(data.send, bytes);
  const ReductionData near{data.send, data.send, data.elements, false};
  const auto who_has = [root](int first, int ranks) { return first <= root && root < first + ranks ? root : first; };
  Partial partial{data.send, Plan::kNone};
  bool written = false;
  int first = plan.rank();  // of those whose inputs are in it
  for (int ranks = 1; ranks < plan.size(); ranks *= 2) {
    const int other = first ^ ranks;
    if (other >= plan.size()) continue;
    const int whole = first & ~ranks;
    const int meets = who_has(whole, 2 * ranks);
    if (meets != plan.rank()) {
      plan.send(partial.piece, meets, 0, {partial.done});
      return;
    }
    if (!std::exchange(written, true)) partial = own_input(plan, near, beside);
    const Piece theirs = plan.scratch_for(data.send, beside, bytes);
    const Plan::Step arrived = plan.receive(theirs, who_has(other, ranks), 0, {});
    combine(plan, partial, theirs, other < first, arrived, Plan::kNone);
    first = whole;
  }
  plan.copy(data.recv, partial.piece, {partial.done});
}

// Of a reduction's vector, all parts together.
bool suits_nccl(const Plan& plan, ChosenCall what, const Elements& elements) {
  return plan.suits_nccl(what, elements.bytes()) && nccl_knows(plan.combiner());
}

}  // namespace

void plan_reduce(Plan& plan, const ReductionData& data, int root) {
  if (plan.size() == 1) {
    if (!data.in_place) plan.copy(data.recv, data.send, {});
    return;
  }
  plan.tell(Plan::Call::reduce, data.elements.bytes(), root);
  if (suits_nccl(plan, ChosenCall::reduce, data.elements))
    return offer_elements(plan, {.what = ChosenCall::reduce, .send = data.send, .recv = data.recv, .root = root},
                          data.elements, [=](Plan& late) { plan_reduce(late, data, root); });
  switch (plan.choose(ChosenCall::reduce, data.elements.bytes())) {
    case Algorithm::shared:
      return shared_reduce(plan, data, root);
    case Algorithm::flat:
      if (data.elements.bytes() <= kMostKept) return flat(plan, data, root);
      if (plan.combiner().function == nullptr) return to_the_other(plan, data, root);
      // A function of the user's is called behind, so that each rank calls it for its part.
      plan.take(Algorithm::direct);
      return plan_pairwise_reduce(plan, data, root);
    case Algorithm::binomial:
      return binomial(plan, data, root);
    default:
      return plan_pairwise_reduce(plan, data, root);
  }
}

void plan_allreduce(Plan& plan, const ReductionData& data) {
  if (plan.size() == 1) {
    if (!data.in_place) plan.copy(data.recv, data.send, {});
    return;
  }
  plan.tell(Plan::Call::allreduce, data.elements.bytes());
  if (suits_nccl(plan, ChosenCall::allreduce, data.elements))
    return offer_elements(plan, {.what = ChosenCall::allreduce, .send = data.send, .recv = data.recv}, data.elements,
                          [=](Plan& late) { plan_allreduce(late, data); });
  switch (plan.choose(ChosenCall::allreduce, data.elements.bytes())) {
    case Algorithm::shared:
      return shared_reduce(plan, data, kEverybody);
    case Algorithm::shared_parts:
      return shared_parts_allreduce(plan, data);
    case Algorithm::flat:
      return flat(plan, data, kEverybody);
    case Algorithm::ring:
      return plan_ring_allreduce(plan, data);
    case Algorithm::direct:
      return plan_pairwise_reduce(plan, data, kEverybody);
    default:
      return doubling(plan, data);
  }
}

}  // namespace ist
