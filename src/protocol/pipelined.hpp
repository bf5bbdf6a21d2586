// Large messages between two processes: a pair's ring of page-locked slots, both sides running ahead with asynchronous
// copies and publishing (sender) or releasing (receiver) only slots whose copies have finished.
// After the large-message transfer of MPIGPU (Nemesis); the order of messages in the ring is the sender's, and every slot
// says where its bytes belong, so that a message whose buffer is not ready never stands in another's way.
//
// Who calls this : request/engine: one of each per peer, made on the first large message.
// Threads        : under the world's lock.
// Ownership      : views of rings and user buffers; own the tickets of running copies.
// Errors         : a failed copy ends its message on both sides (kSlotFailed) and never the ring; so does one for which memory runs out.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/lap_pace.hpp"
#include "base/recent_places.hpp"
#include "memory/fold.hpp"
#include "memory/host/handing_copy.hpp"
#include "memory/kinds.hpp"
#include "memory/packing.hpp"
#include "path/shm/pair_slot.hpp"
#include "path/slot_ring.hpp"
#include "protocol/flights.hpp"
#include "protocol/holding_off.hpp"
#include "protocol/running_ahead.hpp"

namespace ist {

// An operation whose bytes have all been moved, or that failed.
struct Finished {
  std::uint32_t operation = 0;
  Status status;
  Bytes bytes;
  double seconds = 0;   // of a receive that was to be timed: what its copies took, those of both sides at the same time
  double both = 0;      // and one after the other
  bool placed = false;  // of a receive: to where the bytes of its layout belong, or combined with others
};

// How the copies of a message between hosts go round the ring: by loops, and in many lines; or by strings, in few but for windows that run ahead
// (handing_copy.hpp, running_ahead.hpp).
enum class RingWay : std::uint8_t { loops, strings };

// Slots filled or emptied by one call, 2 MiB of the usual ones at most between hosts: a rank that only tests, its other threads and its other peers do not wait
// for a long message. Few where other arrivals wait, and by a call that only starts something.
inline constexpr int kMostPerStep = 8;
inline constexpr int kFewPerStep = 2;

class RingSender {
 public:
  struct Message {
    std::uint32_t sender_op = 0;
    std::uint32_t receiver_op = 0;
    Piece piece;                                     // what to send; its size is what the receiver accepts, above 0
    Bytes slot_bytes;                                // filled per slot, or more: most_in_slot()
    bool hosts = false;                              // is it host memory on both sides?
    std::shared_ptr<const PackWork> laid = nullptr;  // packed so into the slots, where the piece says only how many bytes
    bool timed = false;                              // are the copies of hosts to say how long they took?
    RingWay way = RingWay::loops;                    // of hosts
    Offset next = {};                                // first byte not yet started
    bool again = false;                              // out of a place that was sent from lately; add() finds out
    bool like_last = false;                          // out of the same bytes as the one before it, if there is one; the same
  };
  RingSender(const Kinds& kinds, SlotRingWriter& ring, std::uint64_t most_in_flight)
      : kinds_(&kinds),
        ring_(&ring),
        most_in_flight_(most_in_flight),
        flights_(std::max(most_in_flight, SlotRingLayout::kHeaders)) {}
  // A window of messages between hosts, kWindow of them one behind the other, is filled into the ring most_ahead() pieces ahead of its receiver,
  // unless that is slow, and at first shown in bursts (running_ahead.hpp, holding_off.hpp); kLongestWindow of them are one. Messages by themselves are not: what they
  // are written to is to be in the nearest cache of both sides. Nor is a window with one below kLong out of a place that was not sent from lately, or with one
  // above it, if all are not out of the same bytes.
  // Messages go in the order in which they are added. Those between hosts of kLeastInTurns bytes and more that are sent out of the same ones, one behind
  // the other, take turns, a slot each: each part of these bytes is read once from far away, and by the others out of the writer's nearest caches.
  void add(Message message);
  // Starts and publishes what can be; true if anything moved. Ended messages are appended to `ended`.
  bool step(std::vector<Finished>& ended, int most = kMostPerStep);
  // Nothing more will be taken by the peer: waits for running copies and ends every message with `why`.
  void abandon(const Status& why, std::vector<Finished>& ended);
  bool idle() const { return messages_.empty() && flights_.empty(); }
  // Of all slots, as it lies here.
  std::span<const std::byte> memory() const { return ring_->memory(); }

 private:
  struct Flight {
    Ticket ticket;
    SlotHeader header;
    std::uint32_t sender_op = 0;
    bool last = false;
    Status failed;  // the copy could not even be started
  };
  using Clock = std::chrono::steady_clock;
  bool start_copies();
  Filling filling_of(const Message& message) const;
  Bytes most_in_slot(const Message& message) const;
  Message* next_in_turn();
  void count(const Message&message, bool joins), drop(std::size_t number);
  void begin_window(), lead(Message&front);
  static bool runs_ahead(const Message&message), takes_four(const Message&message), has_own_bytes(const Message&message);
  static bool has_bytes_of(const Message& other, const Message& message);
  std::uint64_t fill(const Message& message, std::byte* to, const Piece& from);
  void learn(RingWay way, double pace);
  void note_filling(RingWay way, Bytes piece);
  bool has_left(Bytes bytes) const;
  bool holds_off() const;
  bool publish(std::vector<Finished>& ended);
  void give_up(std::uint32_t sender_op);
  const Kinds* kinds_;
  SlotRingWriter* ring_;
  static constexpr std::size_t kWindow = 8;
  static constexpr std::size_t kLongestWindow = 64;
  static constexpr Bytes kLeastInTurns = kibibytes(512);
  static constexpr Bytes kLong = mebibytes(1);
  static constexpr std::uint64_t kFewestAlone =
      8;  // slots of a message by itself: those are filled while others are emptied
  std::deque<Message> messages_;
  std::size_t others_ = 0;      // of the messages, that runs_ahead() does not let be part of a window
  std::size_t short_ones_ = 0;  // of the messages, in which slots of four times as many bytes are not wanted
  std::size_t own_ = 0;         // of the messages, that have bytes of their own
  std::size_t of_window_ = 0;   // how many may follow that are part of it; 0: there is none
  bool ahead_ = false;          // does it run ahead?
  bool several_ = false;        // since the ring was empty, have there been two at once?
  RunningAhead<RingWay> running_ahead_;
  std::size_t in_turns_ = 0;  // so many messages at the front take turns; 0: that is to be seen
  std::size_t turn_ = 0;      // whose it is
  HoldingOff<RingWay> holding_off_;
  const std::uint64_t most_in_flight_;
  Flights<Flight> flights_;  // also those that are full, and not shown
  Status no_memory_{IST_ERR_MEMORY,
                    "the host's memory ran out when a slot of a ring was to be copied"};  // made while there is some
  HandingCopy handing_;
  RecentPlaces sources_;
};

class RingReceiver {
 public:
  // `sender`: how error texts call it. `strings_first`: what a processor prefers, which is left for good reason only, and seldom tried otherwise.
  RingReceiver(const Kinds& kinds, std::uint64_t most_in_flight, std::string sender, bool strings_first = prefers_strings())
      : kinds_(&kinds), sender_(std::move(sender)), flights_(most_in_flight) {
    spare_.reserve(kMostSpare);
    for (std::size_t octave = 0; octave < kPaces; ++octave)
      paces_[octave] = strings_first
                           ? LapPace<RingWay>{kSeldom * first_pause(octave), trials(octave), RingWay::strings, kStringsLead}
                           : LapPace<RingWay>{first_pause(octave), trials(octave)};
  }
  // Slots for `operation` will come; piece.size bytes of them, above 0. Called before the clearance is posted. `laid`: how they are brought
  // straight to where they belong.
  // `timed`: how long their copies take is worth knowing.
  void expect(std::uint32_t operation, const Piece& piece, bool timed, std::shared_ptr<const PackWork> laid = nullptr) {
    expect_by({RingWay::loops, timed, 0}, operation, piece).laid = std::move(laid);
  }
  // The same of bytes that are combined with others where they come; the piece is for those that cannot be there. The way that the sender is to go.
  RingWay expect_fold(std::uint32_t operation, const Piece& piece, const Fold& fold);
  // The same of a message between hosts: the quicker way, and whether the sender is to say how long its copies take.
  LapPace<RingWay>::Next expect_of_host(std::uint32_t operation, const Piece& piece, bool timed);
  // The sender refused: nothing will come.
  void forget(std::uint32_t operation);
  // Whose slots have not all come.
  std::vector<std::uint32_t> expected() const;
  void connect(SlotRingReader& ring) { ring_ = &ring; }
  bool connected() const { return ring_ != nullptr; }
  // Once connected.
  std::span<const std::byte> memory() const { return ring_->memory(); }
  bool step(std::vector<Finished>& ended, int most = kMostPerStep);
  void abandon(const Status& why, std::vector<Finished>& ended);
  // No message expected and no copy running.
  bool idle() const { return messages_.empty() && flights_.empty(); }
  bool copying() const { return !flights_.empty(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Message {
    Piece piece;
    Bytes arrived;
    Status failed;  // its remaining slots are dropped
    LapPace<RingWay>::Next by = {RingWay::loops, false, 0};
    Bytes first;                           // slot, if timed
    Clock::duration copying;               // of all slots so far, if timed
    Clock::duration filling;               // the same on the other side, as far as that told
    std::shared_ptr<const PackWork> laid;  // to where the bytes belong, and not into the piece
    std::optional<Fold> fold;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> aside;  // from and to, in the piece: not folded yet
  };
  struct Flight {
    Ticket ticket;
    SlotHeader header;
    Clock::time_point begun;  // of the copy
  };
  Message& expect_by(LapPace<RingWay>::Next by, std::uint32_t operation, const Piece& piece);
  Message& begin(std::uint32_t operation);
  Message* message_of(std::uint32_t operation);
  static void tell_times(const Message& message, Finished& end);
  static void note_copy(Message& message, const SlotHeader& slot, Clock::time_point begun);
  bool take_at_once(const FullSlot& slot, std::vector<Finished>& ended);
  void start(const FullSlot& slot);
  void account(const SlotHeader& header, const Status& copied, std::vector<Finished>& ended);
  static bool fold_slot(const Message& message, const FullSlot& slot);
  Status put_aside(Message& message, const SlotHeader& slot);
  static void fold_aside(const Message& message);
  const Kinds* kinds_;
  std::string sender_;
  SlotRingReader* ring_ = nullptr;
  using Messages = std::unordered_map<std::uint32_t, Message>;
  Messages messages_;
  // What the last ones lay in, of which a window's next ones need as many: more than malloc() has at hand.
  static constexpr std::size_t kMostSpare = 64;
  std::vector<Messages::node_type> spare_;
  std::uint32_t last_operation_ = 0;  // that a slot was for, and its message while it is there
  Message* last_ = nullptr;
  Flights<Flight> flights_;
  Status no_memory_{IST_ERR_MEMORY,
                    "the host's memory ran out when a slot of a ring was to be copied"};  // made while there is some
  static constexpr std::size_t kPaces = 8;  // of messages below 128 KiB, of each octave from there, and of all above
  // One way has gone round all of the ring's memory, where it goes round that, before the other one is tried: in pages that nobody has touched either is slow.
  static constexpr std::uint32_t first_pause(std::size_t octave) {
    return static_cast<std::uint32_t>(kMostLap >> (16 + octave)) + 2;
  }
  // A trial costs its own window and one or two behind it, whose lines the other way has left: of 20 windows of 256 KiB behind 20 others three took 4.1 to 5.4 us
  // a message in place of 3.7 (AMD EPYC, Zen 5, 2026-11-30). First after 68 windows of 64 such messages.
  static constexpr std::uint32_t kSeldom = 128;
  // Each trial goes twice round the ring.
  static constexpr std::uint32_t trials(std::size_t octave) {
    return static_cast<std::uint32_t>(2 * kMostLap >> (16 + octave));
  }
  LapPace<RingWay>& pace_of(Bytes size);
  std::array<LapPace<RingWay>, kPaces> paces_;
};

}  // namespace ist
