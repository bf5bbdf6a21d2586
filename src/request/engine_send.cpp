// The sending half of the engine: choose a carrier, find room, answer clearances.
#include <chrono>
#include <span>
#include <string>
#include <utility>

#include "request/mail.hpp"

namespace ist {
namespace {

// A pack kernel, the usual work pending on a buffer that is sent, is over within this time on any device; a message whose
// buffer takes longer lets the later ones of its pair go ahead. Announcing at once would cost every such message the
// handshake, 2 to 5 us between GPUs and two changes of process where ranks share processors.
constexpr std::chrono::microseconds kPatienceWithKernels{1000};

// Shorter messages that slots take are copied from where they lie only out of places that messages to the same rank were sent from lately: of bytes just written the
// receiver takes every line from the sender's own cache, which takes longer than two copies, one on either side. Windows of 64 messages of 32, 64 and 128 KiB, just
// written, 1.22, 2.15 and 3.5 to 4.2 us a message so, 0.95, 1.85 and 3.7 to 4.2 in slots (AMD EPYC, Zen 5, a line in 0.06 us); 6.5 to 7.4, 10.4 to 11.3 and 18 to
// 20, and 4.4, 9.2 and 18.4 (Intel Xeon of the fourth generation, 16 processors). Sent again 0.39, 0.73 and 1.4, and 0.44, 0.89 and 1.85 on that EPYC (2026-11-30).
constexpr Bytes kShownWhatever = kibibytes(128);
bool is_better_shown(const Piece& piece, PeerState& to, SendMode mode) {
  const bool again = to.shown_from.use(piece.address(), piece.size);
  const bool by_slot = !mode.synchronous && piece.size <= smaller(to.slot_limit, to.slots_up_to);
  return again || mode.shows || piece.size >= kShownWhatever || !by_slot;
}

// Longer messages than slots take otherwise go in slots, too, if they leave a place that such messages left lately (pair_slot.hpp says why), and unless one copy is
// quicker, or that is not known yet: then they are announced, to find out. Who waits for each message, or for a call that they are part of, gains by a ring, which is
// emptied while it is filled.
bool fits_again(const Piece& piece, PeerState& to, SendMode mode, const CopyChoice& copies, const std::string& one_copy) {
  if (piece.size <= to.slot_limit || piece.size > to.slot_limit_again || piece.kind != KindId::host || !mode.in_windows)
    return false;
  if (!to.sent_from.use(piece.address(), piece.size)) return false;
  const bool two = one_copy == "never" || (one_copy == "auto" && copies.is_settled(piece.size) &&
                                           copies.chosen(piece.size) == CopyChoice::Way::ring);
  return two || !to.link->reads_peer();
}

// Few messages of kilobytes fill a pair's slots. Those above this size then take cells, so that as many can wait for their
// receives as there are.
constexpr Bytes kBrief{256};

// So often a message that fits a slot or cell and lies in the shared heap is announced all the same, to hear whether its receiver takes
// it from there by now.
constexpr std::uint32_t kShowAgain = 16;

// Of what is announced the queue is asked behind the announcement, while the receiver asks his. And not at all where the copy begins at
// once: what is put into the queue meanwhile must not come before it.
bool is_asked_later(ist_carrier carrier, bool at_once) {
  return carrier == IST_CARRIER_RING || carrier == IST_CARRIER_DIRECT || (carrier == IST_CARRIER_CELL && at_once);
}

}  // namespace

Result<OperationId> Engine::start_send(const Piece& piece, Rank dest, std::int32_t tag, const Scope& scope, bool* done,
                                       SendMode mode) {
  IST_TRY(check_peer(dest));
  if (mail_ && !types_ && !mode.synchronous)
    if (auto sent = mail_->send(piece, dest, tag, scope)) return std::move(*sent);
  if (peer(dest).guest && !types_)
    if (const auto sent = accept(piece, {dest, tag, scope})) return *sent;
  // Who blocks goes on once his bytes are in a slot, and need not wait until the receiver has copied them; and of longer ones both sides
  // copy at the same time. Who does not has his processor for something else.
  const bool shown = !mode.blocking && is_shown(piece, peer(dest)) && is_better_shown(piece, peer(dest), mode);
  const ist_carrier carrier = carrier_of(piece, peer(dest), shown, mode);
  auto ready = pending_work(piece, is_asked_later(carrier, mode.blocking && peer(dest).outbox.empty()));
  if (!ready.ok()) return ready.status();
  return send_ready(piece, std::move(*ready), {dest, tag, scope, carrier, shown, nullptr, mode.stays_eager}, done);
}

MessageShape Engine::shape_of(const Piece& piece, const PeerState& with, SendMode mode, bool lent) const {
  MessageShape message{piece.size, piece.kind, with.link->same_process(), with.slot_limit, with.link->cell_limit};
  message.slots_up_to = with.slots_up_to;
  message.mode = mode;
  if (piece.kind == KindId::host) return message;
  message.worker_limit = parts_.kinds.worker_limit(piece);
  message.lent = lent;
  // What lends is believed to be as the last one that did; on which device it is, the answer tells.
  if (lent) message.to = {piece.kind, MemoryClass::device};
  return message;
}

ist_carrier Engine::carrier_of(const Piece& piece, PeerState& to, bool shown, SendMode mode) const {
  const bool worth_showing = shown && (to.takes_shown || ++to.since_shown % kShowAgain == 0);
  MessageShape message = shape_of(piece, to, mode, piece.kind != KindId::host && may_put(to, piece));
  if (fits_again(piece, to, mode, copies_, parts_.settings.single_copy)) message.slot_limit = to.slot_limit_again;
  message.shown = worth_showing;
  const ist_carrier carrier = choose(message, parts_.machine);
  if (carrier == IST_CARRIER_SLOT || carrier == IST_CARRIER_CELL) return carrier;
  // What is announced hears of its receive. Whether its bytes are copied from where they lie, go by the device or through the ring, the
  // answer tells.
  return to.link->same_process() ? IST_CARRIER_DIRECT : IST_CARRIER_RING;
}

bool Engine::lies_in_heap(const Piece& piece) const {
  return piece.size > shown_above_ && piece.kind == KindId::host && heap_->holds(piece.address(), piece.size);
}

// Can that peer copy it from where it lies, without asking the system?
bool Engine::is_shown(const Piece& piece, const PeerState& to) const { return lies_in_heap(piece) && to.link->show_heap(); }

Result<OperationId> Engine::send_ready(const Piece& piece, Ticket ready, const Destination& order, bool* done) {
  PeerState& to = peer(order.rank);
  const ist_carrier carrier = order.carrier;
  Trace::Clock::time_point begun;
  if (watched_) [[unlikely]] {
    if (parts_.trace != nullptr) begun = Trace::Clock::now();
    if (types_ && !tell_types(to)) return too_many();
  }
  Envelope envelope;
  envelope.sequence = to.next_sequence;
  envelope.context = order.scope.context;
  envelope.tag = order.tag;
  envelope.kind = static_cast<std::uint8_t>(piece.kind);
  envelope.bytes = piece.size.value;
  if (order.given_up != nullptr) {
    envelope.flags = kEnvelopeGaveUp;
    envelope.sender_op = static_cast<std::uint32_t>(order.given_up->about.value);
    envelope.receiver_op = static_cast<std::uint32_t>(order.given_up->code);
  }
  if (carrier == IST_CARRIER_SLOT && to.outbox.empty() && to.link->post(envelope, {piece.address(), piece.size.value})) {
    *done = true;
    ++to.next_sequence;
    if (order.given_up == nullptr) to.traffic.sent_by(Way::slot).add(piece.size);
    if (parts_.trace != nullptr) trace_at_once(order, piece.size, begun);
    if (to.link->same_process()) wake_sleeper();
    return OperationId{};
  }
  wake_sleeper();
  const OperationId id = operations_.add();
  if (id.value == 0) return too_many();
  Operation& operation = operations_.at(id.index());  // in state::Queued, as every new one
  if (carrier == IST_CARRIER_RING || carrier == IST_CARRIER_DIRECT) {
    envelope.type = EnvelopeType::announce;
    envelope.sender_op = id.wire();
  }
  operation.sends = true;
  operation.wire = id.wire();
  operation.peer = order.rank;
  operation.piece = piece;
  operation.ready = std::move(ready);
  operation.shown = order.shown;
  operation.stays_eager = order.stays_eager;
  operation.envelope = envelope;
  operation.group = order.scope.group;
  operation.outcome = {Status{}, parts_.rank, order.tag, carrier, piece.size, nullptr, false};
  if (parts_.trace != nullptr) trace_begin(operation);
  try {
    post_first(operation, id.index());
  } catch (const std::bad_alloc&) {
    end_offer(operation);
    operations_.release(id.index());  // nothing was sent
    throw;
  }
  ++to.next_sequence;
  return id;
}

// Throws only before anything is sent.
void Engine::post_first(Operation& operation, std::uint32_t index) {
  PeerState& to = peer(operation.peer);
  if ((to.outbox.empty() || (types_ && to.only_types_wait())) && try_send(operation, index)) {
    if (operation.in<state::Announced>()) ask_behind(operation, index);
    return;
  }
  // From now on other work of the queue may come first: this is the moment to know of what is there.
  if (const auto asked = is_finished(operation.ready); !asked.ok()) {
    fail_send(operation, index, asked.status());
  } else {
    to.outbox.push_back({operation.envelope, {}, index, true});
    ++posting_;
  }
}

// The same moment of what is announced: its receiver hears of a failure when it answers. Where memory runs out that is found then.
void Engine::ask_behind(Operation& operation, std::uint32_t index) noexcept try {
  if (const auto asked = is_finished(operation.ready); !asked.ok()) finish(operation, index, asked.status());
} catch (const std::bad_alloc&) {
  return;
}

// True when the operation's envelope needs no more room: posted, or its cell is being filled.
bool Engine::try_send(Operation& operation, std::uint32_t index) {
  Link& link = *peer(operation.peer).link;
  if (operation.envelope.type == EnvelopeType::announce) {
    if (!announce(operation, index)) return false;
    operation.state = state::Announced{};
    return true;
  }
  if (operation.outcome.carrier == IST_CARRIER_SLOT) {
    if (link.post(operation.envelope, {operation.piece.address(), operation.piece.size.value})) {
      finish(operation, index, {});
      return true;
    }
    if (operation.piece.size <= kBrief || operation.piece.size > link.cell_limit) return false;
  }
  auto cell = CellSend::start(parts_.kinds, link, operation.piece, operation.ready);
  if (!cell.ok()) {
    fail_send(operation, index, cell.status());
    return true;
  }
  if (!cell->has_value()) return false;
  operation.outcome.carrier = IST_CARRIER_CELL;
  copying(operation);
  state::FillingCell filling{std::move(**cell), {}};
  if (!operation.ready.empty() && !operation.stays_eager)
    filling.overdue = std::chrono::steady_clock::now() + kPatienceWithKernels;
  operation.state = std::move(filling);
  set_off(operation, index);
  return true;
}

bool Engine::announce(Operation& operation, std::uint32_t index) {
  Link& link = *peer(operation.peer).link;
  if (operation.piece.kind != KindId::host || link.same_process()) return link.post(operation.envelope, {});
  if (operation.offered == 0) ++offers_;
  operation.offered = operations_.id_of(index).value;
  const std::uint64_t word =
      operation.shown ? heap_->show(operation.offered) : reinterpret_cast<std::uint64_t>(&operation.offered);
  const Offer offer{reinterpret_cast<std::uint64_t>(operation.piece.address()), word, operation.offered,
                    link.offers_withdrawn()};
  operation.envelope.receiver_op = offer.withdrawn;
  if (!link.post(operation.envelope, std::as_bytes(std::span{&offer, 1}).first(kOfferPayload))) return false;
  looks_of_starts_.announced();
  return true;
}

Envelope Engine::clearance(const AnnouncedAs& sender, std::uint32_t receiver_op, KindId kind, Bytes bytes) {
  Envelope clear;
  clear.type = EnvelopeType::clear;
  clear.kind = static_cast<std::uint8_t>(kind);
  clear.bytes = bytes.value;
  clear.sender_op = sender.sender_op;
  clear.sequence = sender.sequence;
  clear.receiver_op = receiver_op;
  return clear;
}

void Engine::on_clear(const Arrival& arrival) {
  const Envelope& clear = arrival.envelope;
  const Loan loan = loan_in(arrival.payload);
  hear(loan, arrival);
  Operation* operation = operations_.find_wire(clear.sender_op);
  auto* const parted = operation != nullptr ? std::get_if<state::Parted>(&operation->state) : nullptr;
  if (operation == nullptr || (parted == nullptr && !operation->in<state::Announced>()) ||
      operation->envelope.sequence != clear.sequence || clear.bytes > operation->piece.size.value) {
    PeerState& from = peer(arrival.source);
    return post_refusal(from, clear.receiver_op, 0, from.why_given_up(clear.sequence));
  }
  // What takes a block of the receiver's is not worth an announcement where a cell does.
  if (operation->piece.kind != KindId::host) {
    peer(arrival.source).links = loan.allocation != 0;
    peer(arrival.source).lends = loan.allocation != 0 && loan.part == 0;
  }
  if (operation->shown) peer(arrival.source).takes_shown = false;
  operation->answered = true;
  const std::uint32_t index = clear.sender_op & 0xfffff;
  if (clear.bytes == 0) return finish(*operation, index, {});
  state::Cleared cleared{clear.receiver_op,
                         Bytes{clear.bytes},
                         static_cast<KindId>(clear.kind),
                         loan,
                         (clear.flags & kEnvelopeBorrows) != 0,
                         (clear.flags & kEnvelopeTakesForms) != 0,
                         nullptr,
                         Bytes{}};
  if (parted != nullptr) {
    cleared.memory = std::move(parted->memory);
    cleared.sent = parted->sent;
  }
  operation->timed = (clear.flags & kEnvelopeTimes) != 0;
  operation->by_strings = (clear.flags & kEnvelopeByStrings) != 0;
  operation->lent = false;
  operation->state = std::move(cleared);
  set_off(*operation, index);
}

void Engine::on_taken(const Arrival& arrival) {
  Operation* operation = operations_.find_wire(arrival.envelope.sender_op);
  if (operation == nullptr || !operation->in<state::Announced>() ||
      operation->envelope.sequence != arrival.envelope.sequence)
    return;
  operation->outcome.carrier = operation->piece.kind == KindId::host ? IST_CARRIER_DIRECT : IST_CARRIER_DEVICE;
  if (operation->shown) peer(arrival.source).takes_shown = (arrival.envelope.flags & kEnvelopeSeen) != 0;
  operation->answered = true;
  finish(*operation, arrival.envelope.sender_op & 0xfffff, {});
}

void Engine::start_stream(Operation& operation, std::uint32_t index) {
  const auto cleared = std::get<state::Cleared>(operation.state);
  PeerState& to = peer(operation.peer);
  if (!to.ring_refused.ok()) {
    post_refusal(to, cleared.receiver_op, kEnvelopeFailed);
    return finish(operation, index, to.ring_refused);
  }
  if (const Status opened = to.open_ring(parts_.kinds, parts_.settings.ring_in_flight); !opened.ok())
    return refuse(operation, index, cleared.receiver_op,
                  opened.code() == IST_ERR_INTERNAL ? opened : explain(operation.peer, opened));
  const bool hosts = operation.piece.kind == KindId::host && cleared.receiver_kind == KindId::host;
  to.sender->add({operation.envelope.sender_op, cleared.receiver_op, operation.piece.part(Offset{}, cleared.accepted),
                  ring_fill(cleared.accepted, hosts, parts_.settings), hosts,
                  operation.waits_to_pack() ? std::make_shared<const PackWork>(operation.laid->work) : nullptr,
                  operation.timed, operation.by_strings ? RingWay::strings : RingWay::loops});
  operation.state = state::Streaming{};
  streams_busy_ = true;
  if (operation.piece.kind != KindId::host && cleared.receiver_kind == operation.piece.kind) warn_of_host_memory(operation);
}

// The user's kernel takes its time: the envelope takes its place in the order without the bytes, so that no later message of
// the pair waits for the kernel. The cell is given back when the copy that waits in the device's queue is over, and so long the
// send is not.
bool Engine::announce_instead(Operation& operation, state::FillingCell& filling) {
  Envelope announcement = operation.envelope;
  unused_cells_.reserve(unused_cells_.size() + 1);  // nothing may fail behind the announcement
  announcement.type = EnvelopeType::announce;
  announcement.sender_op = operation.wire;
  if (!peer(operation.peer).link->post(announcement, {})) return false;
  operation.envelope = announcement;
  operation.outcome.carrier = peer(operation.peer).link->same_process() ? IST_CARRIER_DIRECT : IST_CARRIER_RING;
  unused_cells_.push_back({std::move(filling.cell), operation.wire});
  operation.still_read = true;
  operation.state = state::Announced{};
  return true;
}

// Whoever sends may free the buffer when he hears that it is over. Of a rank that is gone he hears at once: his kernel may wait for
// that rank for ever, and the copy for his kernel; then he has to wait for his stream before he frees what it works on anyway.
bool Engine::must_stay(Operation& operation, const Status& status) {
  if (status.ok()) {
    operation.state = state::Leaving{operation.in<state::Streaming>() || operation.in<state::Putting>()};
    return true;
  }
  for (UnusedCell& each : unused_cells_)
    if (each.sender == operation.wire) each.sender.reset();
  return false;
}

bool Engine::step_unused_cells() {
  bool moved = false;
  for (std::size_t i = 0; i < unused_cells_.size();) {
    if (!unused_cells_[i].cell.step_unused()) {
      ++i;
      continue;
    }
    moved = true;
    const std::optional<std::uint32_t> sender = unused_cells_[i].sender;
    unused_cells_.erase(unused_cells_.begin() + static_cast<std::ptrdiff_t>(i));
    Operation* const operation = sender ? operations_.find_wire(*sender) : nullptr;
    if (operation == nullptr) continue;
    operation->still_read = false;
    if (operation->in<state::Leaving>()) end(*operation, *sender & 0xfffff);
  }
  return moved;
}

// True if the operation moved on.
bool Engine::step_send(Operation& operation, std::uint32_t index) {
  if (operation.unsaid) [[unlikely]]
    say(operation);
  if (operation.in<state::Failing>()) return fill_place_of(operation, index);
  if (auto* filling = std::get_if<state::FillingCell>(&operation.state)) {
    const auto posted = filling->cell.step(operation.envelope);
    if (!posted.ok()) {
      fail_send(operation, index, posted.status());
    } else if (*posted) {
      copied(operation, "copy into a cell", operation.piece.size);
      finish(operation, index, {});
    } else if (filling->overdue && std::chrono::steady_clock::now() > *filling->overdue) {
      const Status reachable = check_peer(operation.peer);
      if (reachable.ok()) return announce_instead(operation, *filling);
      // Whoever is gone clears nothing, and this send must not wait for the user's kernel to hear of it.
      unused_cells_.reserve(unused_cells_.size() + 1);
      unused_cells_.push_back({std::move(filling->cell), std::nullopt});
      finish(operation, index, reachable);
    }
    return complete(operation);
  }
  if (operation.in<state::Cleared>()) {
    // A queue that failed counts as ready: the copy fails in its turn, and the ring tells the receiver.
    const auto ready = is_finished(operation.ready);
    if (ready.ok() && !*ready) return false;
    if (must_wait_to_put(operation)) return false;
    if (operation.waits_to_pack()) return send_unpacked(operation, index, ready.status());
    if (!ready.ok() || (!lend_to_receiver(operation) && !put(operation, index))) start_stream(operation, index);
    return true;
  }
  if (operation.in<state::SendingMail>()) return mail_->step_sending(operation, index);
  return operation.in<state::Putting>() && step_putting(operation, index);
}

}  // namespace ist
