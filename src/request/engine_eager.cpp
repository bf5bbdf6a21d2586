// Messages that have met their receive: whose bytes came with the envelope, out of slot or cell into the buffer. Where memory runs out
// between the two, a message comes again, to the same receive.
#include <cstring>
#include <utility>

#include "memory/host/handing_copy.hpp"
#include "request/engine_at_once.hpp"
#include "request/mail.hpp"
#include "request/type_check.hpp"

namespace ist {

void Engine::deliver(Path& path, const Arrival& arrival) {
  PeerState& from = peer(arrival.source);
  if (from.met) [[unlikely]] {
    // Of a world that failed meanwhile the receive has ended.
    const std::uint32_t met = *std::exchange(from.met, std::nullopt);
    const Operation* const receive = operations_.find_wire(met);
    if (receive != nullptr && receive->in<state::Met>()) return deliver_to(met & 0xfffff, path, arrival);
  }
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
    peer(arrival.source).link->sees(offer_in(arrival.envelope, arrival.payload), Bytes{arrival.envelope.bytes});
  const auto wire = matcher_.match(arrival.source, arrival.envelope);
  if (!wire && awaited_ != nullptr && awaited_->takes(arrival)) return receive_awaited(path, arrival), std::nullopt;
  if (!wire) {
    // Kept bytes leave their cell, or one slow receiver would stop its senders from sending to anybody else.
    Unexpected& kept = matcher_.keep({arrival.source, arrival.envelope, keep_bytes(arrival.payload), arrival.in_cell});
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
void Engine::deliver_to(std::uint32_t index, Path& path, const Arrival& arrival) try {
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
    receive_announced(operation, index, {arrival.source, arrival.envelope, offer_in(arrival.envelope, arrival.payload)});
  } else {
    set_outcome(operation, arrival.source, arrival.envelope, arrival.in_cell ? IST_CARRIER_CELL : IST_CARRIER_SLOT);
    receive_eager(operation, index, path, arrival);
  }
} catch (const std::bad_alloc&) {
  meet_again(operations_.at(index), index, arrival.source);
  throw;
}

// Memory ran out before anything of that message was done: it comes again in its turn, which is not over after all.
void Engine::meet_again(Operation& operation, std::uint32_t index, Rank source) {
  if (!operation.in<state::Posted>() && !operation.in<state::Met>()) return;
  operation.peer = source;
  operation.state = state::Met{};
  peer(source).met = operations_.id_of(index).wire();
  activate(operation, index);
  order_.give_back_turn(source);
}

// Throws only before anything has begun.
void Engine::receive_eager(Operation& operation, std::uint32_t index, Path& path, const Arrival& arrival) {
  const Piece to = operation.piece.part(Offset{}, operation.outcome.bytes);
  if (to.kind == KindId::host || to.size == Bytes{}) {
    if (to.size > Bytes{}) copy_across(to.address(), arrival.payload.data(), to.size.value);
    if (arrival.in_cell) path.release(arrival);
    return finish(operation, index, {});
  }
  const auto ready = arrival.in_cell ? is_finished(operation.ready) : Result<bool>{false};
  if (ready.ok() && *ready) {
    auto cell = CellReceive::start(parts_.kinds, path, arrival, to);
    if (!cell.ok()) return finish(operation, index, cell.status());
    operation.state = state::EmptyingCell{std::move(*cell)};
    copying(operation);
    return set_off(operation, index);
  }
  // In a slot, or the buffer has pending work: neither slot nor cell may wait for a device.
  KeptBytes bytes = keep_bytes(arrival.payload);
  if (arrival.in_cell) path.release(arrival);
  deliver_kept(operation, index, std::move(bytes));
}

// Throws nothing.
void Engine::deliver_kept(Operation& operation, std::uint32_t index, KeptBytes bytes) {
  const Piece to = operation.piece.part(Offset{}, operation.outcome.bytes);
  if (to.kind == KindId::host || to.size == Bytes{}) {
    if (to.size > Bytes{}) std::memcpy(to.address(), bytes.data(), to.size.value);
    return finish(operation, index, {});
  }
  const Piece from = host_piece(bytes.data(), to.size);
  operation.state = state::Delivering{
      std::move(bytes), Transfer{parts_.kinds, parts_.pool, to, from, std::move(operation.ready), Ticket{}}, 0, false};
  copying(operation);
  if (operation.outcome.carrier == IST_CARRIER_SLOT) ask_to_announce(peer(operation.peer), to.size);
  set_off(operation, index);
}

// A slot is no place for a device to copy from: the bytes were copied once more. Announced they go there straight from page-locked memory,
// and through the ring while they still come. Where memory runs out, a later message asks.
void Engine::ask_to_announce(PeerState& from, Bytes size) try {
  if (size <= from.link->cell_limit || from.asked_to_announce) return;
  Envelope asks;
  asks.type = EnvelopeType::announce_more;
  post_or_queue(from, asks);
  from.asked_to_announce = true;
} catch (const std::bad_alloc&) {
  return;
}

// Throws only before anything has begun, and the message is then as it was.
void Engine::take_kept(Operation& operation, std::uint32_t index, Unexpected& message) {
  if (types_) compare_types(operation, message.source, message.envelope, message.types);
  if (message.envelope.type == EnvelopeType::announce)
    return receive_announced(operation, index,
                             {message.source, message.envelope, offer_in(message.envelope, message.bytes)});
  if (message.envelope.type == EnvelopeType::mailed) {
    set_outcome(operation, message.source, message.envelope, IST_CARRIER_MAILBOX);
    return mail_->receive(operation, index, message.envelope);
  }
  set_outcome(operation, message.source, message.envelope, message.in_cell ? IST_CARRIER_CELL : IST_CARRIER_SLOT);
  deliver_kept(operation, index, std::move(message.bytes));
}

}  // namespace ist
