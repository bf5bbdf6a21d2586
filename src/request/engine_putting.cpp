// Messages in one copy between two processes: into the receiver's device memory, which the sender has opened, from its own or from
// page-locked host memory; or out of the sender's, into page-locked memory of a receiver that has opened it. Of layouts by a kernel that
// packs or unpacks on the way.
#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "memory/rows.hpp"
#include "protocol/choose_packing.hpp"
#include "request/engine.hpp"

namespace ist {
namespace {

// So often a message that fits a cell is announced all the same, to hear whether its receiver lends by now.
constexpr std::uint32_t kAskAgain = 16;

constexpr std::size_t kMostTogether = 8;

// A message from one device to another in one copy. What is longer keeps a link busy by itself: it waits for nothing, and nothing for it.
bool goes_in_turn(Bytes size, const Operation& operation, const state::Cleared& cleared) {
  return !operation.waits_to_pack() && operation.piece.kind != KindId::host && cleared.loan.part == 0 &&
         cleared.memory == nullptr && size <= kMostBytesTogether;
}

// Are there as many rows as long on both sides, and do copies of them cost less than a kernel?
bool relays_rows(const PackWork& work, const LentForm& theirs, Packing& packing, const MachineProfile& machine) {
  PackWork there = lent_work(theirs, work.memory, work.from, work.to);
  there.packed = there.memory;
  if (!same_rows(*work.form, *there.form)) return false;
  if (packing.refuses_rows(work) != nullptr || packing.refuses_rows(there) != nullptr) return false;
  MessageShape message;
  message.bytes = Bytes{static_cast<std::uint64_t>(work.to - work.from)};
  PackedShape shape{message, std::min(width_of(work), width_of(there))};
  shape.rows = rows_between(*work.form, work.from, work.to);
  return rows_over_link(shape, machine);
}

}  // namespace

// Who lends and borrows memory of that kind along that link; null if nobody does.
Lending* Engine::lending(const Link& link, KindId kind) const {
  if (kind == KindId::host || !link.lends() || parts_.settings.device_ipc == "never") return nullptr;
  MemoryKind* found = parts_.kinds.find(kind);
  return found != nullptr ? found->lending() : nullptr;
}

// Is a message worth announcing for it?
bool Engine::may_put(PeerState& to, const Piece& piece) const {
  return piece.size > Bytes{} && lending(*to.link, piece.kind) != nullptr && (to.lends || ++to.since_heard % kAskAgain == 0);
}

// What goes with a clearance; no loan where that would not help.
Loan Engine::lend(const PeerState& from, const Piece& piece, KindId sender) const {
  Lending* lender = sender == piece.kind || sender == KindId::host ? lending(*from.link, piece.kind) : nullptr;
  return lender == nullptr ? Loan{} : lender->lend(piece, from.rank).value_or(Loan{});
}

// Between devices what comes while two calls are under way waits for the first of them, and what waits begins together.
bool Engine::must_wait_to_put(const Operation& operation) const {
  const auto& cleared = std::get<state::Cleared>(operation.state);
  if (cleared.loan.allocation == 0) return false;
  const bool in_turn = goes_in_turn(cleared.accepted, operation, cleared);
  return puts_ >= kMostPuts || ended_puts_ ||
         (in_turn && peers_[static_cast<std::size_t>(operation.peer.value)].copying >= kMostCalls);
}

// False: the receiver lends nothing, or its memory is not open (yet), and the bytes go through the ring.
bool Engine::put(Operation& operation, std::uint32_t index) {
  const auto& cleared = std::get<state::Cleared>(operation.state);
  PeerState& to = peer(operation.peer);
  const Bytes left{cleared.accepted.value - cleared.sent.value};
  const Bytes length = cleared.loan.part == 0 ? left : smaller(left, Bytes{cleared.loan.part});
  const Piece from = operation.piece.part(Offset{cleared.sent.value}, length);
  if (cleared.memory != nullptr) return begin_put({index, cleared.memory, from}, Turn::none);
  Lending* borrower = cleared.loan.allocation != 0 ? lending(*to.link, cleared.receiver_kind) : nullptr;
  if (borrower == nullptr || !borrower->serves(from)) return false;
  const bool within = from.kind != KindId::host && borrower->same_device(cleared.loan, from);
  if (within) to.lends = to.links = false;
  if (within && !pays_within_device(from.size, parts_.machine)) return false;
  auto memory = borrower->borrow(cleared.loan, operation.peer, from);
  // Until it is open, and where it cannot be opened, cells are the quicker way for what fits.
  if (from.kind != KindId::host && !within) {
    to.links = memory != nullptr;
    to.lends = to.links && cleared.loan.part == 0;
  }
  if (memory == nullptr) return false;
  if (within || !goes_in_turn(from.size, operation, cleared)) return begin_put({index, std::move(memory), from}, Turn::none);
  std::vector<Put> puts{{index, std::move(memory), from}};
  add_others(operation, puts);
  return begin_puts(std::move(puts));
}

// Another message that can be copied in the same call as that one.
std::optional<Put> Engine::put_beside(const Operation& first, std::uint32_t index, Bytes room) {
  const Operation& other = operations_.at(index);
  const auto* cleared = other.sends ? std::get_if<state::Cleared>(&other.state) : nullptr;
  if (cleared == nullptr || &other == &first || other.peer != first.peer || other.piece.kind != first.piece.kind ||
      other.piece.device != first.piece.device || !other.ready.empty() || cleared->borrows ||
      cleared->loan.allocation == 0 || cleared->accepted > room || !goes_in_turn(cleared->accepted, other, *cleared) ||
      cleared->receiver_kind != std::get<state::Cleared>(first.state).receiver_kind)
    return std::nullopt;
  Lending* const borrower = lending(*peer(other.peer).link, cleared->receiver_kind);
  const Piece from = other.piece.part(Offset{}, cleared->accepted);
  if (!borrower->serves(from) || borrower->same_device(cleared->loan, from)) return std::nullopt;
  auto memory = borrower->borrow(cleared->loan, other.peer, from);
  if (memory == nullptr) return std::nullopt;
  return Put{index, std::move(memory), from};
}

void Engine::add_others(const Operation& first, std::vector<Put>& puts) {
  Bytes all = puts.front().from.size;
  for (const std::uint32_t index : active_) {
    if (puts.size() >= kMostTogether) return;
    auto other = put_beside(first, index, kMostBytesTogether - all);
    if (!other) continue;
    all += other->from.size;
    puts.push_back(std::move(*other));
  }
}

bool Engine::begin_puts(std::vector<Put> puts) {
  if (puts.size() > 1) {
    const Operation& first = operations_.at(puts.front().index);
    std::vector<LentCopy> copies;
    for (const Put& put : puts)
      copies.push_back({put.memory.get(), std::get<state::Cleared>(operations_.at(put.index).state).loan, put.from});
    auto together = std::make_shared<state::Copies>();
    active_.reserve(active_.size() + puts.size());
    auto started =
        lending(*peer(first.peer).link, std::get<state::Cleared>(first.state).receiver_kind)->copy_together(copies);
    if (started.ok()) {
      begun(*together, std::move(*started), first.peer, Turn::in_turn);
      for (Put& put : puts) now_putting(put, together);
      return true;
    }
    log::once(log::Level::info, "copies together", "copies between devices go one by one: " + started.status().text());
  }
  // Each by itself, so that the one at fault is found: that stays cleared until its turn comes.
  const bool first_begun = begin_put(std::move(puts.front()), Turn::in_turn);
  for (std::size_t i = 1; i < puts.size(); ++i) static_cast<void>(begin_put(std::move(puts[i]), Turn::in_turn));
  return first_begun;
}

void Engine::begun(state::Copies& copies, Ticket ticket, Rank to, Turn turn) {
  copies.ticket = std::move(ticket);
  copies.in_turn = turn == Turn::in_turn;
  copies.ahead = turn == Turn::ahead;
  ++(copies.ahead ? peer(to).ahead : puts_);
  if (copies.in_turn) ++peer(to).copying;
}

void Engine::copies_over(const state::Copies& copies, Rank to) {
  --(copies.ahead ? peer(to).ahead : puts_);
  if (copies.in_turn) --peer(to).copying;
}

// A layout that waits to be packed is, by this.
Result<Ticket> Engine::start_put(const Operation& operation, const Put& put, const Ticket& after) const {
  const auto& cleared = std::get<state::Cleared>(operation.state);
  Lending& borrower = *lending(*peers_[static_cast<std::size_t>(operation.peer.value)].link, cleared.receiver_kind);
  if (!operation.waits_to_pack()) return borrower.copy_to(*put.memory, cleared.loan, put.from, after);
  const PackWork part = operation.laid->work.part(static_cast<std::int64_t>(cleared.sent.value), put.from.size);
  return borrower.pack_lent(*put.memory, cleared.loan, part, after);
}

bool Engine::begin_put(Put put, Turn turn) {
  Operation& operation = operations_.at(put.index);
  auto alone = std::make_shared<state::Copies>();
  const auto& cleared = std::get<state::Cleared>(operation.state);
  auto copy = turn == Turn::ahead ? start_put(operation, put, operation.ready) : start_put(operation, put, Ticket{});
  if (!copy.ok()) {
    log::once(log::Level::warning, "nothing can be copied to the memory of another rank: " + copy.status().text());
    if (cleared.sent == Bytes{}) return false;
    refuse(operation, put.index, cleared.receiver_op, copy.status());
    return true;
  }
  begun(*alone, std::move(*copy), operation.peer, turn);
  now_putting(put, std::move(alone));
  return true;
}

void Engine::now_putting(Put& put, std::shared_ptr<state::Copies> copies) {
  Operation& operation = operations_.at(put.index);
  const auto cleared = std::move(std::get<state::Cleared>(operation.state));
  const Bytes sent{cleared.sent.value + put.from.size.value};
  operation.state = state::Putting{std::move(put.memory),   std::move(copies),      cleared.receiver_op, sent,
                                   sent < cleared.accepted, cleared.loan.part != 0, put.from.size};
  operation.outcome.carrier = IST_CARRIER_DEVICE;
  activate(operation, put.index);
  copying(operation);
}

bool Engine::step_putting(Operation& operation, std::uint32_t index) {
  auto& putting = std::get<state::Putting>(operation.state);
  state::Copies& copies = *putting.copies;
  if (!copies.over) {
    const auto done = is_finished(copies.ticket);
    if (done.ok() && !*done) return false;
    copies.over = true;
    copies.status = done.status();
    copies_over(copies, operation.peer);
  }
  const Status done = copies.status;
  copied(operation, "copy into the receiver's memory", putting.length);
  // Let go of before the receiver hears: it may free its buffer then.
  if (!putting.more) putting.memory.reset();
  if (!done.ok()) {
    refuse(operation, index, putting.receiver_op, done);
    return true;
  }
  Envelope answer;
  answer.type = EnvelopeType::put;
  answer.receiver_op = putting.receiver_op;
  // Whoever is gone clears nothing more.
  if (const Status reachable = putting.more ? check_peer(operation.peer) : Status{}; !reachable.ok()) {
    finish(operation, index, reachable);
    return true;
  }
  post_or_queue(peer(operation.peer), answer);
  if (putting.more)
    operation.state = state::Parted{std::move(putting.memory), putting.sent};
  else
    finish(operation, index, {});
  return true;
}

void Engine::on_put(const Arrival& arrival) {
  Operation* operation = operations_.find_wire(arrival.envelope.receiver_op);
  if (operation == nullptr || (!operation->in<state::Streaming>() && !operation->in<state::Bouncing>())) return;
  if (peer(arrival.source).receiver) peer(arrival.source).receiver->forget(arrival.envelope.receiver_op);
  if (operation->in<state::Bouncing>()) return take_part(*operation, arrival.envelope.receiver_op & 0xfffff);
  peer(arrival.source).puts_here = true;
  operation->outcome.carrier = IST_CARRIER_DEVICE;
  finish(*operation, arrival.envelope.receiver_op & 0xfffff, {});
}

// ---- out of the sender's device memory ----

// Does the receiver ask for a loan of the sender's buffer?
bool Engine::would_fetch(PeerState& from, const Piece& to, KindId sender) const {
  if (to.kind != KindId::host) return false;
  Lending* borrower = lending(*from.link, sender);
  return borrower != nullptr && (from.fetches || ++from.since_fetched % kAskAgain == 0) && borrower->serves(to);
}

// The sender's answer; false: it lends nothing, and the bytes go another way. A block with a layout's bytes is nothing to keep open; what is
// not packed yet is lent as it lies, where its receiver takes it so and that is worth it.
bool Engine::lend_to_receiver(Operation& operation) {
  const auto& cleared = std::get<state::Cleared>(operation.state);
  const bool apart = operation.waits_to_pack();
  if (operation.laid != nullptr && !apart && cleared.loan.allocation != 0) return false;
  PeerState& to = peer(operation.peer);
  Lending* lender = cleared.borrows ? lending(*to.link, operation.piece.kind) : nullptr;
  if (lender == nullptr) return false;
  LoanApart answered;
  Piece lent = operation.piece.part(Offset{}, cleared.accepted);
  if (apart) {
    const PackWork& work = operation.laid->work;
    if (!cleared.takes_forms || cleared.sent != Bytes{} || !lies_apart(work) ||
        Bytes{sizeof answered} > to.link->slot_limit ||
        !lends_apart({shape_of(work.packed, to, {}, true), width_of(work)}, parts_.machine))
      return false;
    lent = work.memory;
    answered.form = lent_form(work);
  }
  const auto loan = lender->lend(lent, operation.peer);
  if (!loan) return false;
  answered.loan = *loan;
  Envelope answer;
  answer.type = EnvelopeType::lend;
  answer.kind = static_cast<std::uint8_t>(operation.piece.kind);
  answer.bytes = cleared.accepted.value;
  answer.sender_op = operation.wire;
  answer.sequence = operation.envelope.sequence;
  answer.receiver_op = cleared.receiver_op;
  const auto payload = std::as_bytes(std::span{&answered, 1});
  post_or_queue(to, answer, apart ? payload : payload.first(sizeof(Loan)));
  operation.state = state::Announced{};  // taken, or cleared once more
  operation.lent = true;
  return true;
}

// What else came with a loan, whether it is used or not.
void Engine::hear(const Loan& loan, const Arrival& arrival) const {
  if (loan.allocation == 0) return;
  const PeerState& from = peers_[static_cast<std::size_t>(arrival.source.value)];
  if (Lending* borrower = lending(*from.link, static_cast<KindId>(arrival.envelope.kind)))
    borrower->hear(loan, arrival.source);
}

void Engine::on_lend(const Arrival& arrival) {
  const std::uint32_t wire = arrival.envelope.receiver_op;
  const Loan loan = loan_in(arrival.payload.first(std::min(arrival.payload.size(), sizeof(Loan))));
  hear(loan, arrival);
  Operation* operation = operations_.find_wire(wire);
  if (operation == nullptr || (!operation->in<state::Streaming>() && !operation->in<state::Bouncing>())) return;
  PeerState& from = peer(arrival.source);
  const Piece to = operation->piece.part(Offset{}, Bytes{arrival.envelope.bytes});
  const bool fetched = fetch(*operation, wire & 0xfffff, arrival, loan);
  if (to.kind == KindId::host)
    from.fetches = fetched;
  else
    from.gathers = fetched || (loan.allocation != 0 && lending(*from.link, to.kind)->opening(loan, arrival.source, to));
  if (fetched) return;
  // This time for the ring or, into a layout's block, by a copy of the sender's.
  const Envelope clear = clearance(announced_as(arrival.envelope), wire, to.kind, to.size);
  const auto* bouncing = std::get_if<state::Bouncing>(&operation->state);
  Loan block;
  if (to.kind != KindId::host)
    block = bouncing != nullptr ? bouncing->loan : lend(from, to, static_cast<KindId>(arrival.envelope.kind));
  if (block.allocation == 0) return post_or_queue(from, clear);
  post_or_queue(from, clear, std::as_bytes(std::span{&block, 1}));
}

// False: the sender's memory is not open (yet).
bool Engine::fetch(Operation& operation, std::uint32_t index, const Arrival& arrival, const Loan& loan) {
  // Where a rank has died, the send may have been ended, and its buffer be somebody else's by now.
  if (loan.allocation == 0 || parts_.board.first_dead().value >= 0) return false;
  PeerState& from = peer(arrival.source);
  Lending* borrower = lending(*from.link, static_cast<KindId>(arrival.envelope.kind));
  if (borrower == nullptr) return false;
  const Piece to = operation.piece.part(Offset{}, Bytes{arrival.envelope.bytes});
  const bool gathers = to.kind != KindId::host;
  const auto apart = form_in(arrival.payload);
  if (apart && !operation.takes_forms()) return false;
  if (gathers && borrower->same_device(loan, to)) return false;
  auto memory = borrower->borrow(loan, arrival.source, to);
  if (memory == nullptr) return false;
  const auto take = [&] {
    if (!gathers) return borrower->copy_from(*memory, loan, to, Ticket{});
    PackWork work = operation.laid->work.part(0, to.size);
    if (apart) work.rows = relays_rows(work, *apart, *parts_.kinds.find(to.kind)->packing(), parts_.machine);
    return apart ? borrower->relay_lent(*memory, loan, *apart, work, Ticket{})
                 : borrower->pack_lent(*memory, loan, work, Ticket{});
  };
  auto copy = take();
  if (!copy.ok()) {
    log::once(log::Level::warning, "nothing can be copied from the memory of another rank: " + copy.status().text());
    return false;
  }
  if (gathers) operation.laid->gathered = true;
  leave_blocks(operation);
  if (from.receiver) from.receiver->forget(arrival.envelope.receiver_op);
  operation.state = state::Fetching{std::move(memory), std::move(*copy), announced_as(arrival.envelope)};
  copying(operation);
  operation.outcome.carrier = IST_CARRIER_DEVICE;
  activate(operation, index);
  return true;
}

bool Engine::step_fetching(Operation& operation, std::uint32_t index) {
  auto& fetching = std::get<state::Fetching>(operation.state);
  if (!fetching.over) {
    const auto done = is_finished(fetching.copy);
    if (done.ok() && !*done) return false;
    fetching.over = done.status();  // told once, and memory may run out before the sender hears
    copied(operation, "copy out of the sender's memory", operation.outcome.bytes);
  }
  fetching.memory.reset();  // before the sender hears, who may free its buffer then
  Envelope taken;           // also where the copy failed: that is this side's error
  taken.type = EnvelopeType::taken;
  taken.sender_op = fetching.sender.sender_op;
  taken.sequence = fetching.sender.sequence;
  post_or_queue(peer(operation.peer), taken);
  const Rank dead = parts_.board.first_dead();  // as in fetch()
  const Status done = *fetching.over;
  finish(operation, index, done.ok() && dead.value >= 0 ? gone(dead) : done);
  return true;
}

}  // namespace ist
