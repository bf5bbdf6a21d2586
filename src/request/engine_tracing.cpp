// What the engine tells the trace. Where there is none, little of this is called.
#include "request/engine.hpp"

namespace ist {
namespace {

// Messages inside collective calls have tags that users cannot give.
const char* category(const Operation& operation, std::int32_t tag) {
  if (operation.in<state::Running>()) return "call";
  return operation.parent != 0 || tag < kAnyTag ? "step" : "message";
}

}  // namespace

void Engine::trace_begin(Operation& operation) {
  operation.traced.id = parts_.trace->next_id();
  operation.traced.begun = Trace::Clock::now();
}

void Engine::trace_at_once(const Destination& order, Bytes size, Trace::Clock::time_point begun) {
  Trace::Span span;
  span.category = order.tag < 0 ? "step" : "message";
  span.name = "send";
  span.id = parts_.trace->next_id();
  span.begin = begun;
  span.end = Trace::Clock::now();
  span.peer = order.rank.value;
  span.tag = order.tag;
  span.bytes = static_cast<std::int64_t>(size.value);
  span.carrier = carrier_name(IST_CARRIER_SLOT);
  span.comm = parts_.trace->keep(name_of(order.scope.group.get()));
  parts_.trace->add(span);
}

void Engine::copying(Operation& operation) const {
  if (parts_.trace != nullptr) operation.traced.copying = Trace::Clock::now();
}

void Engine::copied(const Operation& operation, const char* what, Bytes size) {
  if (parts_.trace != nullptr) trace_copy(operation, what, size);
}

// As trace_end().
void Engine::trace_copy(const Operation& operation, const char* what, Bytes size) try {
  Trace::Span span;
  span.category = category(operation, operation.outcome.tag);
  span.name = what;
  span.id = operation.traced.id;
  span.begin = operation.traced.copying;
  span.end = Trace::Clock::now();
  span.bytes = static_cast<std::int64_t>(size.value);
  parts_.trace->add(span);
} catch (const std::bad_alloc&) {
  return;
}

// Throws nothing: what there is no memory for is missing in the trace.
void Engine::trace_end(Operation& operation, bool unfinished) try {
  if (operation.traced.id == 0) return;  // a message that was claimed, and never received
  const Outcome& outcome = operation.outcome;
  const auto* running = std::get_if<state::Running>(&operation.state);
  Trace::Span span;
  const char* const call = running != nullptr ? parts_.trace->keep(running->run->schedule->call())
                                              : std::exchange(operation.traced.call, nullptr);
  span.category = call != nullptr ? "call" : category(operation, outcome.tag);
  span.name = call != nullptr ? call : operation.sends ? "send" : "receive";
  span.id = operation.traced.id;
  span.begin = operation.traced.begun;
  span.end = Trace::Clock::now();
  span.peer = operation.peer.value;
  span.tag = outcome.tag;
  if (call == nullptr) span.bytes = static_cast<std::int64_t>(unfinished ? operation.piece.size.value : outcome.bytes.value);
  if (const auto way = way_taken(operation); way && !unfinished) span.carrier = carrier_name(ist::carrier_of(*way));
  span.comm = parts_.trace->keep(name_of(operation.group.get()));
  span.code = outcome.cancelled ? IST_CANCELLED : outcome.status.code();
  span.unfinished = unfinished;
  parts_.trace->add(span);
  operation.traced.id = 0;
} catch (const std::bad_alloc&) {
  operation.traced.id = 0;
}

// What is given up with the world.
void Engine::trace_unfinished() {
  for (std::uint32_t index = 0; index < operations_.size(); ++index) {
    if (!operations_.used(index)) continue;
    if (Operation& operation = operations_.at(index); !complete(operation)) trace_end(operation, true);
  }
}

}  // namespace ist
