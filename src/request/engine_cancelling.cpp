// Operations that are given up: receives that no message has matched, sends that nobody has taken, or whose bytes cannot be read, and this
// rank's part in collective calls.
#include <algorithm>
#include <new>
#include <vector>

#include "request/engine.hpp"

namespace ist {

void Engine::cancel(OperationId id) {
  Operation* const found = operations_.find(id);
  if (found == nullptr) return;
  Operation& operation = *found;
  if (operation.in<state::Running>()) return give_up_call(operation, id.index());
  if (operation.in<state::Posted>() && uninvite(operation, id.wire()))
    matcher_.withdraw(id.wire());
  else if (!operation.sends || !take_back(operation, id.index()))
    return;
  const bool to_itself = operation.sends && operation.peer == parts_.rank;
  operation.outcome = {Status{}, Rank{kAnySource}, kAnyTag, IST_CARRIER_NONE, Bytes{}, nullptr, true};
  finish(operation, id.index(), {});
  if (!to_itself) return;
  // This rank hears of it now: a receive that begins after this one has been waited for must not meet what was announced.
  PeerState& own = peer(parts_.rank);
  try {
    for (bool moved = true; moved;) {
      moved = posting_ > 0 && drain_outbox(own);
      while (const auto arrival = own.path->next()) {
        on_arrival(*own.path, *arrival);
        moved = true;
      }
    }
  } catch (const std::bad_alloc&) {
    return;  // it is given up all the same; a later look hears of it
  }
}

bool Engine::cancel_receive(OperationId id) {
  Operation& operation = *operations_.find(id);
  if (!operation.in<state::Posted>() || !uninvite(operation, id.wire())) return false;
  operation.types.reset();
  matcher_.withdraw(id.wire());
  operations_.release(id.index());
  return true;
}

// False: it ends by itself. Nobody answers this: a receiver that is not looking may be the reason for giving up. So the receiver may have
// matched the message in the meantime. Then it has read all of it before finish() ends the offer, or on_clear() refuses what it asks for.
bool Engine::take_back(Operation& operation, std::uint32_t index) {
  PeerState& to = peer(operation.peer);
  Envelope envelope = operation.envelope;
  envelope.type = EnvelopeType::withdraw;
  envelope.sender_op = operation.wire;
  envelope.bytes = 0;
  envelope.flags = 0;
  // Filled first: where memory runs out in that, nothing is taken back.
  if (operation.in<state::Announced>() && !operation.lent) {
    // Behind the announcement, whatever carries either of them.
    envelope.sequence = to.next_sequence;
    fill_place(to, envelope);
    ++to.next_sequence;
  } else if (operation.in<state::Queued>()) {
    // Its place in the order is filled by this.
    const auto waiting = std::find_if(to.outbox.begin(), to.outbox.end(), [index](const Posting& posting) {
      return posting.is_operation && posting.operation == index;
    });
    if (waiting == to.outbox.end()) return false;
    fill_place(to, envelope);
    to.outbox.erase(waiting);
    --posting_;
  } else if (auto* filling = std::get_if<state::FillingCell>(&operation.state)) {
    // Its place is filled without waiting for the user's kernel; the cell is given back, and the send over, when that has ended.
    unused_cells_.reserve(unused_cells_.size() + 1);
    fill_place(to, envelope);
    unused_cells_.push_back({std::move(filling->cell), operation.wire});
    operation.still_read = true;
  } else {
    return false;
  }
  return true;
}

// No rank can take a call back that others may be in the midst of. It goes on as one that has failed here: nothing of the user's is read or
// written by what begins from now on, and whoever needs something of this rank is told. What peers are at work on already ends first.
void Engine::give_up_call(Operation& operation, std::uint32_t index) {
  ScheduleRun& run = *std::get<state::Running>(operation.state).run;
  if (run.abandoned || run.cancelled) return;
  run.cancelled = true;
  give_up(run, {IST_ERR_PENDING, "this rank cancelled the call"}, parts_.rank);
  run.schedule->before().clear();
  for (const std::uint32_t i : parts_of(index)) {
    Operation& part = operations_.at(i);
    if (run.schedule->at(part.step).regardless) continue;
    if (part.in<state::Posted>()) {
      part.piece = host_piece(nullptr, Bytes{});
    } else if (part.in<state::Announced>() && !part.lent) {
      // Without a word: whoever asks for the bytes is refused, and hears why.
      peer(part.peer).note_given_up(part.envelope.sequence, {run.status.code(), run.about});
      finish(part, i, run.status);
    } else if (part.in<state::Queued>() && take_back(part, i)) {
      const Schedule::StepId step = part.step;
      part.parent = 0;
      part.released = true;
      finish(part, i, run.status);
      start_message(run, step, index);
    }
  }
  step_schedule(operation, index);
}

void Engine::post_refusal(PeerState& to, std::uint32_t receiver_op, std::uint16_t flags, const GivenUp* why) {
  Envelope refusal;
  refusal.type = EnvelopeType::refuse;
  refusal.flags = flags;
  refusal.receiver_op = receiver_op;
  if (why != nullptr) {
    refusal.flags |= kEnvelopeGaveUp;
    refusal.sender_op = static_cast<std::uint32_t>(why->about.value);
    refusal.bytes = static_cast<std::uint64_t>(why->code);
  }
  post_or_queue(to, refusal);
}

// This side gives up a message that is cleared.
void Engine::refuse(Operation& operation, std::uint32_t index, std::uint32_t receiver_op, const Status& why) {
  post_refusal(peer(operation.peer), receiver_op);
  finish(operation, index, why);
}

// The message's place in the order must be filled all the same: an empty envelope that says so.
void Engine::fail_send(Operation& operation, std::uint32_t index, const Status& why) {
  operation.state = state::Failing{why};
  set_off(operation, index);
}

bool Engine::fill_place_of(Operation& operation, std::uint32_t index) {
  Envelope envelope = operation.envelope;
  envelope.flags = kEnvelopeFailed;
  fill_place(peer(operation.peer), envelope);
  const Status why = std::get<state::Failing>(operation.state).why;
  finish(operation, index, why);
  return true;
}

// Before what is queued, which may wait for a cell, while the receiver keeps those of later messages until this place is filled.
void Engine::fill_place(PeerState& to, const Envelope& envelope) {
  if (to.link->post(envelope, {}) || !check_peer(to.rank).ok()) return;
  to.places.push_back({envelope, {}, 0, false});
  ++posting_;
}

}  // namespace ist
