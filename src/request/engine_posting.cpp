// Envelopes on their way out: at once where there is room, else behind those that wait.
#include "request/engine.hpp"

namespace ist {

void Engine::post_or_queue(PeerState& to, const Envelope& envelope, std::span<const std::byte> payload) {
  if (to.outbox.empty() && to.link->post(envelope, payload)) return;
  // Whoever is gone makes no room any more, and fail_for has been here.
  if (!check_peer(to.rank).ok()) return;
  to.outbox.push_back({envelope, {payload.begin(), payload.end()}, 0, false});
  ++posting_;
}

// What has begun, and cannot be taken back, is heard of in any case: where memory runs out, before its next step. Envelopes of later
// messages may go before it, since it has its place in the order.
void Engine::say(Operation& operation) {
  operation.unsaid = true;
  post_or_queue(peer(operation.peer), operation.envelope);
  operation.unsaid = false;
}

void Engine::say_soon(Operation& operation) noexcept try { say(operation); } catch (const std::bad_alloc&) {
  return;
}

Status Engine::tell(Rank to, std::uint32_t context, std::int32_t tag, std::span<const std::byte> payload) {
  IST_TRY(check_peer(to));
  Envelope envelope;
  envelope.type = EnvelopeType::notice;
  envelope.context = context;
  envelope.tag = tag;
  envelope.bytes = payload.size();
  post_or_queue(peer(to), envelope, payload);
  return {};
}

bool Engine::drain_outbox(PeerState& to) {
  bool moved = false;
  for (; !to.places.empty() && to.link->post(to.places.front().envelope, {}); --posting_, moved = true)
    to.places.pop_front();
  while (!to.outbox.empty()) {
    const Posting& posting = to.outbox.front();
    const bool placed = posting.is_operation ? try_send(operations_.at(posting.operation), posting.operation)
                                             : to.link->post(posting.envelope, posting.payload);
    if (!placed) break;
    to.outbox.pop_front();
    --posting_;
    moved = true;
  }
  return moved;
}

}  // namespace ist
