// Gather and scatter: short parts through memory that all ranks see; of others the root exchanges with all ranks at once, which on a node is as
// fast as any tree, and copies nothing twice.
#include <algorithm>

#include "collective/collectives.hpp"
#include "collective/shared.hpp"

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

namespace {

// How the root has it, as every rank knows it where all parts are the same.
Division layout_of(const Plan& plan, const RootedParts& parts) {
  return plan.rank() == parts.root ? parts.layout : Division::even({parts.own.size.value, Bytes{1}}, plan.size());
}

// Where all parts are the same.
Bytes each_of(const Plan& plan, const RootedParts& parts) { return layout_of(plan, parts).elements(0).bytes(); }

// Is it shared? By messages there is one way. Tells either.
bool tell_way(Plan& plan, ChosenCall call, const RootedParts& parts) {
  const bool gathers = call == ChosenCall::gather;
  const bool shared = parts.alike && plan.size() > 1 &&
                      plan.take(plan.comm().algorithm_of_parts(call, each_of(plan, parts))) == Algorithm::shared;
  if (shared)
    plan.tell(gathers ? Plan::Call::shared_gather : Plan::Call::shared_scatter, each_of(plan, parts), parts.root);
  else
    plan.tell(gathers ? Plan::Call::gather : Plan::Call::scatter, Bytes{}, parts.root);
  return shared;
}

}  // namespace

void plan_gather(Plan& plan, const RootedParts& parts) {
  if (tell_way(plan, ChosenCall::gather, parts)) return shared_gather(plan, parts, layout_of(plan, parts));
  const bool is_root = plan.rank() == parts.root;
  plan.walk_longer(is_root ? parts.layout.largest() : parts.own.size, true);
  if (!is_root) {
    plan.send(parts.own, parts.root, 0, {});
    return;
  }
  Plan::Step first = Plan::kNone;
  for (int from = 0; from < plan.size(); ++from) {
    if (from == parts.root) continue;
    const Plan::Step heard = plan.receive(parts.layout.of(parts.whole, from), from, 0, {});
    if (first == Plan::kNone) first = heard;
  }
  if (!parts.in_place) plan.copy(parts.layout.of(parts.whole, parts.root), parts.own, {plan.after_others(first)});
}

void plan_scatter(Plan& plan, const RootedParts& parts) {
  if (tell_way(plan, ChosenCall::scatter, parts)) return shared_scatter(plan, parts, layout_of(plan, parts));
  const bool is_root = plan.rank() == parts.root;
  plan.walk_longer(is_root ? parts.layout.largest() : parts.own.size);
  if (!is_root) {
    plan.receive(parts.own, parts.root, 0, {});
    return;
  }
  Plan::Step first = Plan::kNone;
  for (int distance = 1; distance < plan.size(); ++distance) {
    const int to = (parts.root + distance) % plan.size();
    const Plan::Step told = plan.send(parts.layout.of(parts.whole, to), to, 0, {});
    if (distance == 1) first = told;
  }
  if (!parts.in_place) plan.copy(parts.own, parts.layout.of(parts.whole, parts.root), {plan.after_others(first)});
}

}  // namespace ist
