// The receiving half of the engine: arrivals into their order, to their receive, into its buffer.
#include <cstring>
#include <utility>

#include "base/thread_sanitizer.hpp"
#include "request/engine_at_once.hpp"
#include "request/mail.hpp"
#include "request/type_check.hpp"

namespace ist {
namespace {

// Because of whom `source`, one of so many ranks, gave up a call, as it says.
Rank cause_in(std::uint32_t told, Rank source, int ranks) {
  const Rank about{static_cast<std::int32_t>(told)};
  return about.value >= 0 && about.value < ranks ? about : source;
}

void announce_more(PeerState& to) {
  to.slot_limit = smaller(to.link->slot_limit, to.link->cell_limit);
  to.slot_limit_again = to.slot_limit;
  to.at_once_below = smaller(to.at_once_below, to.slot_limit + Bytes{1});
}

}  // namespace

Result<OperationId> Engine::start_receive(const Piece& piece, std::int32_t source, std::int32_t tag, const Scope& scope) {
  if (piece.kind == KindId::host) return receive_ready(piece, Ticket{}, source, tag, scope);
  auto ready = pending_work(piece);
  if (!ready.ok()) return ready.status();
  auto started = receive_ready(piece, std::move(*ready), source, tag, scope);
  if (started.ok() && source != kAnySource) invite(*started, {scope.context, source, tag});
  return started;
}

OperationId Engine::add_receive(const Piece& piece, std::int32_t source, const Scope& scope) {
  wake_sleeper();
  const OperationId id = operations_.add();
  if (id.value == 0) return id;
  Operation& operation = operations_.at(id.index());
  operation.peer = Rank{source};
  operation.piece = piece;
  if (scope.group) operation.group = scope.group;
  operation.state = state::Posted{};
  if (watched_) watch(operation);
  return id;
}

Result<OperationId> Engine::receive_ready(const Piece& piece, Ticket ready, std::int32_t source, std::int32_t tag,
                                          const Scope& scope, std::unique_ptr<LaidOut> laid) {
  const OperationId id = add_receive(piece, source, scope);
  if (id.value == 0) return too_many();
  const std::uint32_t index = id.index();
  Operation& operation = operations_.at(index);
  if (!ready.empty()) operation.ready = std::move(ready);
  if (laid != nullptr) operation.laid = std::move(laid);
  try {
    const Pattern pattern{scope.context, source, tag};
    if (const auto kept = matcher_.find(pattern)) {
      take_kept(operation, index, **kept);
      matcher_.drop(*kept);
      return id;
    }
    matcher_.post(pattern, id.wire());
    // The short way first, which nearly always is the whole.
    if (may_come(source)) return id;
    const Status reachable = check_source(source, scope.group.get());
    if (reachable.ok()) return id;
    // What was published before the peer went is delivered all the same; waiting for anything else would be for ever.
    const bool may_be_hidden = !take_last_arrivals() && anyone_left(source, scope.group.get());
    if (operation.in<state::Posted>() && !may_be_hidden) {
      never_posted(operation, id);
      return reachable;
    }
  } catch (const std::bad_alloc&) {
    if (operation.in<state::Posted>()) {
      never_posted(operation, id);
      throw;
    }
    // Its message has come; what memory ran out for is another one, which comes again.
  }
  return id;
}

void Engine::never_posted(Operation& operation, OperationId id) {
  matcher_.withdraw(id.wire());
  operation.types.reset();
  operations_.release(id.index());
}

void Engine::on_arrival(Path& path, const Arrival& arrival) {
  follows(this);
  const EnvelopeType type = arrival.envelope.type;
  if (type != EnvelopeType::eager && type != EnvelopeType::announce && type != EnvelopeType::mailed &&
      type != EnvelopeType::withdraw && type != EnvelopeType::types)
    return on_word(path, arrival);
  take_in_order(path, arrival);
  if (order_.has_early(arrival.source)) take_early(arrival.source);
}

// What ranks tell each other of messages under way, and beside them. Where memory runs out before it is heard, it comes again; what was done of
// it until then is found done.
void Engine::on_word(Path& path, const Arrival& arrival) try {
  switch (arrival.envelope.type) {
    case EnvelopeType::clear:
      return on_clear(arrival);
    case EnvelopeType::refuse:
      return on_refuse(arrival);
    case EnvelopeType::taken:
      return on_taken(arrival);
    case EnvelopeType::put:
      return on_put(arrival);
    case EnvelopeType::lend:
      return on_lend(arrival);
    case EnvelopeType::announce_more:
      return announce_more(peer(arrival.source));
    case EnvelopeType::ring_lost:
      return on_ring_lost(arrival);
    case EnvelopeType::mailbox:
      return mail_ ? mail_->hear(arrival) : hear(loan_in(arrival.payload), arrival);
    default:
      if (heard_) heard_(arrival.source, arrival.envelope, arrival.payload);
      return wake_sleeper();
  }
} catch (const std::bad_alloc&) {
  path.put_back(arrival);
  throw;
}

// Where memory runs out before the message is kept, or put aside, it stays where it is.
void Engine::take_in_order(Path& path, const Arrival& arrival) try {
  if (order_.is_over(arrival.source, arrival.envelope.sequence)) return;  // shown again: memory ran out behind it
  if (order_.take_turn(arrival)) return deliver(path, arrival);
  order_.put_aside(path, arrival);
} catch (...) {
  if (!order_.is_over(arrival.source, arrival.envelope.sequence)) path.put_back(arrival);
  throw;
}

void Engine::take_early(Rank source) {
  early_of_ = source;  // until all that are due have been taken
  while (const ArrivalOrder::Early* const early = order_.next_due(source)) {
    try {
      deliver(*early->path, early->arrival);
    } catch (...) {
      if (order_.is_over(source, early->arrival.envelope.sequence)) order_.let_go(*early);
      throw;
    }
    order_.let_go(*early);
  }
  early_of_.reset();
}

void Engine::on_refuse(const Arrival& arrival) {
  Operation* operation = operations_.find_wire(arrival.envelope.receiver_op);
  if (operation == nullptr || (!operation->in<state::Streaming>() && !operation->in<state::Bouncing>())) return;
  if (peer(arrival.source).receiver) peer(arrival.source).receiver->forget(arrival.envelope.receiver_op);
  settle(*operation);
  if ((arrival.envelope.flags & kEnvelopeFailed) != 0)
    return finish(*operation, arrival.envelope.receiver_op & 0xfffff, peer(arrival.source).ring_lost);
  if ((arrival.envelope.flags & kEnvelopeGaveUp) != 0) {
    operation->outcome.about = cause_in(arrival.envelope.sender_op, arrival.source, size());
    return finish(*operation, arrival.envelope.receiver_op & 0xfffff,
                  gave_up(*operation->outcome.about, static_cast<Code>(arrival.envelope.bytes)));
  }
  operation->outcome.about = arrival.source;
  finish(*operation, arrival.envelope.receiver_op & 0xfffff, taken_back(arrival.source));
}

Status Engine::taken_back(Rank source) const {
  return {IST_ERR_DEVICE, parts_.names[static_cast<std::size_t>(source.value)] +
                              " gave up its send after it was matched: it cancelled it, or its own error says why"};
}

void Engine::set_outcome(Operation& operation, Rank source, const Envelope& envelope, ist_carrier carrier) {
  if (operation.outcome.carrier != IST_CARRIER_NONE) return;  // memory ran out behind this before
  operation.peer = source;
  if (carrier == IST_CARRIER_RING && peer(source).link->same_process()) carrier = IST_CARRIER_DIRECT;
  if (envelope.flags != 0 || envelope.bytes > operation.piece.size.value) {
    const Status& types = operation.outcome.status;  // of compare_types()
    Outcome outcome = outcome_of(source, envelope, carrier, operation.piece.size);
    if (const Status found = outcome.status; !types.ok())
      outcome.status = found.ok() ? types : Status{found.code(), found.text() + "; " + types.text()};
    operation.outcome = std::move(outcome);
    return;
  }
  note(operation, source, envelope, carrier);
}

// Of a message that met a receive with that much room.
Outcome Engine::outcome_of(Rank source, const Envelope& envelope, ist_carrier carrier, Bytes room) const {
  Outcome outcome{Status{}, source, envelope.tag, carrier, smaller(Bytes{envelope.bytes}, room), nullptr, false};
  if (envelope.flags == 0 && envelope.bytes <= room.value) return outcome;
  const std::string& name = parts_.names[static_cast<std::size_t>(source.value)];
  if (envelope.bytes > room.value && (envelope.context & kInternalContext) != 0) {
    outcome.status = uneven(source, Bytes{envelope.bytes}, room);
  } else if (envelope.bytes > room.value) {
    outcome.status = {IST_ERR_TRUNCATE, "a message of " + std::to_string(envelope.bytes) + " bytes from " + name +
                                            " with tag " + std::to_string(envelope.tag) + " met a receive of " +
                                            std::to_string(room.value) + " bytes; the first ones were delivered"};
  }
  if (envelope.flags & kEnvelopeGaveUp) {
    outcome.about = cause_in(envelope.sender_op, source, size());
    outcome.status = gave_up(*outcome.about, static_cast<Code>(envelope.receiver_op));
  }
  if (envelope.flags & kEnvelopeFailed) {
    outcome.status = {IST_ERR_DEVICE, name + " could not read its buffer; its own error says why"};
    outcome.bytes = Bytes{};
  }
  return outcome;
}

// What another rank says that could not go on with a collective call; everybody names the rank that is the cause.
Status Engine::gave_up(Rank about, Code code) const {
  const std::string& name = parts_.names[static_cast<std::size_t>(about.value)];
  if (code == IST_ERR_PEER_LEFT) return {code, name + " left the world before it came to the call"};
  if (code == IST_ERR_PENDING)
    return {code,
            name + " cancelled this call before it was complete: by ist_cancel, or in C++ by an exception past its request"};
  return {code, name + " gave up this call; its own error says why"};
}

void Engine::receive_announced(Operation& operation, std::uint32_t index, const state::Readying& announcement) {
  operation.peer = announcement.source;
  operation.state = announcement;
  set_off(operation, index);
}

// What has begun goes as far as it can now. It is heard of, whatever happens: where memory runs out on the way, a later step goes it again.
void Engine::set_off(Operation& operation, std::uint32_t index) try {
  static_cast<void>(operation.sends ? step_send(operation, index) : step_receive(operation, index));
  if (needs_steps(operation)) activate(operation, index);
} catch (const std::bad_alloc&) {
  if (needs_steps(operation)) activate(operation, index);
}

void Engine::clear_or_copy(Operation& operation, std::uint32_t index, const state::Readying& announcement) {
  const Envelope& announced = announcement.announced;
  PeerState& from = peer(announcement.source);
  const Piece to = operation.piece.part(Offset{}, smaller(Bytes{announced.bytes}, operation.piece.size));
  if (from.link->same_process()) {
    Operation* sender = operations_.find_wire(announced.sender_op);
    if (sender == nullptr || !sender->in<state::Announced>() || sender->envelope.sequence != announced.sequence)
      return finish(operation, index, {IST_ERR_DEVICE, "this rank gave up its own send before it was received"});
    operation.state = state::Delivering{{},
                                        Transfer{parts_.kinds, parts_.pool, to, sender->piece.part(Offset{}, to.size),
                                                 std::move(operation.ready), std::move(sender->ready)},
                                        announced.sender_op,
                                        true};
    copying(operation);
    sender->state = state::Taken{};
    return;
  }
  if (reads(operation, announcement)) {
    operation.state = state::Reading{announcement.offer, announced, 0};
    copying(operation);
  } else {
    clear(operation, index, announced);
  }
}

void Engine::clear(Operation& operation, std::uint32_t index, const Envelope& announced) {
  PeerState& from = peer(operation.peer);
  const Piece to = operation.piece.part(Offset{}, smaller(Bytes{announced.bytes}, operation.piece.size));
  if (!from.receiver)
    from.receiver = std::make_unique<RingReceiver>(parts_.kinds, parts_.settings.ring_in_flight,
                                                   parts_.names[static_cast<std::size_t>(operation.peer.value)]);
  Envelope clear = clearance(announced_as(announced), operations_.id_of(index).wire(), to.kind, to.size);
  if (to.size == Bytes{}) {
    post_or_queue(from, clear);
    return finish(operation, index, {});
  }
  const auto sender = static_cast<KindId>(announced.kind);
  const bool hosts = to.kind == KindId::host && sender == KindId::host;  // nothing is lent then
  Loan loan;
  std::optional<state::Bouncing> bouncing;
  if (!hosts) {
    bouncing = lend_parts(operation, from, to, announced);
    if (!bouncing) loan = lend(from, to, sender);
    // It may have waited for a block until its memory could be lent.
    if (loan.allocation != 0)
      leave_blocks(operation);
    else if (!bouncing)
      bouncing = lend_bounce(operation, from, to, announced);
    if (bouncing) loan = bouncing->loan;
    if (waits_for_block(operation)) return;
    if (would_fetch(from, to, sender) || would_gather(operation, from, sender))
      clear.flags = operation.takes_forms() ? kEnvelopeBorrows | kEnvelopeTakesForms : kEnvelopeBorrows;
  }
  bool timed = operation.timed;
  auto laid = bouncing ? nullptr : into_place(operation, from, sender);
  if (const Fold* const fold = operation.fold(); fold != nullptr && fold->size == to.size) {
    if (from.receiver->expect_fold(clear.receiver_op, to, *fold) == RingWay::strings && sender == KindId::host)
      clear.flags |= kEnvelopeByStrings;
    timed = false;
  } else if (hosts && laid == nullptr) {
    const auto by = from.receiver->expect_of_host(clear.receiver_op, to, timed);
    timed = by.timed;
    if (by.way == RingWay::strings) clear.flags |= kEnvelopeByStrings;
  } else {
    from.receiver->expect(clear.receiver_op, to, timed, std::move(laid));
  }
  if (timed) clear.flags |= kEnvelopeTimes;
  try {
    post_or_queue(from, clear, loan.allocation == 0 ? std::span<const std::byte>{} : std::as_bytes(std::span{&loan, 1}));
  } catch (...) {
    from.receiver->forget(clear.receiver_op);  // it may go another way yet
    throw;
  }
  const std::uint32_t sender_op = announced.sender_op;
  if (bouncing)
    operation.state = std::move(*bouncing);
  else
    operation.state = state::Streaming{sender_op};
  streams_busy_ = true;
}

// True if the operation moved on.
bool Engine::step_receive(Operation& operation, std::uint32_t index) {
  if (auto* emptying = std::get_if<state::EmptyingCell>(&operation.state)) {
    const auto arrived = emptying->cell.step();
    if (arrived.ok() && !*arrived) return false;
    copied(operation, "copy out of a cell", operation.outcome.bytes);
    finish(operation, index, arrived.status());
    return true;
  }
  if (auto* delivering = std::get_if<state::Delivering>(&operation.state)) {
    const auto arrived = delivering->transfer.step();
    if (arrived.ok() && !*arrived) return false;
    copied(operation, "copy", operation.outcome.bytes);
    if (delivering->has_sender) {
      if (Operation* sender = operations_.find_wire(delivering->sender_op))
        finish(*sender, delivering->sender_op & 0xfffff, arrived.status());
    }
    finish(operation, index, arrived.status());
    return true;
  }
  if (operation.in<state::Unpacking>()) {
    if (!unpacked(operation)) return operation.laid->work.memory.kind == KindId::host;
    end(operation, index);
    return true;
  }
  if (auto* readying = std::get_if<state::Readying>(&operation.state)) {
    if (!readying->met) set_outcome(operation, readying->source, readying->announced, IST_CARRIER_RING);
    readying->met = true;
    if (readying->place != 0 && !blocks_.worth_asking(readying->place)) return false;
    const auto ready = is_finished(operation.ready);
    if (ready.ok() && !*ready) return false;
    // A failed queue counts as ready here too: the copy into the buffer reports it, and the sender is not left waiting.
    clear_or_copy(operation, index, state::Readying{*readying});
    return !waits_for_block(operation);
  }
  if (operation.in<state::Bouncing>()) return step_bouncing(operation, index);
  if (operation.in<state::Fetching>()) return step_fetching(operation, index);
  if (operation.in<state::TakingMail>()) return mail_->step_taking(operation, index);
  return operation.in<state::Reading>() && step_reading(operation, index);
}

}  // namespace ist
