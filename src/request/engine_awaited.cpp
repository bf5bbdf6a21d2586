// Receives whose callers look for them until they are there.
#include <type_traits>

#include "memory/host/handing_copy.hpp"
#include "request/engine_at_once.hpp"

namespace ist {
namespace {

// How long one rank's slots alone are looked at: so many times so often, one look being a load from this processor's cache.
// Between the batches it asks whether another thread wants the lock.
constexpr int kBriefBatches = 64;
constexpr int kLooksAtOnce = 8;
// The same of PairSlotReader::front_again(), which takes some 20 ns (AMD Zen 5), and where a pause is longer as much as that.
constexpr int kBatchesAgain = 16;
// As often for the next piece of a message: some 5 us, in which its writer may have to fetch what it copies from memory, or to have pages made.
constexpr int kLooksForAPiece = 4 * kBriefBatches * kLooksAtOnce;
// The others' arrivals are looked for after so many messages of one rank, of which a look counts as kLook: after 64 looks with a message
// each. That takes messages of this rank along, at two or three times the cost of one here: after 64 messages, windows of 64 receives
// of 8 bytes took 0.058 us a message, and 0.029 after 512 (AMD EPYC, 2 processors, 2026-11-22).
constexpr int kLook = 16;
constexpr int kMostInARow = 64 * kLook;
// And a message of a plain receive, or one that is copied out of the sender's memory, counts as one more for each so many bytes of it.
constexpr std::uint64_t kCountsAsOne = 4096;

bool matches(const BriefReceive& receive, const Envelope& envelope) {
  return envelope.type == EnvelopeType::eager && envelope.flags == 0 && envelope.context == receive.context &&
         (envelope.tag == receive.tag || receive.tag == kAnyTag) && envelope.bytes <= receive.room.value;
}

// Plain receives, in the order in which they were posted, as messages of one rank come for them.
class PlainFrom {
 public:
  PlainFrom(OperationTable& operations, Rank rank) : rank_(rank), plain_(operations.posted()) {}
  // Null: another one takes that message.
  PlainReceive* find(const Matcher::Posted& posted, std::uint32_t context, std::int32_t tag, std::size_t size) const {
    PlainReceive* const receive = posted.pattern.takes(rank_, context, tag) ? plain_.find(posted.operation) : nullptr;
    return receive != nullptr && size <= receive->room.value ? receive : nullptr;
  }
  // All but the bytes.
  void finish(PlainReceive& receive, std::int32_t tag, std::size_t size) const {
    receive.source = rank_.value;
    receive.tag = tag;
    receive.bytes = Bytes{size};
    receive.stage = PlainReceive::Stage::done;
  }

 private:
  const Rank rank_;
  const OperationTable::PostedOnes plain_;
};

// Of a message that is being written, each piece as soon as it is there. True: all of it. False: its writer does not get on, or `stops`.
template <class Stops>
bool copy_pieces(PairSlotReader& slots, const Envelope& envelope, std::byte* to, const Stops& stops) {
  const PairSlot& slot = *slots.begun();
  std::size_t copied = 0;
  for (int looks = 0; looks < kLooksForAPiece; ++looks) {
    const std::span<const std::byte> shown = slots.look_again(slot);
    const std::size_t there = std::min<std::size_t>(shown.size(), envelope.bytes);
    if (there > copied) {
      copy_any(to + copied, shown.data() + copied, there - copied);
      copied = there;
      looks = 0;
    }
    if (slots.begun() == nullptr) return shown.size() == envelope.bytes;
    if (stops()) break;
  }
  return false;
}

// Has this rank sent something since it last waited for something from there?
bool is_answer(PeerState& from) {
  const std::uint64_t shown = from.link->outgoing_slots != nullptr ? from.link->outgoing_slots->shown() : 0;
  return std::exchange(from.shown_before, shown) != shown;
}

// Who has received a message often answers it.
void prepare_answer(const Link& link) {
  if (link.outgoing_slots != nullptr) link.outgoing_slots->fetch_next();
}

}  // namespace

[[gnu::always_inline]] inline PairSlotReader* Engine::slots_alone(const PeerState& from) {
  PairSlotReader* const slots = from.link != nullptr ? from.link->slots : nullptr;
  if (slots != nullptr && !order_.has_early(from.rank) && !must_poll() && parts_.board.changes() == 0 &&
      brief_in_a_row_ < kMostInARow) {
    brief_in_a_row_ += kLook;
    return slots;
  }
  brief_in_a_row_ = 0;
  return nullptr;
}

bool Engine::receive_brief(BriefReceive& receive) {
  PeerState& from = peer(receive.source);
  // Whatever else is under way has to be moved on, and a message that was kept comes first. A trace wants operations.
  if (watched_ || !operations_.empty() || matcher_.unexpected() > 0) return false;
  PairSlotReader* const slots = slots_alone(from);
  if (slots == nullptr || (receive.room > from.link->slot_limit && !from.shows)) return false;
  // Of the message in that slot, of a line that is shared, or not.
  const auto take = [&](auto shared, const PairSlot& slot) {
    const Envelope envelope = slots->envelope<shared()>(slot);
    const std::span<const std::byte> payload = slots->payload<shared()>(slot);
    if (envelope.type == EnvelopeType::announce) [[unlikely]]
      return take_shown_brief(receive, from, *slots);
    if (!matches(receive, envelope) || envelope.bytes != payload.size() ||
        !order_.take_turn(receive.source, envelope.sequence))
      return false;
    receive.received_tag = envelope.tag;
    receive.bytes = Bytes{payload.size()};
    from.traffic.received_by(Way::slot).add(receive.bytes);
    slots->copy_out(receive.buffer, payload);
    if (slots->pop<shared()>()) from.link->ring();
    return true;
  };
  // What answers a message of this rank's is not there as soon as that has been sent: 8 bytes 0.053 us so, 0.056 with a first look at once.
  const bool answers = is_answer(from);
  const int batches = sleeping_path_ == nullptr ? kBatchesAgain : 1;
  for (int batch = 0; batch < batches && !lock_.contended(); ++batch) {
    for (int look = 0; look < kLooksAtOnce; ++look) {
      const PairSlot* const slot = batch == 0 && look == 0 && !answers ? slots->front() : slots->front_again();
      if (slot == nullptr) {
        if (slots->begun() != nullptr) [[unlikely]]
          return receive_in_pieces(receive, from, *slots);
        continue;
      }
      prepare_answer(*from.link);
      return slots->shared() ? take(std::true_type{}, *slot) : take(std::false_type{}, *slot);
    }
  }
  return false;
}

// Nobody else can get that message before the lock is given up: nothing is posted, and it is next in its order. Where it does not get on, the
// receive is posted before that.
bool Engine::receive_in_pieces(BriefReceive& receive, PeerState& from, PairSlotReader& slots) {
  const Envelope envelope = slots.envelope<false>(*slots.begun());
  if (receive.scope == nullptr || !matches(receive, envelope) || !order_.is_turn(receive.source, envelope.sequence))
    return false;
  if (!copy_pieces(slots, envelope, receive.buffer, [this] { return must_let_go(); })) {
    const auto posted =
        start_receive(host_piece(receive.buffer, receive.room), receive.source.value, receive.tag, *receive.scope);
    if (posted.ok()) receive.posted = *posted;
    return false;
  }
  prepare_answer(*from.link);
  order_.end_turns(receive.source, 1);
  receive.received_tag = envelope.tag;
  receive.bytes = Bytes{envelope.bytes};
  from.traffic.received_by(Way::slot).add(receive.bytes);
  if (slots.pop<false>()) from.link->ring();
  return true;
}

// Of the message in front.
bool Engine::take_shown_brief(BriefReceive& receive, PeerState& from, PairSlotReader& slots) {
  const PairSlot& slot = *slots.front();
  const Envelope envelope = slots.envelope(slot);
  const std::span<const std::byte> payload = slots.payload(slot);
  if (envelope.context != receive.context || (envelope.tag != receive.tag && receive.tag != kAnyTag) ||
      !is_shown(from, envelope, payload, receive.room) || !order_.take_turn(from.rank, envelope.sequence))
    return false;
  const bool copied = copy_shown(from, envelope, payload, receive.buffer);
  receive.received_tag = envelope.tag;
  receive.bytes = Bytes{envelope.bytes};
  receive.carrier = IST_CARRIER_DIRECT;
  // It has had its turn: the receive that follows finds it kept, and it comes another way.
  if (!copied) deliver(*from.path, {from.rank, envelope, payload, false, 0});
  if (slots.pop()) from.link->ring();
  return copied;
}

void Engine::look_in_slots(std::int32_t source) {
  if (source == kAnySource) return;
  PeerState& from = peer(Rank{source});
  PairSlotReader* const slots = slots_alone(from);
  if (slots == nullptr) return;
  const int batches = sleeping_path_ == nullptr ? kBriefBatches : 1;
  for (int batch = 0; batch < batches && !lock_.contended(); ++batch) {
    for (int look = 0; look < kLooksAtOnce; ++look) {
      if (slots->front() == nullptr) continue;
      prepare_answer(*from.link);
      // All that is there: the next line is on its way while one message is taken, and other waits find theirs done.
      while (take_plain(from, *slots) && take_from_slot(from, *slots) && ++brief_in_a_row_ < kMostInARow) {
      }
      return;
    }
  }
}

// What has come into the same slots since. Otherwise all of a window whose first message came when progress() looked would be taken there, one by one, since its
// sender goes on writing: of 4, 8 and 16 KiB, just written, 0.154, 0.244 and 0.48 us a message, so 0.114, 0.197 and 0.43 (AMD EPYC, Zen 5, a line in 0.06 us, medians of
// four runs, 2026-11-30).
int Engine::take_plain_behind(Path& path, Rank source) {
  PeerState& from = peer(source);
  PairSlotReader* const slots = lock_.contended() ? nullptr : slots_alone(from);
  if (slots == nullptr) return 0;
  path.arrival_within(0);  // what came is shown no longer
  const int before = brief_in_a_row_;
  take_plain(from, *slots);
  if (brief_in_a_row_ != before) path.pass_turn();
  return (brief_in_a_row_ - before) / kLook;
}

PlainReceive* Engine::look_for_plain(OperationId id) {
  const PlainReceive* const line = operations_.find_line(id);
  if (line == nullptr || line->stage <= PlainReceive::Stage::whole) return nullptr;
  look_in_slots(line->source);
  // What came may have started operations, for which the table has grown.
  return operations_.find_done(id);
}

bool Engine::look_once(const Operation& operation) {
  if (operation.in<state::Posted>()) look_in_slots(operation.peer.value);
  if (!complete(operation) && !operation.in<state::Persistent>()) progress();
  return complete(operation);
}

// Of the messages in front, those that are for the receives posted first, as long as both are plain. False: nothing is in front, or what follows a line that is taken has not been looked at yet.
bool Engine::take_plain(PeerState& from, PairSlotReader& slots) {
  if (watched_ || has_sleeper()) return true;
  Counted& counted = from.traffic.received_by(Way::slot);
  const Rank rank = from.rank;
  const PlainFrom plain{operations_, rank};
  const auto take_whole = [&](const PairSlot& slot) -> int {
    const Envelope envelope = slots.envelope<false>(slot);
    const std::span<const std::byte> payload = slots.payload_of_many(slot);
    if (envelope.type != EnvelopeType::eager || envelope.flags != 0 || envelope.bytes != payload.size()) return 0;
    const std::span<const Matcher::Posted> posted = matcher_.in_order();
    if (posted.empty()) return 0;
    PlainReceive* const receive = plain.find(posted.front(), envelope.context, envelope.tag, payload.size());
    if (receive == nullptr || !order_.take_turn(rank, envelope.sequence)) return 0;
    matcher_.drop_first(1);
    plain.finish(*receive, envelope.tag, payload.size());
    slots.copy_out(receive->buffer, payload);
    counted.add(Bytes{payload.size()});
    if (slots.pop<false>()) from.link->ring();
    return static_cast<int>(1 + payload.size() / kCountsAsOne);
  };
  // What they have in common is looked at once for all of a line.
  const auto take_shares = [&](const PairSlot& slot) {
    auto [line, first, lengths] = slots.shares(slot);
    if (!order_.is_turn(rank, line.sequence + first)) return 0;
    const std::uint32_t context = line.context;
    const std::int32_t* tag = &line.tags[first];
    const std::uint64_t* word = &line.words[first];
    std::uint64_t bytes = 0;
    std::uint32_t taken = 0;
    for (const Matcher::Posted& posted : matcher_.in_order()) {
      const std::size_t size = share_in(lengths, 0) - 1;
      if (size > PairSlot::kShare) break;  // no more of them
      PlainReceive* const receive = plain.find(posted, context, *tag, size);
      if (receive == nullptr) break;
      plain.finish(*receive, *tag, size);
      copy_share(receive->buffer, *word, size);
      bytes += size;
      ++taken, ++tag, ++word;
      lengths >>= 4;
    }
    if (taken == 0) return 0;
    matcher_.drop_first(taken);
    order_.end_turns(rank, taken);
    counted.add(taken, Bytes{bytes});
    if (slots.pop_shares(taken)) from.link->ring();
    return static_cast<int>(taken);
  };
  while (brief_in_a_row_ < kMostInARow) {
    const PairSlot* const slot = slots.front();
    if (slot == nullptr) return false;
    const int taken = slots.shared() ? take_shares(*slot) : take_whole(*slot);
    if (taken == 0) break;
    brief_in_a_row_ += taken;
    // Its writer may be at the rest of that line, and comes further while what was taken is finished.
    if (slots.waits_at_line()) return false;
  }
  return true;
}

bool Engine::take_from_slot(PeerState& from, PairSlotReader& slots) {
  const PairSlot* slot = slots.front();
  if (slot == nullptr) return false;
  const Envelope envelope = slots.envelope(*slot);
  if (envelope.type != EnvelopeType::eager) [[unlikely]]
    return take_shown_from_slot(from, slots);
  if (!order_.take_turn(from.rank, envelope.sequence)) return false;
  const std::span<const std::byte> payload = slots.payload(*slot);
  std::uint32_t wire = 0;
  if (!matcher_.match_first(from.rank, envelope, wire)) [[unlikely]] {
    deliver(*from.path, {from.rank, envelope, payload, false, 0});
  } else if (Operation& operation = operations_.at(wire & 0xfffff);
             is_plain(operation, envelope, payload.size()) && ends_quietly(operation)) [[likely]] {
    note(operation, from.rank, envelope, IST_CARRIER_SLOT);
    from.traffic.received_by(Way::slot).add(Bytes{payload.size()});
    slots.copy_out(operation.piece.address(), payload);
    operation.become<state::Done>();
  } else {
    deliver_to(wire & 0xfffff, *from.path, {from.rank, envelope, payload, false, 0});
  }
  if (slots.pop()) from.link->ring();
  return true;
}

// Of the message in front, and what the peer says of this side's. False: all else, which progress() takes.
bool Engine::take_shown_from_slot(PeerState& from, PairSlotReader& slots) {
  const PairSlot& slot = *slots.front();
  const Envelope envelope = slots.envelope(slot);
  const std::span<const std::byte> payload = slots.payload(slot);
  const Arrival arrival{from.rank, envelope, payload, false, 0};
  if (envelope.type == EnvelopeType::taken) {
    on_taken(arrival);
  } else {
    if (!is_shown(from, envelope, payload, Bytes{envelope.bytes}) || !order_.take_turn(from.rank, envelope.sequence))
      return false;
    std::uint32_t wire = 0;
    Operation* operation = nullptr;
    if (matcher_.match_first(from.rank, envelope, wire)) operation = &operations_.at(wire & 0xfffff);
    if (operation == nullptr) {
      deliver(*from.path, arrival);
    } else if (operation->piece.kind == KindId::host && envelope.bytes <= operation->piece.size.value &&
               ends_quietly(*operation) && copy_shown(from, envelope, payload, operation->piece.address())) {
      brief_in_a_row_ += static_cast<int>(envelope.bytes / kCountsAsOne);
      note(*operation, from.rank, envelope, IST_CARRIER_DIRECT);
      operation->become<state::Done>();
    } else {
      deliver_to(wire & 0xfffff, *from.path, arrival);
    }
  }
  if (slots.pop()) from.link->ring();
  return true;
}

bool Engine::look_for(AwaitedReceive& receive, bool& moved) {
  if (watched_) return false;
  if (parts_.board.changes() != receive.board_seen) {
    // Until it has been looked at, a source that is gone may count as one that sends.
    if (parts_.board.changes() == board_seen_) receive.board_seen = board_seen_;
    if (!check_source(receive.pattern.source, receive.group).ok()) return false;
  }
  if (matcher_.unexpected() > 0 && matcher_.peek(receive.pattern) != nullptr) return false;
  // Also where memory runs out in between: the receive is its caller's.
  const struct Forgets {
    AwaitedReceive*& awaited;
    ~Forgets() { awaited = nullptr; }
  } forgets{awaited_};
  awaited_ = &receive;
  moved = progress() || (linger() && progress());
  if (!receive.received && !receive.closed && receive_begun(receive)) moved = progress();
  return !receive.closed && receive.posted.value == 0;
}

// Is the message that it waits for being written? True: one that is whole has come meanwhile.
bool Engine::receive_begun(AwaitedReceive& receive) {
  const Pattern& pattern = receive.pattern;
  if (receive.scope == nullptr || pattern.source < 0 || !operations_.empty() || matcher_.unexpected() > 0 || must_let_go())
    return false;
  PeerState& from = peer(Rank{pattern.source});
  PairSlotReader* const slots = from.link != nullptr ? from.link->slots : nullptr;
  if (slots == nullptr) return false;
  if (slots->front() != nullptr) return true;
  if (slots->begun() == nullptr) return false;
  // Where it is posted, that is the receive: of what comes meanwhile nothing is for this one.
  awaited_ = nullptr;
  BriefReceive brief{receive.buffer, receive.room, pattern.context, from.rank, pattern.tag, receive.scope};
  receive.received = receive_in_pieces(brief, from, *slots);
  receive.posted = brief.posted;
  if (!receive.received) return false;
  receive.outcome.source = from.rank;
  receive.outcome.tag = brief.received_tag;
  receive.outcome.carrier = brief.carrier;
  receive.outcome.bytes = brief.bytes;
  return false;
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
  if (arrival.envelope.flags == 0)
    peer(arrival.source).traffic.received_by(arrival.in_cell ? Way::cell : Way::slot).add(outcome.bytes);
  if (outcome.bytes > Bytes{}) copy_across(receive.buffer, arrival.payload.data(), outcome.bytes.value);
  if (arrival.in_cell) path.release(arrival);
}

}  // namespace ist
