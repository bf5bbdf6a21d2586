#include "match/arrival_order.hpp"

#include <utility>

namespace ist {

void ArrivalOrder::put_aside(Path& path, const Arrival& arrival) {
  Early early{&path, arrival, {}};
  if (!arrival.in_cell) {
    early.bytes = keep_bytes(arrival.payload);
    early.arrival.payload = early.bytes;  // moving the vector keeps its storage, so the view stays good
  }
  peers_[static_cast<std::size_t>(arrival.source.value)].early.emplace(arrival.envelope.sequence, std::move(early));
}

const ArrivalOrder::Early* ArrivalOrder::next_due(Rank source) {
  Peer& peer = peers_[static_cast<std::size_t>(source.value)];
  const auto due = peer.early.find(peer.expected);
  if (due == peer.early.end()) return nullptr;
  ++peer.expected;
  return &due->second;
}

}  // namespace ist
