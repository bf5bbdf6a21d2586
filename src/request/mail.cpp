// The sending half of mailboxes, and what their owners tell each other.
#include "request/mail.hpp"

#include <bit>
#include <utility>

#include "base/log.hpp"
#include "memory/workers.hpp"

namespace ist {
namespace {

using By = state::SendingMail::By;

// So often a message goes to a mailbox all the same whose last one no worker could put where it belonged.
constexpr std::uint32_t kAskUnfitAgain = 16;
// The receiver tells of so many free places, or when the sender knows of none, if no message of its own does.
constexpr int kTellOf = Mailing::kPlaces / 2;

// In Envelope::receiver_op of both types: the place below (mail_taking.cpp); whether the last message met memory that is no worker's; and which
// places of the box of whoever writes it are free again.
constexpr std::uint32_t kUnfit = 0x100;
constexpr unsigned kFreeShift = 16;

}  // namespace

static_assert(Mailing::kPlaces == 16, "places are bits of half a word");

std::unique_ptr<Mail> Mail::make(Engine& engine) {
  const Engine::Parts& parts = engine.parts();
  MemoryKind* const cuda = parts.settings.worker ? parts.kinds.find(KindId::cuda) : nullptr;
  Mailing* const mailing = cuda != nullptr ? cuda->mailing() : nullptr;
  if (mailing == nullptr || cuda->workers() == nullptr || cuda->workers()->limit(-1) == Bytes{}) return nullptr;
  return std::unique_ptr<Mail>{new Mail{engine, *mailing}};
}

Mail::Mail(Engine& engine, Mailing& mailing)
    : engine_(engine),
      mailing_(mailing),
      out_(static_cast<std::size_t>(engine.size())),
      in_(static_cast<std::size_t>(engine.size())) {}

Mail::~Mail() = default;

// ---- boxes ----

void Mail::offer() {
  if (std::exchange(offered_, true)) return;
  for (PeerState& to : engine_.peers_) {
    if (to.link == nullptr || to.link->same_process() || !engine_.check_peer(to.rank).ok()) continue;
    Lending* const lender = engine_.lending(*to.link, KindId::cuda);
    if (lender == nullptr) continue;
    auto box = mailing_.make_box();
    if (box == nullptr) return;
    const auto loan = lender->lend(*box, to.rank);
    if (!loan) return;
    in(to.rank).box = std::move(box);
    Envelope offered;
    offered.type = EnvelopeType::mailbox;
    offered.kind = static_cast<std::uint8_t>(KindId::cuda);
    engine_.post_or_queue(to, offered, std::as_bytes(std::span{&*loan, 1}));
  }
}

// Beside the first messages, since that takes milliseconds.
bool Mail::open(Out& to, Rank dest, const Piece& piece) const {
  if (to.box != nullptr) return true;
  if (to.loan.allocation == 0 || to.off || !mailing_.fits(piece)) return false;
  Lending* const borrower = engine_.lending(*engine_.peer(dest).link, KindId::cuda);
  // This rank may be set to open nothing, whatever the other one is.
  if (borrower == nullptr || borrower->same_device(to.loan, piece)) {
    to.off = true;
    return false;
  }
  to.box = borrower->borrow(to.loan, dest, piece);
  if (to.box == nullptr) to.off = !borrower->opening(to.loan, dest, piece);
  return to.box != nullptr;
}

void Mail::hear(const Arrival& arrival) {
  const Envelope& said = arrival.envelope;
  Out& to = out(arrival.source);
  if (const Loan loan = loan_in(arrival.payload); loan.allocation != 0) {
    engine_.hear(loan, arrival);
    to.loan = loan;
    return;
  }
  if ((said.flags & kEnvelopeFailed) != 0) {
    in(arrival.source).failed.insert(said.sender_op);
    return;
  }
  to.told |= static_cast<std::uint16_t>(said.receiver_op >> kFreeShift);
  to.unfit = (said.receiver_op & kUnfit) != 0;
}

void Mail::came(Rank source, const Envelope& envelope) {
  ++in(source).messages;
  --in(source).open;
  Out& to = out(source);
  to.told |= static_cast<std::uint16_t>(envelope.receiver_op >> kFreeShift);
  to.unfit = (envelope.receiver_op & kUnfit) != 0;
}

// What the sender of that box is told with the next envelope.
std::uint32_t Mail::news(In& from) {
  from.open += static_cast<std::uint32_t>(std::popcount(from.free));
  return static_cast<std::uint32_t>(std::exchange(from.free, 0)) << kFreeShift | (from.unfit ? kUnfit : 0U);
}

// Where memory runs out, it is told with the next envelope.
void Mail::tell(Rank rank, In& from) {
  const auto free = from.free;
  const auto open = from.open;
  Envelope note;
  note.type = EnvelopeType::mailbox;
  note.receiver_op = news(from);
  try {
    engine_.post_or_queue(engine_.peer(rank), note);
  } catch (const std::bad_alloc&) {
    from.free = free;
    from.open = open;
  }
}

// Guard DONE_LAST of models/mailbox.pml: whatever looked at the place has done so.
void Mail::free_again(Rank source, std::uint32_t place, bool cleaned) {
  In& from = in(source);
  if (cleaned) from.clean[place] = from.messages / Mailing::kEpoch;
  from.free |= static_cast<std::uint16_t>(1U << place);
  if (std::popcount(from.free) >= kTellOf || from.open == 0) tell(source, from);
}

void Mail::note_fit(Rank source, bool unfit) {
  In& from = in(source);
  if (std::exchange(from.unfit, unfit) != unfit) tell(source, from);
}

// ---- sending ----

Bytes Mail::limit(Rank dest) const {
  const Out& to = out_[static_cast<std::size_t>(dest.value)];
  return to.box != nullptr && !to.unfit ? kWorkerLimit : Bytes{};
}

// In turn, so that none stays unused for as long as numbers take to come again: also where the next one is only about to be free. Guards
// PLACE_FREE, OWN_ORDER_OVER, IN_TURN.
std::optional<std::uint32_t> Mail::free_place(const Out& to) {
  for (std::uint32_t n = 0; n < Mailing::kPlaces && to.told != 0; ++n) {
    const std::uint32_t place = (to.next + n) % Mailing::kPlaces;
    if ((to.told >> place & 1U) != 0) return (to.busy >> place & 1U) == 0 ? std::optional{place} : std::nullopt;
  }
  return std::nullopt;
}

bool Mail::chosen(const PeerState& to, const Piece& piece) const {
  MessageShape shape{piece.size, piece.kind, false, to.link->slot_limit, to.link->cell_limit, to.lends};
  shape.worker_limit = shape.mailbox_limit = kWorkerLimit;
  return choose(shape, engine_.parts_.machine) == IST_CARRIER_MAILBOX;
}

// Whatever the program put into the buffer's stream before must be over: a worker is in no stream.
std::optional<Result<OperationId>> Mail::send(const Piece& piece, Rank dest, std::int32_t tag, const Scope& scope) {
  Out& to = out(dest);
  if (to.loan.allocation == 0 || piece.kind != KindId::cuda || piece.size == Bytes{} || piece.size > kWorkerLimit)
    return std::nullopt;
  PeerState& peer = engine_.peer(dest);
  if ((to.unfit && ++to.since_unfit % kAskUnfitAgain != 0) || !open(to, dest, piece) || !chosen(peer, piece))
    return std::nullopt;
  const auto place = free_place(to);
  if (!place || !mailing_.awake(piece)) return std::nullopt;
  const auto ready = engine_.pending_work(piece);
  if (!ready.ok()) return Result<OperationId>{ready.status()};
  if (!ready->empty()) return std::nullopt;
  const OperationId id = engine_.operations_.add();
  if (id.value == 0) return Result<OperationId>{Engine::too_many()};
  const Letter letter{*place, mailing_.number_of(to.messages)};
  auto ordered = order(piece, to, letter, id.index());
  if (!ordered) return std::nullopt;
  engine_.wake_sleeper();
  ++to.messages;
  to.told &= static_cast<std::uint16_t>(~(1U << *place));
  to.busy |= static_cast<std::uint16_t>(1U << *place);
  to.next = *place + 1;
  Operation& operation = engine_.operations_.at(id.index());
  Envelope& envelope = operation.envelope;
  envelope = {};
  envelope.sequence = peer.next_sequence++;
  envelope.context = scope.context;
  envelope.tag = tag;
  envelope.type = EnvelopeType::mailed;
  envelope.kind = static_cast<std::uint8_t>(piece.kind);
  envelope.bytes = piece.size.value;
  envelope.sender_op = letter.number;
  envelope.receiver_op = *place | news(in(dest));
  operation.sends = true;
  operation.wire = id.wire();
  operation.peer = dest;
  operation.piece = piece;
  operation.group = scope.group;
  operation.outcome = {Status{}, engine_.parts_.rank, tag, IST_CARRIER_MAILBOX, piece.size, nullptr, false};
  operation.state = state::SendingMail{letter, to.box, std::move(*ordered), {}, {}, {}, By::worker, {}};
  return Result<OperationId>{begin(operation, id)};
}

// Guard ORDER_FIRST: whoever hears of the message may have its worker wait for it. None, and where memory runs out: there is no operation.
std::optional<Ticket> Mail::order(const Piece& piece, const Out& to, const Letter& letter, std::uint32_t index) {
  std::optional<Ticket> given;
  try {
    given = mailing_.post(piece, *to.box, to.loan, letter);
  } catch (const std::bad_alloc&) {
    engine_.operations_.release(index);
    throw;
  }
  if (!given) engine_.operations_.release(index);
  return given;
}

// Nobody takes back what the worker was told.
OperationId Mail::begin(Operation& operation, OperationId id) noexcept {
  engine_.activate(operation, id.index());
  engine_.say_soon(operation);
  try {
    if (engine_.parts_.trace != nullptr) engine_.trace_begin(operation);
    engine_.copying(operation);
  } catch (const std::bad_alloc&) {
    return id;  // a trace lacks it
  }
  return id;
}

// The worker has failed, and its process goes on without: the packets go to the same place, with the same number and the same bytes. Where
// memory runs out in the midst of a stage, the next step has it again.
bool Mail::post_by_driver(Operation& operation, std::uint32_t index) {
  auto& sending = std::get<state::SendingMail>(operation.state);
  if (sending.by == By::bringing) {
    const auto here = bring(operation, sending);
    if (here.ok() && !*here) return false;
    if (!here.ok()) return give_up(operation, index, here.status());
    sending.by = By::brought;
  }
  if (sending.by == By::brought) {
    if (Status started = start_copy(operation, sending); !started.ok()) return give_up(operation, index, std::move(started));
    sending.by = By::driver;
  }
  const auto done = is_finished(sending.order);
  if (done.ok() && !*done) return false;
  if (!done.ok()) return give_up(operation, index, done.status());
  engine_.finish(operation, index, {});
  return true;
}

Result<bool> Mail::bring(Operation& operation, state::SendingMail& sending) {
  const Bytes size = operation.piece.size;
  sending.bytes.resize(size.value);
  if (!sending.bring)
    sending.bring.emplace(engine_.parts_.kinds, engine_.parts_.pool, host_piece(sending.bytes.data(), size), operation.piece,
                          Ticket{}, Ticket{});
  return sending.bring->step();
}

Status Mail::start_copy(Operation& operation, state::SendingMail& sending) {
  sending.bring.reset();
  const Piece there = mailing_.packets(Piece{}, sending.letter.place, operation.piece.size);
  sending.packets.resize(there.size.value);
  mailing_.pack(sending.bytes, sending.letter.number, sending.packets);
  Loan loan = out(operation.peer).loan;
  loan.offset += mailing_.offset_of(sending.letter.place).value;
  Lending* const borrower = engine_.lending(*engine_.peer(operation.peer).link, KindId::cuda);
  auto copy = borrower->copy_to(*sending.box, loan, host_piece(sending.packets.data(), there.size), Ticket{});
  if (copy.ok()) sending.order = std::move(*copy);
  return copy.status();
}

// The receiver waits for the packets: it is told that they will not come, once there is memory for that. True: it has moved on.
bool Mail::give_up(Operation& operation, std::uint32_t index, Status why) {
  auto& sending = std::get<state::SendingMail>(operation.state);
  sending.by = By::failed;
  sending.why = std::move(why);
  Envelope note;
  note.type = EnvelopeType::mailbox;
  note.flags = kEnvelopeFailed;
  note.sender_op = sending.letter.number;
  engine_.post_or_queue(engine_.peer(operation.peer), note);
  why = std::move(sending.why);
  engine_.finish(operation, index, why);
  return true;
}

bool Mail::step_sending(Operation& operation, std::uint32_t index) {
  auto& sending = std::get<state::SendingMail>(operation.state);
  // Its place is never used again: who knows when the driver's copy meets what the receiver does with it.
  if (sending.by == By::failed) return give_up(operation, index, std::move(sending.why));
  if (sending.by != By::worker) return post_by_driver(operation, index);
  const auto done = is_finished(sending.order);
  if (done.ok() && !*done) return false;
  if (!done.ok()) {
    sending.by = By::bringing;
    sending.order = Ticket{};
    log::info("a message that was given to a worker goes by the driver: " + done.status().text());
    return post_by_driver(operation, index);
  }
  out(operation.peer).busy &= static_cast<std::uint16_t>(~(1U << sending.letter.place));
  engine_.copied(operation, "the worker's store into the mailbox", operation.piece.size);
  engine_.finish(operation, index, {});
  return true;
}

}  // namespace ist
