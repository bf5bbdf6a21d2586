// The receiving half of the engine: arrivals into their order, to their receive, into its buffer.
#include <cstring>
#include <utility>

#include "request/engine_at_once.hpp"
#include "request/mail.hpp"
#include "request/type_check.hpp"

namespace ist {
namespace {

void announce_more(PeerState& to) {
  to.slot_limit = smaller(to.link->slot_limit, to.link->cell_limit);
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
  auto kept = matcher_.match_or_post({scope.context, source, tag}, id.wire());
  if (!kept) {
    // The short way first, which nearly always is the whole.
    if (may_come(source)) return id;
    const Status reachable = check_source(source, scope.group.get());
    if (reachable.ok()) return id;
    // What was published before the peer went is delivered all the same; waiting for anything else would be for ever.
    const bool may_be_hidden = !take_last_arrivals() && anyone_left(source, scope.group.get());
    if (operation.in<state::Posted>() && !may_be_hidden) {
      matcher_.withdraw(id.wire());
      operation.types.reset();
      operations_.release(index);
      return reachable;
    }
    return id;
  }
  take_kept(operation, index, std::move(*kept));
  return id;
}

void Engine::take_kept(Operation& operation, std::uint32_t index, Unexpected message) {
  if (types_) compare_types(operation, message.source, message.envelope, message.types);
  if (message.envelope.type == EnvelopeType::announce)
    return receive_announced(operation, index, {message.source, message.envelope, offer_in(message.bytes)});
  if (message.envelope.type == EnvelopeType::mailed) {
    set_outcome(operation, message.source, message.envelope, IST_CARRIER_MAILBOX);
    return mail_->receive(operation, index, message.envelope);
  }
  set_outcome(operation, message.source, message.envelope, message.in_cell ? IST_CARRIER_CELL : IST_CARRIER_SLOT);
  deliver_kept(operation, index, std::move(message.bytes));
}

void Engine::on_arrival(Path& path, const Arrival& arrival) {
  if (arrival.envelope.type == EnvelopeType::clear) return on_clear(arrival);
  if (arrival.envelope.type == EnvelopeType::refuse) return on_refuse(arrival);
  if (arrival.envelope.type == EnvelopeType::taken) return on_taken(arrival);
  if (arrival.envelope.type == EnvelopeType::put) return on_put(arrival);
  if (arrival.envelope.type == EnvelopeType::lend) return on_lend(arrival);
  if (arrival.envelope.type == EnvelopeType::announce_more) return announce_more(peer(arrival.source));
  if (arrival.envelope.type == EnvelopeType::ring_lost) return on_ring_lost(arrival);
  if (arrival.envelope.type == EnvelopeType::mailbox)
    return mail_ ? mail_->hear(arrival) : hear(loan_in(arrival.payload), arrival);
  if (arrival.envelope.type == EnvelopeType::notice) {
    if (heard_) heard_(arrival.source, arrival.envelope, arrival.payload);
    return wake_sleeper();
  }
  take_in_order(path, arrival);
  if (order_.has_early(arrival.source)) take_early(arrival.source);
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
  operation->outcome.about = arrival.source;
  finish(*operation, arrival.envelope.receiver_op & 0xfffff,
         {IST_ERR_DEVICE, parts_.names[static_cast<std::size_t>(arrival.source.value)] +
                              " gave up its send after it was matched: it cancelled it, or its own error says why"});
}

void Engine::deliver(Path& path, const Arrival& arrival) {
  if (const auto wire = meet(path, arrival)) deliver_to(*wire & 0xfffff, path, arrival);
}

// The receive that takes it, if that is all there is to do yet. Where memory runs out before, it is as if its turn had not come.
std::optional<std::uint32_t> Engine::meet(Path& path, const Arrival& arrival) try {
  if (arrival.envelope.type == EnvelopeType::withdraw || arrival.envelope.type == EnvelopeType::types)
    return take_place(arrival), std::nullopt;
  if ((arrival.envelope.flags & kEnvelopeInvited) != 0)
    return take_invited(arrival), std::nullopt;  // also of who has left: what says that all came is behind it
  // The bytes of an announced message stayed with a sender that is gone, or whose world has failed as this one has, perhaps
  // without having noticed yet: it never was.
  if (arrival.envelope.type == EnvelopeType::announce &&
      (!world_failed_.ok() || parts_.board.fate(arrival.source) != AbortBoard::Fate::present))
    return take_place(arrival), std::nullopt;
  // Its descriptor is taken now, whenever the message is: of those under way a system has only so many for a user.
  if (arrival.envelope.type == EnvelopeType::announce)
    peer(arrival.source).link->sees(offer_in(arrival.payload), Bytes{arrival.envelope.bytes});
  const auto wire = matcher_.match(arrival.source, arrival.envelope);
  if (!wire && awaited_ != nullptr && awaited_->takes(arrival)) return receive_awaited(path, arrival), std::nullopt;
  if (!wire) {
    // Kept bytes leave their cell, or one slow receiver would stop its senders from sending to anybody else.
    Unexpected& kept =
        matcher_.keep({arrival.source, arrival.envelope, {arrival.payload.begin(), arrival.payload.end()}, arrival.in_cell});
    if (types_) kept.types = types_->note_from(arrival.source);  // not before there is something that holds it
    if (arrival.in_cell) path.release(arrival);
    wake_sleeper();  // who may probe for it
  }
  if (arrival.envelope.type == EnvelopeType::mailed) mail_->came(arrival.source, arrival.envelope);
  return wire;
} catch (...) {
  order_.give_back_turn(arrival.source);
  throw;
}

// To the receive that it belongs to.
void Engine::deliver_to(std::uint32_t index, Path& path, const Arrival& arrival) {
  Operation& operation = operations_.at(index);
  if (types_) [[unlikely]]
    compare_types(operation, arrival.source, arrival.envelope, types_->note_from(arrival.source));
  if (PeerState& from = peer(arrival.source); from.invited && *from.invited == operations_.id_of(index).wire()) [[unlikely]]
    retire(from);
  if (is_plain(operation, arrival.envelope, arrival.payload.size())) {
    note(operation, arrival.source, arrival.envelope, arrival.in_cell ? IST_CARRIER_CELL : IST_CARRIER_SLOT);
    peer(arrival.source).traffic.received_by(arrival.in_cell ? Way::cell : Way::slot).add(Bytes{arrival.envelope.bytes});
    copy_any(operation.piece.address(), arrival.payload.data(), arrival.payload.size());
    if (arrival.in_cell) path.release(arrival);
    return end(operation, index);
  }
  if (arrival.envelope.type == EnvelopeType::mailed) {
    set_outcome(operation, arrival.source, arrival.envelope, IST_CARRIER_MAILBOX);
    mail_->receive(operation, index, arrival.envelope);
  } else if (arrival.envelope.type == EnvelopeType::announce) {
    receive_announced(operation, index, {arrival.source, arrival.envelope, offer_in(arrival.payload)});
  } else {
    set_outcome(operation, arrival.source, arrival.envelope, arrival.in_cell ? IST_CARRIER_CELL : IST_CARRIER_SLOT);
    receive_eager(operation, index, path, arrival);
  }
}

void Engine::set_outcome(Operation& operation, Rank source, const Envelope& envelope, ist_carrier carrier) {
  operation.peer = source;
  if (carrier == IST_CARRIER_RING && peer(source).link->same_process()) carrier = IST_CARRIER_DIRECT;
  if (envelope.flags != 0 || envelope.bytes > operation.piece.size.value) {
    const Status types = operation.outcome.status;  // of compare_types()
    operation.outcome = outcome_of(source, envelope, carrier, operation.piece.size);
    if (!types.ok()) {
      const Status& found = operation.outcome.status;
      operation.outcome.status = found.ok() ? types : Status{found.code(), found.text() + "; " + types.text()};
    }
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
    const Rank about{static_cast<std::int32_t>(envelope.sender_op)};
    outcome.about = about.value >= 0 && about.value < size() ? about : source;
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

void Engine::receive_eager(Operation& operation, std::uint32_t index, Path& path, const Arrival& arrival) {
  const Piece to = operation.piece.part(Offset{}, operation.outcome.bytes);
  if (to.kind != KindId::host && to.size > Bytes{} && arrival.in_cell) {
    const auto ready = is_finished(operation.ready);
    if (ready.ok() && *ready) {
      auto cell = CellReceive::start(parts_.kinds, path, arrival, to);
      if (!cell.ok()) return finish(operation, index, cell.status());
      operation.state = state::EmptyingCell{std::move(*cell)};
      copying(operation);
      if (!step_receive(operation, index)) activate(operation, index);
      return;
    }
  }
  if (to.kind == KindId::host || to.size == Bytes{}) {
    if (to.size > Bytes{}) std::memcpy(to.address(), arrival.payload.data(), to.size.value);
    if (arrival.in_cell) path.release(arrival);
    return finish(operation, index, {});
  }
  // In a slot, or the buffer has pending work: neither slot nor cell may wait for a device.
  std::vector<std::byte> bytes(arrival.payload.begin(), arrival.payload.end());
  if (arrival.in_cell) path.release(arrival);
  deliver_kept(operation, index, std::move(bytes));
}

void Engine::deliver_kept(Operation& operation, std::uint32_t index, std::vector<std::byte> bytes) {
  const Piece to = operation.piece.part(Offset{}, operation.outcome.bytes);
  if (to.kind == KindId::host || to.size == Bytes{}) {
    if (to.size > Bytes{}) std::memcpy(to.address(), bytes.data(), to.size.value);
    return finish(operation, index, {});
  }
  if (operation.outcome.carrier == IST_CARRIER_SLOT) ask_to_announce(peer(operation.peer), to.size);
  const Piece from = host_piece(bytes.data(), to.size);
  operation.state = state::Delivering{
      std::move(bytes), Transfer{parts_.kinds, parts_.pool, to, from, std::move(operation.ready), Ticket{}}, 0, false};
  copying(operation);
  if (!step_receive(operation, index)) activate(operation, index);
}

// A slot is no place for a device to copy from: the bytes were copied once more. Announced they go there straight from page-locked memory,
// and through the ring while they still come.
void Engine::ask_to_announce(PeerState& from, Bytes size) {
  if (size <= from.link->cell_limit || std::exchange(from.asked_to_announce, true)) return;
  Envelope asks;
  asks.type = EnvelopeType::announce_more;
  post_or_queue(from, asks);
}

// The announcement is heard, whatever happens: where memory runs out on the way, a later step goes it again.
void Engine::receive_announced(Operation& operation, std::uint32_t index, const state::Readying& announcement) try {
  operation.peer = announcement.source;
  operation.state = announcement;
  if (!step_receive(operation, index) || operation.in<state::Delivering>() || operation.in<state::Reading>())
    activate(operation, index);
} catch (const std::bad_alloc&) {
  if (complete(operation)) throw;  // that was behind it
  activate(operation, index);
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
  Loan loan = lend_parts(operation, from, to, announced);
  if (loan.allocation == 0) {
    loan = lend(from, to, sender);
    // It may have waited for a block until its memory could be lent.
    if (loan.allocation != 0)
      leave_blocks(operation);
    else
      loan = lend_bounce(operation, from, to, announced);
  }
  if (waits_for_block(operation)) return;
  if (would_fetch(from, to, sender) || would_gather(operation, from, sender))
    clear.flags = operation.takes_forms() ? kEnvelopeBorrows | kEnvelopeTakesForms : kEnvelopeBorrows;
  if (operation.timed) clear.flags |= kEnvelopeTimes;
  from.receiver->expect(clear.receiver_op, to, operation.timed, into_place(operation, from, sender));
  post_or_queue(from, clear, loan.allocation == 0 ? std::span<const std::byte>{} : std::as_bytes(std::span{&loan, 1}));
  if (!operation.in<state::Bouncing>()) operation.state = state::Streaming{announced.sender_op};
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
