// Gather and scatter: the root exchanges with all others at once; on a node that is as fast as any tree, and copies nothing
// twice.
#include <algorithm>

#include "collective/collectives.hpp"

namespace ist {

Bytes Division::largest() const {
  if (parts_.empty()) return Bytes{(least_ + (longer_ > 0 ? 1 : 0)) * each_.value};
  Bytes most;
  for (int rank = 0; rank < ranks_; ++rank) most = std::max(most, elements(rank).bytes());
  return most;
}

Bytes Division::total() const {
  if (parts_.empty()) return Bytes{(least_ * static_cast<std::uint64_t>(ranks_) + longer_) * each_.value};
  Bytes all;
  for (int rank = 0; rank < ranks_; ++rank) all += elements(rank).bytes();
  return all;
}

Bytes Division::span() const {
  if (parts_.empty()) return total();
  Bytes end;
  for (int rank = 0; rank < ranks_; ++rank)
    if (elements(rank).count > 0) end = std::max(end, place(rank) + elements(rank).bytes());
  return end;
}

void plan_gather(Plan& plan, const Piece& send, const Piece& recv, const Division& layout, int root, bool in_place) {
  plan.tell(Plan::Call::gather, Bytes{}, root);
  plan.walk(plan.rank() == root ? layout.largest() : send.size);
  if (plan.rank() != root) {
    plan.send(send, root, 0, {});
    return;
  }
  for (int from = 0; from < plan.size(); ++from)
    if (from != root) plan.receive(layout.of(recv, from), from, 0, {});
  if (!in_place) plan.copy(layout.of(recv, root), send, {});
}

void plan_scatter(Plan& plan, const Piece& send, const Division& layout, const Piece& recv, int root, bool in_place) {
  plan.tell(Plan::Call::scatter, Bytes{}, root);
  plan.walk(plan.rank() == root ? layout.largest() : recv.size);
  if (plan.rank() != root) {
    plan.receive(recv, root, 0, {});
    return;
  }
  for (int distance = 1; distance < plan.size(); ++distance) {
    const int to = (root + distance) % plan.size();
    plan.send(layout.of(send, to), to, 0, {});
  }
  if (!in_place) plan.copy(recv, layout.of(send, root), {});
}

}  // namespace ist
