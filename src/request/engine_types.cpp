// What messages and receives are made of, told and compared where the setting check asks for it.
#include <cstring>

#include "request/engine.hpp"
#include "request/type_check.hpp"

namespace ist {

void TypeCheck::heard(Rank source, std::uint32_t sequence, std::span<const std::byte> payload) {
  TypeNote note;
  if (payload.size() != sizeof note) return;
  std::memcpy(&note, payload.data(), sizeof note);
  if (note.runs > TypeNote::kMostRuns) return;
  sent_[{source.value, sequence}] = note;
}

SharedLayout TypeCheck::kept(OperationId id) const {
  const auto found = kept_.find(id.value);
  return found == kept_.end() ? nullptr : found->second;
}

std::optional<std::string> TypeCheck::compare(Rank source, std::uint32_t sequence, OperationId id) {
  const auto note = sent_.extract({source.value, sequence});
  const auto types = received_.extract(id.value);
  if (note.empty() || types.empty()) return {};
  const auto found = difference(note.mapped(), *types.mapped());
  return found ? std::optional{described(*found, "the message", "the receive")} : std::nullopt;
}

// It has a place of its own in the order, right before the message's.
void Engine::tell_types(PeerState& to) {
  const auto note = types_->note();
  if (!note) return;
  Envelope envelope;
  envelope.type = EnvelopeType::types;
  envelope.sequence = to.next_sequence++;
  envelope.bytes = sizeof *note;
  post_or_queue(to, envelope, std::as_bytes(std::span{&*note, 1}));
}

// No message, but something about one.
void Engine::take_place(const Arrival& arrival) {
  const Envelope& envelope = arrival.envelope;
  if (envelope.type == EnvelopeType::withdraw) return matcher_.forget_announced(arrival.source, envelope.sender_op);
  if (types_) types_->heard(arrival.source, envelope.sequence + 1, arrival.payload);
}

void Engine::watch(Operation& operation, OperationId id) {
  if (parts_.trace != nullptr) trace_begin(operation);
  if (types_) types_->expect(id);
}

// The receive goes on, and has an error at its end.
void Engine::compare_types(Operation& operation, std::uint32_t index, Rank source, const Envelope& envelope) {
  if (!types_) return;
  const auto found = types_->compare(source, envelope.sequence, operations_.id_of(index));
  if (!found) return;
  operation.outcome.status = {IST_ERR_ARGUMENT, "a message of " + std::to_string(envelope.bytes) + " bytes from " +
                                                    parts_.names[static_cast<std::size_t>(source.value)] + " with tag " +
                                                    std::to_string(envelope.tag) +
                                                    " is not made of what its receive names: " + *found +
                                                    "; its bytes were delivered (found by ISTHMUS_CHECK)"};
}

}  // namespace ist
