// Gather and scatter: the root exchanges with all others at once; on a node that is as fast as any tree, and copies nothing
// twice.
#include <algorithm>

#include "collective/collectives.hpp"

namespace ist {

Layout Layout::even(const Elements& each, int ranks) {
  Layout layout;
  for (int rank = 0; rank < ranks; ++rank) {
    layout.parts.push_back(each);
    layout.places.emplace_back(static_cast<std::uint64_t>(rank) * each.bytes().value);
  }
  layout.alike = true;
  return layout;
}

Layout Layout::split(const Elements& all, int ranks) {
  const Parts parts = Parts::even(all, ranks);
  Layout layout;
  Bytes place;
  for (int rank = 0; rank < ranks; ++rank) {
    layout.parts.push_back(parts.elements(rank));
    layout.places.push_back(place);
    place += layout.parts.back().bytes();
  }
  return layout;
}

Bytes Layout::largest() const {
  Bytes most;
  for (const Elements& part : parts) most = std::max(most, part.bytes());
  return most;
}

void plan_gather(Plan& plan, const Piece& send, const Piece& recv, const Layout& layout, int root, bool in_place) {
  plan.walk(plan.rank() == root ? layout.largest() : send.size);
  if (plan.rank() != root) {
    plan.send(send, root, 0, {});
    return;
  }
  for (int from = 0; from < plan.size(); ++from)
    if (from != root) plan.receive(layout.of(recv, from), from, 0, {});
  if (!in_place) plan.copy(layout.of(recv, root), send, {});
}

void plan_scatter(Plan& plan, const Piece& send, const Layout& layout, const Piece& recv, int root, bool in_place) {
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
