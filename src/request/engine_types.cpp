// What messages and receives are made of, told and compared where the setting check asks for it.
#include <cstring>

#include "request/engine.hpp"
#include "request/type_check.hpp"

namespace ist {

std::optional<std::string> TypeCheck::compare(const Note& sent, const SharedLayout& received) {
  TypeNote note;
  if (received == nullptr || sent.size() != sizeof note) return {};
  std::memcpy(&note, sent.data(), sizeof note);
  if (note.runs > TypeNote::kMostRuns) return {};
  const auto found = difference(note, *received);
  if (!found) return {};
  return described(*found, {"the message", note}, {"the receive", note_of(*received)});
}

// It has a place of its own in the order, right before the message's, which nothing may refuse then: false, and nothing was told, where
// there is no room for it.
bool Engine::tell_types(PeerState& to) {
  if (!operations_.has_room()) return false;
  const SharedLayout types = types_->stated();
  if (types == nullptr) return true;
  const TypeNote note = note_of(*types);
  Envelope envelope;
  envelope.type = EnvelopeType::types;
  envelope.sequence = to.next_sequence;
  envelope.bytes = sizeof note;
  post_or_queue(to, envelope, std::as_bytes(std::span{&note, 1}));
  ++to.next_sequence;  // not before: where memory runs out nobody waits for that place
  return true;
}

// No message, but what the next one is made of, or that there is none.
void Engine::take_place(const Arrival& arrival) {
  const bool told = arrival.envelope.type == EnvelopeType::types;
  if (types_) types_->heard(arrival.source, told ? arrival.payload : std::span<const std::byte>{});
  if (arrival.envelope.type == EnvelopeType::withdraw) matcher_.forget_announced(arrival.source, arrival.envelope.sender_op);
}

void Engine::watch(Operation& operation) {
  if (parts_.trace != nullptr) trace_begin(operation);
  if (types_) operation.types = types_->stated();
}

void Engine::end_watch(Operation& operation) {
  if (parts_.trace != nullptr) trace_end(operation);
  operation.types.reset();
}

// The receive goes on, and has an error at its end; none where there is no memory for it.
void Engine::compare_types(Operation& operation, Rank source, const Envelope& envelope,
                           const std::vector<std::byte>& note) const try {
  const SharedLayout types = std::move(operation.types);
  if ((envelope.flags & kEnvelopeFailed) != 0) return;
  const auto found = TypeCheck::compare(note, types);
  if (!found) return;
  operation.outcome.status = {IST_ERR_ARGUMENT, "a message of " + std::to_string(envelope.bytes) + " bytes from " +
                                                    parts_.names[static_cast<std::size_t>(source.value)] + " with tag " +
                                                    std::to_string(envelope.tag) +
                                                    " is not made of what its receive names: " + *found +
                                                    "; its bytes were delivered. Name the same types on both sides, or "
                                                    "IST_BYTE on one (found by ISTHMUS_CHECK)"};
} catch (const std::bad_alloc&) {
  return;
}

}  // namespace ist
