// Looking at messages before they are received.
#include <new>
#include <utility>

#include "request/engine.hpp"

namespace ist {

// Is there anybody besides this rank in that group from whom something could still come?
bool Engine::anyone_sends(const Group* group) const {
  const int members = group ? group->size() : size();
  for (int i = 0; i < members; ++i) {
    const Rank rank = group ? group->to_world(i) : Rank{i};
    const PeerState& from = peers_[static_cast<std::size_t>(rank.value)];
    if (rank != parts_.rank && !from.gone && from.link != nullptr) return true;
  }
  return false;
}

// Is it, or for any source one of that group, a rank that this one could hear, and that has left? The next look at the board ends what
// waits for it.
bool Engine::anyone_left(std::int32_t source, const Group* group) const {
  const auto left = [this](Rank rank) {
    return rank != parts_.rank && parts_.board.fate(rank) == AbortBoard::Fate::left &&
           peers_[static_cast<std::size_t>(rank.value)].link != nullptr;
  };
  if (source != kAnySource) return left(Rank{source});
  const int members = group ? group->size() : size();
  for (int i = 0; i < members; ++i)
    if (left(group ? group->to_world(i) : Rank{i})) return true;
  return false;
}

Status Engine::check_source(std::int32_t source, const Group* group) const {
  if (source != kAnySource) return check_peer(Rank{source});
  if (!world_failed_.ok()) return world_failed_;
  const int members = group ? group->size() : size();
  if (members == 1 || anyone_sends(group)) return {};  // alone, one may still send to oneself
  for (int i = 0;; ++i)
    if (const Rank rank = group ? group->to_world(i) : Rank{i}; rank != parts_.rank) return check_peer(rank);
}

const Unexpected* Engine::probe(std::int32_t source, std::int32_t tag, const Scope& scope) const {
  return matcher_.peek({scope.context, source, tag});
}

Result<OperationId> Engine::claim(std::int32_t source, std::int32_t tag, const Scope& scope) {
  const Pattern pattern{scope.context, source, tag};
  const Unexpected* found = matcher_.peek(pattern);
  if (found == nullptr) return OperationId{};
  const OperationId id = operations_.add();
  if (id.value == 0) return too_many();
  Operation& operation = operations_.at(id.index());
  operation.peer = found->source;
  operation.group = scope.group;
  operation.message = true;
  operation.state = state::Claimed{std::move(*matcher_.claim(pattern))};
  return id;
}

Status Engine::receive_claimed(OperationId id, const Piece& piece) {
  Operation* const found = operations_.find(id);
  if (found == nullptr || !found->message)
    return {IST_ERR_HANDLE, "the message was received by another thread meanwhile; a message is received once"};
  Operation& operation = *found;
  if (complete(operation)) {  // its sender went before: the outcome says so
    operation.message = false;
    return {};
  }
  auto ready = pending_work(piece);
  if (!ready.ok()) return ready.status();
  wake_sleeper();
  operation.message = false;
  operation.piece = piece;
  operation.ready = std::move(*ready);
  if (watched_) watch(operation);
  Unexpected message = std::move(std::get<state::Claimed>(operation.state).message);
  try {
    take_kept(operation, id.index(), message);
  } catch (const std::bad_alloc&) {
    operation.state = state::Claimed{std::move(message)};  // as it was
    operation.message = true;
    operation.outcome = {};
    throw;
  }
  return {};
}

}  // namespace ist
