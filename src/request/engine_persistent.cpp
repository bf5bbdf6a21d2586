// Requests that are started many times.
#include "request/engine.hpp"
#include "request/type_check.hpp"

namespace ist {

Result<OperationId> Engine::make_persistent(Verb verb, const Piece& piece, std::int32_t peer, std::int32_t tag,
                                            const Scope& scope) {
  const OperationId id = operations_.add();
  if (id.value == 0) return too_many();
  Operation& operation = operations_.at(id.index());
  operation.peer = Rank{peer};
  operation.piece = piece;
  operation.piece.facts = 0;  // known for one operation, and this is for many
  operation.state = state::Persistent{verb, tag, scope, {}, false, types_ ? types_->stated() : nullptr};
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
  const TypeCheck::Stated types{types_.get(), [&] { return persistent.types; }};
  auto started = persistent.verb == Verb::receive
                     ? start_receive(operation.piece, operation.peer.value, persistent.tag, persistent.scope)
                     : start_send(operation.piece, operation.peer, persistent.tag, persistent.scope, &done,
                                  {persistent.verb == Verb::synchronous_send, false});
  if (!started.ok()) return started.status();
  persistent.running = *started;
  persistent.started = true;
  return {};
}

std::optional<OperationId> Engine::last_start(OperationId id) {
  const auto& persistent = std::get<state::Persistent>(operations_.find(id)->state);
  return persistent.started ? std::optional{persistent.running} : std::nullopt;
}

void Engine::make_inactive(OperationId id) {
  auto& persistent = std::get<state::Persistent>(operations_.find(id)->state);
  persistent.running = {};
  persistent.started = false;
}

}  // namespace ist
