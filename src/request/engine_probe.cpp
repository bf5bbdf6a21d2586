// Looking at messages before they are received, and requests that are started many times.
#include <utility>

#include "request/engine.hpp"

namespace ist {

// Is there anybody besides this rank who could still send in that group?
bool Engine::anyone_present(const Group* group) const {
  const int members = group ? group->size() : size();
  for (int i = 0; i < members; ++i) {
    const Rank rank = group ? group->to_world(i) : Rank{i};
    if (rank != parts_.rank && parts_.board.fate(rank) == AbortBoard::Fate::present) return true;
  }
  return false;
}

Status Engine::check_source(std::int32_t source, const Group* group) const {
  if (source != kAnySource) return check_peer(Rank{source});
  if (!world_failed_.ok()) return world_failed_;
  const int members = group ? group->size() : size();
  if (members == 1 || anyone_present(group)) return {};  // alone, one may still send to oneself
  for (int i = 0;; ++i)
    if (const Rank rank = group ? group->to_world(i) : Rank{i}; rank != parts_.rank) return gone(rank);
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
  Operation& operation = *operations_.find(id);
  if (complete(operation)) {  // its sender went before: the outcome says so
    operation.message = false;
    return {};
  }
  Ticket ready;
  if (piece.kind != KindId::host) {
    use_devices(piece);
    auto asked = parts_.kinds.ready(piece);
    if (!asked.ok()) return asked.status();
    ready = std::move(*asked);
  }
  wake_sleeper();
  operation.message = false;
  operation.piece = piece;
  operation.ready = std::move(ready);
  Unexpected message = std::move(std::get<state::Claimed>(operation.state).message);
  take_kept(operation, id.index(), std::move(message));
  return {};
}

Result<OperationId> Engine::make_persistent(Verb verb, const Piece& piece, std::int32_t peer, std::int32_t tag,
                                            const Scope& scope) {
  const OperationId id = operations_.add();
  if (id.value == 0) return too_many();
  Operation& operation = operations_.at(id.index());
  operation.peer = Rank{peer};
  operation.piece = piece;
  operation.state = state::Persistent{verb, tag, scope, {}, false};
  return id;
}

Status Engine::start_again(OperationId id) {
  Operation& operation = *operations_.find(id);
  auto& persistent = std::get<state::Persistent>(operation.state);
  if (persistent.running.value != 0 || persistent.started)
    return {IST_ERR_PENDING, "the request is still active; wait for it before it is started again"};
  if (operation.peer.value == IST_PROC_NULL) {
    persistent.started = true;
    return {};
  }
  bool done = false;
  auto started = persistent.verb == Verb::receive
                     ? start_receive(operation.piece, operation.peer.value, persistent.tag, persistent.scope)
                     : start_send(operation.piece, operation.peer, persistent.tag, persistent.scope, &done,
                                  persistent.verb == Verb::synchronous_send);
  if (!started.ok()) return started.status();
  persistent.running = *started;
  persistent.started = true;
  return {};
}

}  // namespace ist
