// Rings that cannot be opened by their receiver.
//
// It tells the sender, who drops the ring and makes another one for its next message. What was in the old one is lost, also of sends
// that are over. But only the sender knows what that was: another message that the receiver expects may be on its way into its buffer,
// by a loan, and must not end before. So the receiver asks of each of them, and those that went through the ring are refused.
#include <optional>
#include <vector>

#include "request/engine.hpp"

namespace ist {
namespace {

// The send that a cleared receive waits for.
std::optional<std::uint32_t> sender_of(const Operation& receive) {
  if (const auto* streaming = std::get_if<state::Streaming>(&receive.state)) return streaming->sender_op;
  if (const auto* bouncing = std::get_if<state::Bouncing>(&receive.state)) return bouncing->sender.sender_op;
  return std::nullopt;
}

}  // namespace

bool Engine::step_receiver(PeerState& other, int most) {
  RingReceiver& receiver = *other.receiver;
  if (receiver.connected()) return receiver.step(ended_, most);
  auto ring = other.link->incoming();
  if (ring.ok()) {
    if (*ring == nullptr) return false;
    receiver.connect(**ring);
    return receiver.step(ended_, most);
  }
  // Whoever is gone answers nothing, and copies nothing any more.
  if (ring.status().code() == IST_ERR_PEER_DEAD || parts_.board.fate(other.rank) != AbortBoard::Fate::present) {
    receiver.abandon(explain(other.rank, ring.status()), ended_);
    return false;
  }
  other.ring_lost = ring.status();
  std::vector<Envelope> questions;
  for (const std::uint32_t wire : receiver.expected()) {
    const Operation* const operation = operations_.find_wire(wire);
    const auto sender = operation != nullptr ? sender_of(*operation) : std::nullopt;
    if (!sender) continue;
    Envelope& question = questions.emplace_back();
    question.type = EnvelopeType::ring_lost;
    question.sender_op = *sender;
    question.receiver_op = wire;
  }
  std::size_t left = questions.size();
  for (Envelope& question : questions) {
    question.bytes = --left;
    post_or_queue(other, question);
  }
  return true;
}

void Engine::on_ring_lost(const Arrival& arrival) {
  const Envelope& question = arrival.envelope;
  PeerState& to = peer(arrival.source);
  // What is over went through the ring: had it gone another way, the receiver would have heard of it, or hears of it before it hears
  // this. What is not yet cleared, or copied, goes its way, perhaps through the next ring.
  const Operation* const asked = operations_.find_wire(question.sender_op);
  const bool in_ring = asked == nullptr || complete(*asked) || asked->in<state::Leaving>() || asked->in<state::Streaming>();
  if (to.ring_refused.ok())
    to.ring_refused = {IST_ERR_SYSTEM, parts_.names[static_cast<std::size_t>(arrival.source.value)] +
                                           " could not open the ring for this message; its own error says why"};
  if (to.sender) {
    std::vector<Finished> ended;
    to.sender->abandon(to.ring_refused, ended);
    to.sender.reset();
    to.link->drop_outgoing();
    for (const Finished& end : ended)
      if (Operation* operation = operations_.find_wire(end.operation))
        finish(*operation, end.operation & 0xfffff, end.status);
  }
  if (in_ring) post_refusal(to, question.receiver_op, kEnvelopeFailed);
  if (question.bytes == 0) to.ring_refused = {};
}

}  // namespace ist
