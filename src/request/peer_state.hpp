// What the engine knows of one rank, and what goes to it.
//
// Who calls this : request/engine and mail.
// Threads        : under the world's lock.
// Ownership      : owns the pair's streams; looks at link and path, which outlive it.
// Errors         : none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/recent_places.hpp"
#include "path/invitation.hpp"
#include "path/path.hpp"
#include "protocol/pipelined.hpp"
#include "request/sending.hpp"
#include "request/traffic.hpp"

namespace ist {

// A copy between devices that is longer than this keeps a link busy by itself (engine_putting.cpp).
inline constexpr Bytes kMostBytesTogether = mebibytes(8);

// More calls than this are not given to the driver at a time: they keep any link busy, and a driver whose queues are full holds the
// thread, which has to answer others meanwhile.
inline constexpr int kMostPuts = 16;

// So many calls to one peer's devices are under way at a time: one keeps the link busy while the next is made. What is cleared meanwhile goes
// in one call: 64 copies of 1 MiB, one by one, take 5.1 us each, 4 at a time 3.4, 8 at a time 3.2 and 16 at a time 3.1; of 256 KiB 2.9, 1.4,
// 1.2 and 1.1 (two H100, 2026-11-25, cuMemcpyBatchAsync). They are over together, so that their bytes are limited, too.
inline constexpr int kMostCalls = 2;

struct Posting {  // an envelope that found no room
  Envelope envelope;
  std::vector<std::byte> payload;
  std::uint32_t operation = 0;  // index, if is_operation
  bool is_operation = false;
};

struct PeerState {
  Rank rank;
  Link* link = nullptr;
  Path* path = nullptr;            // of the link
  Bytes at_once_below;             // shorter host messages always go in a slot; none without a link
  Bytes slot_limit;                // the link's, or a cell's, once the peer has asked for that
  Bytes slot_limit_again;          // of what leaves one of the places below, the same
  Bytes slots_up_to = kNoLimit;    // longer ones the peer copies from this process's memory sooner (copy_beliefs.hpp)
  bool asked_to_announce = false;  // it was asked for that
  std::uint32_t next_sequence = 0;
  std::uint64_t shown_before = 0;  // by the outgoing slots, when this rank last waited for something from there
  PeerTraffic traffic;
  std::deque<Posting> outbox, places;  // in order, only the first one tries; places of failed sends go before
  std::unique_ptr<RingSender> sender;
  std::unique_ptr<RingReceiver> receiver;
  Status ring_lost;     // why this side could not open the peer's
  Status ring_refused;  // this side's, while the peer, who could not open it, asks what was in it
  // Could the last announced device message be put into a buffer that its receiver lent? If not, what is small goes in
  // cells, and is announced only now and then, to hear whether that has changed.
  bool lends = true;
  bool links = true;  // or into a block that it lent
  // Could this side copy the last message for page-locked memory itself? Did the peer copy the last one that lay in this side's heap
  // from there? If not, it is asked only now and then.
  // And the last one for a layout of a device's memory, by a kernel that unpacks?
  bool fetches = true, takes_shown = true, gathers = true;
  std::uint32_t since_heard = 0, since_fetched = 0, since_shown = 0, since_gathered = 0;
  RecentPlaces sent_from;   // of messages that are too long for a slot but where it is so, and whose senders do not block
  RecentPlaces shown_from;  // of messages that it could copy from where they lie, and whose senders do not block
  int copying = 0;          // calls under way that copy between devices, into this peer's memory
  // Which receive the peer was shown (path/invitation.hpp), if any; whether it copies into this side's device memory at all, how often in
  // a row it sent another way, and how many receives it was shown nothing of since.
  std::optional<Inviter> inviter;  // where the link has a place for it
  std::optional<Guest> guest;
  std::optional<std::uint32_t> invited;
  std::optional<std::uint32_t> met;  // the receive that its next message belongs to (state::Met)
  bool puts_here = false;
  std::uint32_t declined = 0, since_invited = 0;
  // The ring that leads there, which is made where there is none yet.
  Status open_ring(const Kinds& kinds, std::uint64_t most_in_flight) {
    if (sender) return {};
    if (!ring_refused.ok()) return ring_refused;
    auto ring = link->outgoing();
    if (!ring.ok()) return ring.status();
    if (*ring == nullptr) return {IST_ERR_INTERNAL, "the path to the receiver has no ring"};
    sender = std::make_unique<RingSender>(kinds, **ring, most_in_flight);
    return {};
  }
  // Messages of calls which this side gave up after they were announced; the last ones. Who has matched one may ask for its bytes yet, and
  // is to hear why there are none. By their place in the order.
  struct GivenUpMessage {
    std::uint32_t sequence;
    GivenUp why;
  };
  static constexpr std::size_t kMostGivenUp = 16;
  std::vector<GivenUpMessage> given_up;
  // Where memory runs out, the peer hears no more than that the message was given up.
  void note_given_up(std::uint32_t sequence, const GivenUp& why) try {
    given_up.push_back({sequence, why});
    if (given_up.size() > kMostGivenUp) given_up.erase(given_up.begin());
  } catch (const std::bad_alloc&) {
    return;
  }
  // Null: that message was none of them.
  const GivenUp* why_given_up(std::uint32_t sequence) const {
    const auto found =
        std::find_if(given_up.begin(), given_up.end(), [&](const auto& one) { return one.sequence == sequence; });
    return found != given_up.end() ? &found->why : nullptr;
  }
  int ahead = 0;       // copies under way into receives that it showed
  bool shows = false;  // has this side copied one from the peer's heap?
  bool gone = false;   // as of the last look at the board
  // No message waits in the outbox, only what some are made of (request/type_check.hpp): the next may take a cell before that, since each has
  // its place in the order.
  bool only_types_wait() const {
    return std::all_of(outbox.begin(), outbox.end(), [](const Posting& posting) {
      return !posting.is_operation && posting.envelope.type == EnvelopeType::types;
    });
  }
};

}  // namespace ist
