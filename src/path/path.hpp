// What connects this process with others. Each path is one folder and one line in paths.cpp.
//
// Who calls this : request/progress takes arrivals; protocol/ posts and fills. Who implements it: self/, shm/.
// Threads        : one thread at a time per world (the world's lock), except wake(), which any thread may call.
// Ownership      : a Path owns its Links; arrivals and slots are views into the path's memory.
// Errors         : returned where they can happen; posting never fails, it only finds no room.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/status.hpp"
#include "base/units.hpp"
#include "base/wire.hpp"
#include "path/slot_ring.hpp"

namespace ist {

// One envelope that came in, with the bytes that came with it.
struct Arrival {
  Rank source;
  Envelope envelope;
  std::span<const std::byte> payload;  // slot: until the next call of next(); cell: until release()
  bool in_cell = false;                // the payload is a cell and must be released
  std::uint64_t cell = 0;              // the path's name for the cell
};

// A cell this process may fill: page-locked after lock_memory(), as large as cell_limit().
struct Cell {
  std::byte* data = nullptr;
  std::uint64_t id = 0;
};

struct InvitationBoard;
class PairSlotReader;
class PairSlotWriter;
struct Lane;

// The way to one peer.
class Link {
 public:
  virtual ~Link() = default;
  // Largest payload that post() takes, and that a cell holds. Ready at connect time, never changing.
  Bytes slot_limit;
  Bytes slot_limit_again;  // of what leaves a place that messages to the peer left lately; of less than slot_limit no matter
  Bytes cell_limit;
  // What comes from the peer in slots, for who looks there alone, while next() shows nothing of it; null if there are none.
  // Whoever pops one calls ring() if pop() says so.
  PairSlotReader* slots = nullptr;
  // Where post() puts what is short, for who writes there without it; null if there are none. Whoever does calls ring() if may_sleep
  // says so.
  PairSlotWriter* outgoing_slots = nullptr;
  bool may_sleep = false;  // the peer
  // Where this side shows the peer a posted receive, and the peer this side one of its own; null if there is no such place.
  InvitationBoard* invites = nullptr;
  InvitationBoard* invited = nullptr;
  // Wakes the peer, should it sleep.
  virtual void ring() const {}
  // Copies envelope and payload, of slot_limit or slot_limit_again at most, into the pair's slots; false if there is no room now.
  virtual bool post(const Envelope& envelope, std::span<const std::byte> payload) = 0;
  // A free cell to fill, or none now. Exactly one of post_cell and return_cell follows.
  virtual std::optional<Cell> take_cell() = 0;
  virtual void post_cell(const Cell& cell, const Envelope& envelope, Bytes length) = 0;
  virtual void return_cell(const Cell& cell) = 0;
  // The ring to the peer, made on first use; null for a path without rings (the peer is this process).
  virtual Result<SlotRingWriter*> outgoing() = 0;
  // The peer could not open it, and nobody holds it any more: the next outgoing() makes another one.
  virtual void drop_outgoing() {}
  // The ring from the peer; null until the peer has made it. An error is told once: that ring is lost, and it is null again until the
  // peer, who is to be told, has made another one.
  virtual Result<SlotRingReader*> incoming() = 0;
  // From now on the peer can copy what lies in this process's SharedHeap, if it wants to; false: it cannot.
  virtual bool show_heap() { return false; }
  // Of offers to the peer (Offer): how many were withdrawn so far, and one more, before its bytes are written again.
  virtual std::uint32_t offers_withdrawn() const { return Offer::kNotCounted; }
  virtual void withdraw_offer() {}
  // Does the peer's heap, which can be seen, hold so many bytes from where the offer says?
  virtual bool sees(const Offer&, Bytes) { return false; }
  // Can read_peer() copy from the peer's own memory by a call of the system? Asked for the first time, it tries.
  virtual bool reads_peer() { return false; }
  // The same, and where not nobody is told of it.
  virtual bool could_read_peer() { return reads_peer(); }
  // Why not; ok: it can.
  virtual Status why_not_read() { return {IST_ERR_SYSTEM, "this path does not read the peer's memory"}; }
  // One copy of so many bytes, from `from` on, of what the peer offers. False: it was offered no more, or cannot be read, and what was
  // read may be anything. After an error reads_peer() is false.
  virtual Result<bool> read_peer(std::byte* into, const Offer& offer, Offset from, Bytes size);
  // Where this process sees what sees() said yes of; and, once that was read: is it still what is offered? False: it may have been anything.
  virtual const std::byte* seen_at(const Offer&) { return nullptr; }
  virtual bool is_still_offered(const Offer&) { return false; }
  // All of several offers at most kMostTogether, of memory that cannot be seen, in one call. False: any of them was withdrawn, or they are to be
  // read one by one for another reason; what was read may be anything.
  static constexpr std::size_t kMostTogether = 4;
  struct OfferRead {
    std::span<std::byte> into;
    Offer offer;
  };
  virtual bool read_together(std::span<const OfferRead> reads) {
    static_cast<void>(reads);
    return false;
  }
  // Can the peer open device memory of this process, as two processes of one host can?
  virtual bool lends() const { return false; }
  // True if the peer is this very process, so that pieces of both sides can be copied directly.
  virtual bool same_process() const { return false; }
};

inline Result<bool> Link::read_peer(std::byte*, const Offer&, Offset, Bytes) {
  return Status{IST_ERR_INTERNAL, "this path does not read peers' memory"};
}

class Path {
 public:
  virtual ~Path() = default;
  virtual std::string_view name() const = 0;
  // True while only this process itself could make next() find anything, and has not: there is no need to ask.
  bool idle = false;
  // Null if this path does not reach the peer.
  virtual Link* link(Rank peer) = 0;
  // The next envelope in arrival order; envelopes of one peer may overtake each other between slots and cells
  // (match/ restores the order by sequence).
  virtual std::optional<Arrival> next() = 0;
  // Others' arrivals come before the next one of the source that next() has shown last, from which more was taken.
  virtual void pass_turn() {}
  virtual void release(const Arrival& arrival) = 0;
  // The last arrival could not be taken, and is what next() gives again.
  virtual void put_back(const Arrival& arrival) = 0;
  // Where next() found nothing: does something that was published before mark_arrivals() lie behind what another process is just
  // publishing?
  virtual bool has_gap() const { return false; }
  virtual void mark_arrivals() {}
  // Returns true as soon as next() may find something, and false when that many looks have found nothing: the cheapest way to
  // wait. What next() showed last is no longer valid.
  virtual bool arrival_within(int looks) = 0;
  // From now on devices of the kinds in use copy into and out of this path's cells and rings, those made later included:
  // page-lock them for each. Called again when a kind comes into use. An error says why some stay pageable; all were tried.
  virtual Status lock_memory() = 0;
  // Can this path's news wake a sleeper? Sleeping takes two steps, so that the world's lock is not held meanwhile.
  virtual bool can_sleep() const = 0;
  // Under the lock: from now on whoever posts something wakes this process. False if something has arrived already.
  // One thread at a time is between here and the end of sleep_announced().
  virtual bool announce_sleep() = 0;
  // Without the lock, after announce_sleep() was true: returns when something may have arrived, wake() was called, or the
  // time is over; may return early.
  virtual void sleep_announced(std::chrono::microseconds longest) = 0;
  // Both steps, where no other thread uses the path. False if it cannot sleep.
  bool sleep(std::chrono::microseconds longest) {
    if (!can_sleep()) return false;
    if (announce_sleep()) sleep_announced(longest);
    return true;
  }
  virtual void wake() = 0;
  // Where that rank, or this one, says what it has to say in collective calls, and this one reads it (path/shm/lane.hpp); null: nowhere.
  virtual Lane* lane(Rank, std::size_t) const { return nullptr; }
  // Called when the world is being destroyed: peers read everything published before as arrived, everything after as never.
  // `dead` is a rank whose death this one knows of, or kNobody: peers that see us go before they see that death are told.
  virtual void leave(Rank dead) = 0;
  // Has that peer called leave()?
  virtual bool has_left(Rank peer) const = 0;
  // The death that a peer that has left knew of, or kNobody.
  virtual Rank death_told_by(Rank peer) const = 0;
};

}  // namespace ist
