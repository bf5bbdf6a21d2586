// Receives whose callers look for them until they are there.
#include <cstring>

#include "request/engine.hpp"

namespace ist {

bool Engine::look_for(AwaitedReceive& receive, bool& moved) {
  if (parts_.board.changes() != receive.board_seen) {
    receive.board_seen = parts_.board.changes();
    if (!check_source(receive.pattern.source, receive.group).ok()) return false;
  }
  if (matcher_.unexpected() > 0 && matcher_.peek(receive.pattern) != nullptr) return false;
  awaited_ = &receive;
  moved = progress() || (linger() && progress());
  awaited_ = nullptr;
  return !receive.closed;
}

void Engine::receive_awaited(Path& path, const Arrival& arrival) {
  AwaitedReceive& receive = *awaited_;
  receive.received = true;
  Outcome& outcome = receive.outcome;
  outcome.source = arrival.source;
  outcome.tag = arrival.envelope.tag;
  outcome.carrier = arrival.in_cell ? IST_CARRIER_CELL : IST_CARRIER_SLOT;
  outcome.bytes = Bytes{arrival.envelope.bytes};
  if (arrival.envelope.flags != 0 || outcome.bytes > receive.room)
    outcome = outcome_of(arrival.source, arrival.envelope, outcome.carrier, receive.room);
  if (outcome.bytes > Bytes{}) std::memcpy(receive.buffer, arrival.payload.data(), outcome.bytes.value);
  if (arrival.in_cell) path.release(arrival);
}

}  // namespace ist
