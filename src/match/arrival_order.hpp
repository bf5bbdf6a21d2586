// Puts the envelopes of each peer back into the order in which they were sent.
//
// Who calls this : request/engine, for every arrival. Slots and cells of one peer may overtake each other, and a cell is
//                  shown only when a device has filled it; the sequence in the envelope tells the order.
// Threads        : under the world's lock.
// Ownership      : an early arrival in a cell keeps its cell; one in a slot is copied, because the slot is needed again.
// Errors         : put_aside() throws where memory runs out, and then nothing has happened.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "match/kept_bytes.hpp"
#include "path/path.hpp"

namespace ist {

class ArrivalOrder {
 public:
  struct Early {
    Path* path = nullptr;
    Arrival arrival;
    KeptBytes bytes;  // where `arrival.payload` points, unless it is in a cell
  };

  // Every peer's first envelope has the sequence `first`.
  explicit ArrivalOrder(int ranks, std::uint32_t first = 0) : peers_(static_cast<std::size_t>(ranks), Peer{first, {}}) {}
  // True: it is this arrival's turn, which is now over. False: too early; put_aside it.
  bool take_turn(const Arrival& arrival) { return take_turn(arrival.source, arrival.envelope.sequence); }
  bool take_turn(Rank source, std::uint32_t sequence) {
    Peer& peer = peers_[static_cast<std::size_t>(source.value)];
    if (sequence != peer.expected) return false;
    ++peer.expected;  // wraps, as the sender's does
    return true;
  }
  // The last turn of that peer is not over after all: its arrival could not be taken, and comes again.
  void give_back_turn(Rank source) { --peers_[static_cast<std::size_t>(source.value)].expected; }
  // Is the turn of that one over?
  bool is_over(Rank source, std::uint32_t sequence) const {
    return static_cast<std::int32_t>(sequence - peers_[static_cast<std::size_t>(source.value)].expected) < 0;
  }
  // The sequence of the next one whose turn comes.
  std::uint32_t expected(Rank source) const { return peers_[static_cast<std::size_t>(source.value)].expected; }
  // Is it the turn of that one? Then those of it and of so many in all may be over.
  bool is_turn(Rank source, std::uint32_t sequence) const {
    return sequence == peers_[static_cast<std::size_t>(source.value)].expected;
  }
  void end_turns(Rank source, std::uint32_t turns) { peers_[static_cast<std::size_t>(source.value)].expected += turns; }
  void put_aside(Path& path, const Arrival& arrival);
  // Is anything of that peer put aside?
  bool has_early(Rank source) const { return !peers_[static_cast<std::size_t>(source.value)].early.empty(); }
  // The put-aside arrival whose turn has come, if any; its turn is then over. It stays until let_go(), so that it is here should its turn be
  // given back.
  const Early* next_due(Rank source);
  void let_go(const Early& early) {
    peers_[static_cast<std::size_t>(early.arrival.source.value)].early.erase(early.arrival.envelope.sequence);
  }

 private:
  struct Peer {
    std::uint32_t expected;
    std::map<std::uint32_t, Early> early;  // by sequence; at most as many as may lie in slots and cells
  };
  std::vector<Peer> peers_;
};

}  // namespace ist
