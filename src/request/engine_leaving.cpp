// What becomes of operations when a rank leaves or dies. Model of the order in which this rank looks: models/leaving.pml.
#include <variant>

#include "request/engine.hpp"

namespace ist {

// A broken socket looks like a death; a rank that had left before says otherwise, unless it left because of one.
Status Engine::explain(Rank rank, const Status& status) const {
  for (const auto& path : parts_.paths) {
    if (status.code() != IST_ERR_PEER_DEAD || !path->has_left(rank)) continue;
    if (const Rank dead = path->death_told_by(rank); dead > kNobody && dead != parts_.rank && dead.value < size())
      return died(dead);
    return {IST_ERR_PEER_LEFT,
            parts_.names[static_cast<std::size_t>(rank.value)] + " left the world before this operation could complete"};
  }
  return status;
}

Status Engine::died(Rank rank) const {
  return {IST_ERR_PEER_DEAD,
          parts_.names[static_cast<std::size_t>(rank.value)] + " died; this world can no longer be used, destroy it"};
}

Status Engine::gone(Rank rank) const {
  const std::string& name = parts_.names[static_cast<std::size_t>(rank.value)];
  if (parts_.board.fate(rank) == AbortBoard::Fate::left)
    return {IST_ERR_PEER_LEFT, name + " left the world before this operation could complete"};
  return died(rank);
}

void Engine::look_at_board() {
  const Status failed_before = world_failed_;
  try {
    end_what_is_lost();
  } catch (...) {
    // Memory ran out before all of that was done: what they published is still there, and all of it is looked at again.
    board_seen_ = parts_.board.changes() - 1;
    world_failed_ = failed_before;
    throw;
  }
}

void Engine::end_what_is_lost() {
  board_seen_ = parts_.board.changes();
  // Guard MARK_FIRST of models/leaving.pml: who goes while this rank looks is seen at the next look, or what it publishes meanwhile
  // would be lost.
  const Rank dead = parts_.board.first_dead();
  for (PeerState& other : peers_) other.gone = parts_.board.fate(other.rank) != AbortBoard::Fate::present;
  // What the lost ranks published before they went has arrived: it is taken first, envelopes and then slots of the rings.
  if (!take_last_arrivals()) return;
  for (PeerState& from : peers_) {
    if (!from.gone || !from.receiver) continue;
    while (!from.receiver->idle() && (step_receiver(from) || from.receiver->copying())) {
    }
  }
  finish_ended();
  if (dead.value >= 0 && world_failed_.ok()) {
    world_failed_ = gone(dead);
    fail_for(dead, true);
    if (parts_.trace != nullptr) parts_.trace->flush();
    return;
  }
  for (const PeerState& other : peers_)
    if (other.gone && parts_.board.fate(other.rank) == AbortBoard::Fate::left) fail_for(other.rank, false);
}

// Ends every operation that can no longer complete: those with `lost`, or all that need any other process.
void Engine::fail_for(Rank lost, bool everything) {
  const Status why = gone(lost);
  for (std::int32_t r = 0; r < size(); ++r) {
    if (!everything && r != lost.value) continue;
    PeerState& to = peer(Rank{r});
    if (to.sender) to.sender->abandon(why, ended_);
    if (to.receiver) to.receiver->abandon(why, ended_);
    posting_ -= to.outbox.size() + to.places.size();
    to.outbox.clear();
    to.places.clear();
    matcher_.forget_announced(Rank{r});
  }
  for (std::uint32_t index = 0; index < operations_.size(); ++index) {
    if (!operations_.used(index)) continue;
    Operation& operation = operations_.at(index);
    if (complete(operation)) continue;
    const auto* claimed = std::get_if<state::Claimed>(&operation.state);
    const auto* bouncing = std::get_if<state::Bouncing>(&operation.state);
    const auto* leaving = std::get_if<state::Leaving>(&operation.state);
    const bool local =
        operation.in<state::Delivering>() || operation.in<state::Unpacking>() || operation.in<state::Taken>() ||
        operation.in<state::EmptyingCell>() || operation.in<state::FillingCell>() || operation.in<state::Putting>() ||
        operation.in<state::Fetching>() || operation.in<state::Persistent>() || operation.in<state::Running>() ||
        operation.in_mail() || (leaving && leaving->kernel_over) || (bouncing && bouncing->arrived == bouncing->to.size) ||
        (claimed && claimed->message.envelope.type != EnvelopeType::announce);  // needs no peer any more
    const bool concerned =
        everything || operation.peer == lost || (operation.peer.value == kAnySource && !anyone_sends(operation.group.get()));
    if ((local && !(concerned && leave_copy(operation))) || !concerned) continue;
    if (operation.in<state::Posted>()) {
      const std::uint32_t wire = operations_.id_of(index).wire();
      static_cast<void>(uninvite(operation, wire));
      matcher_.withdraw(wire);
    }
    settle(operation);
    finish(operation, index, why);
  }
  ended_.clear();  // their operations were finished just now
}

}  // namespace ist
