// The short ways of small messages between host buffers, for calls that take them without calling anything.
//
// Who calls this : face/ and collective/walk, as Engine says.
// Threads        : under lock().
// Ownership      : as Engine.
// Errors         : none; whatever is out of the ordinary takes the long way, which finds its error.
//
// What is done here for each message is counted (tests/stress/instructions.json). What is rare is elsewhere, and not inline.
#pragma once

#include "path/shm/pair_slots.hpp"
#include "request/engine.hpp"

namespace ist {

template <bool few>
[[gnu::always_inline]] inline bool Engine::send_at_once(const std::byte* bytes, Bytes size, Rank dest, std::int32_t tag,
                                                        std::uint32_t context, bool blocking) {
  PeerState& to = peer(dest);
  // Where anybody is gone, check_peer() has more to say.
  if (size >= to.at_once_below || !to.outbox.empty() || parts_.board.changes() != 0) [[unlikely]]
    return false;
  if (!blocking && size > shown_above_ && heap_->holds(bytes, size)) [[unlikely]]
    return false;
  const Link& link = *to.link;
  PairSlotWriter& slots = *link.outgoing_slots;  // at_once_below says that there are such
  if (few) {
    if (!slots.add(to.next_sequence, context, tag, bytes, size.value)) [[unlikely]]
      return false;
  } else {
    PairSlot* const slot = slots.begin(size.value);
    if (slot == nullptr) [[unlikely]]
      return false;
    // Written where it is to be: an envelope put together elsewhere and copied has to wait until its parts have been written.
    Envelope& envelope = slot->whole.envelope;
    envelope.sequence = to.next_sequence;
    envelope.context = context;
    envelope.tag = tag;
    envelope.type = EnvelopeType::eager;
    envelope.kind = static_cast<std::uint8_t>(KindId::host);
    envelope.flags = 0;
    envelope.bytes = size.value;
    envelope.sender_op = 0;
    envelope.receiver_op = 0;
    slots.finish(*slot, bytes, size.value, blocking);
  }
  if (link.may_sleep) [[unlikely]]
    link.ring();
  ++to.next_sequence;
  to.traffic.sent_by(Way::slot).add(size);
  return true;
}

inline bool Engine::receive_at_once(std::byte* buffer, Bytes room, const Pattern& pattern, const Group* group,
                                    OperationId& id) {
  if (matcher_.unexpected() > 0 || !may_come(pattern.source) || has_sleeper() || watched_ || matcher_.full()) [[unlikely]]
    return false;
  PlainReceive* const receive = operations_.add_plain(id);
  if (receive == nullptr) [[unlikely]]
    return false;
  receive->buffer = buffer;
  receive->room = room;
  receive->source = pattern.source;
  receive->group = group;
  matcher_.post_behind(pattern, id.wire());
  return true;
}

// What nearly all small messages are: their bytes lie in a slot or cell, and fit the receive's host memory.
inline bool is_plain(const Operation& operation, const Envelope& envelope, std::size_t payload) {
  return envelope.type == EnvelopeType::eager && envelope.flags == 0 && operation.piece.kind == KindId::host &&
         envelope.bytes == payload && payload <= operation.piece.size.value && operation.laid == nullptr;
}

// What came with an announcement.
inline Offer offer_in(const Envelope& announcement, std::span<const std::byte> payload) {
  Offer offer;
  if (payload.size() != kOfferPayload) return offer;
  std::memcpy(static_cast<void*>(&offer), payload.data(), kOfferPayload);
  offer.withdrawn = announcement.receiver_op;
  return offer;
}

// Of an operation that has not ended, the outcome holds nothing else yet.
inline void note(Operation& operation, Rank source, const Envelope& envelope, ist_carrier carrier) {
  operation.peer = source;
  operation.outcome.source = source;
  operation.outcome.tag = envelope.tag;
  operation.outcome.carrier = carrier;
  operation.outcome.bytes = Bytes{envelope.bytes};
}

inline PlainReceive* Engine::find_plain(OperationId id) {
  PlainReceive* const done = operations_.find_done(id);
  if (done != nullptr) [[likely]]
    return done;
  return look_for_plain(id);
}

inline Operation* Engine::find_complete(OperationId id) {
  Operation* operation = operations_.find(id);
  if (operation == nullptr || operation->released || operation->message) [[unlikely]]
    return nullptr;
  if (!complete(*operation) && !look_once(*operation)) return nullptr;
  return operation->outcome.status.ok() ? operation : nullptr;
}

inline void Engine::let_go(OperationId id) {
  if (Operation& operation = operations_.at(id.index()); operation.active) [[unlikely]] {
    operation.released = true;  // step_active takes it off its list and releases it
  } else {
    operations_.release(id.index());
  }
}

}  // namespace ist
