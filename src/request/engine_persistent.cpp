// Requests that are started many times.
#include "request/engine.hpp"
#include "request/type_check.hpp"

namespace ist {

Result<OperationId> Engine::make_persistent(state::Persistent what, const Piece& piece, std::int32_t peer) {
  const OperationId id = operations_.add();
  if (id.value == 0) return too_many();
  Operation& operation = operations_.at(id.index());
  operation.peer = Rank{peer};
  operation.piece = piece;
  operation.piece.facts = 0;  // known for one operation, and this is for many
  what.types = types_ ? types_->stated() : nullptr;
  operation.state = std::move(what);
  return id;
}

Status Engine::start_again(OperationId id, std::unique_ptr<LaidOut> laid) {
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
  const std::int32_t tag = persistent.tag;
  const Scope& scope = persistent.scope;
  const SendMode mode{.synchronous = persistent.verb == Verb::synchronous_send, .in_windows = true};
  Result<OperationId> started{OperationId{}};
  if (persistent.verb == Verb::receive)
    started = laid ? start_receive_laid(std::move(laid), operation.peer.value, tag, scope)
                   : start_receive(operation.piece, operation.peer.value, tag, scope);
  else
    started = laid ? start_send_laid(std::move(laid), operation.peer, tag, scope, &done, mode)
                   : start_send(operation.piece, operation.peer, tag, scope, &done, mode);
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
