// Receives into device memory that are shown to their senders before any message is announced, so that a sender whose message is for one
// copies at once. A message that is announced first waits for the receiver's answer: 1.5 to 2 us, between devices a fifth of the whole.
//
// A receive is shown if, of all that are posted, it takes the next message of its source that fits, whatever else is posted meanwhile; by
// its sequence the sender knows that the message it sends is the next one (models/invitation.pml). Known as a receiver-initiated rendezvous:
// S. Pakin, "Receiver-initiated message passing over RDMA networks", IPDPS 2008; M. Rashti and A. Afsahi, "A speculative and adaptive MPI
// rendezvous protocol over RDMA-enabled interconnects", IJPP 37 (2009).
#include <cstring>
#include <utility>

#include "request/engine.hpp"

namespace ist {
namespace {

// A sender that went another way so often in a row, as one does whose buffers have work pending, is shown only each 16th receive.
constexpr std::uint32_t kDeclines = 8;
constexpr std::uint32_t kInviteAgain = 16;

// What is longer asks the stream and goes beside it: 1 MiB takes 3 us over a link, twice the question, and whatever the program puts into its
// stream next would wait for it.
constexpr Bytes kMostInStream = mebibytes(1);

}  // namespace

// That receive has just been posted, if no message was there, and nothing is pending on its buffer; or nobody is shown anything. Those of
// collective calls are not: what is sent to them is announced.
void Engine::invite(OperationId id, const Pattern& pattern) {
  PeerState& from = peer(Rank{pattern.source});
  Operation& operation = operations_.at(id.index());
  if (!from.puts_here || !from.inviter || types_ || !operation.in<state::Posted>() || operation.piece.size == Bytes{})
    return;
  if (parts_.board.changes() != 0) return;
  if (from.declined >= kDeclines && ++from.since_invited % kInviteAgain != 0) return;
  Lending* const lender = lending(*from.link, operation.piece.kind);
  if (lender == nullptr || !matcher_.last_comes_first(from.rank)) return;
  const auto ready = is_finished(operation.ready);
  if (!ready.ok() || !*ready) return;
  if (from.invited) retire(from);
  const auto loan = lender->lend(operation.piece, from.rank, LoanFor::invitation);
  if (!loan) return;
  Invitation invitation;
  invitation.sequence = order_.expected(from.rank);
  invitation.context = pattern.context;
  invitation.tag = pattern.tag;
  invitation.receiver_op = id.wire();
  invitation.room = operation.piece.size.value;
  invitation.kind = static_cast<std::uint32_t>(operation.piece.kind);
  static_assert(sizeof invitation.loan == sizeof *loan);
  std::memcpy(invitation.loan.data(), &*loan, sizeof *loan);
  from.inviter->open(invitation);
  from.invited = id.wire();
}

// A receive that was shown gets its message another way, or its world ends. Nobody has taken it then, since that message is the one that might
// have, unless it is of the world that ends.
void Engine::retire(PeerState& from) {
  from.invited.reset();
  ++from.declined;
  if (!from.inviter->close()) from.inviter->settle();
}

bool Engine::uninvite(const Operation& operation, std::uint32_t wire) {
  if (operation.peer.value == kAnySource) return true;
  PeerState& from = peer(operation.peer);
  if (from.invited != wire) return true;
  if (!from.inviter->close()) return false;
  from.invited.reset();
  return true;
}

// The copy into the receive that was shown has begun; EnvelopeType::put says that it is over.
void Engine::take_invited(const Arrival& arrival) {
  PeerState& from = peer(arrival.source);
  const auto wire = std::exchange(from.invited, std::nullopt);
  if (!wire || *wire != arrival.envelope.receiver_op) return;
  from.inviter->settle();
  from.declined = 0;
  Operation* const operation = operations_.find_wire(*wire);
  if (operation == nullptr || !operation->in<state::Posted>()) return;  // it ended with its world
  matcher_.withdraw(*wire);
  Envelope envelope = arrival.envelope;
  envelope.flags = 0;
  set_outcome(*operation, arrival.source, envelope, IST_CARRIER_RING);
  operation->state = state::Streaming{envelope.sender_op};
}

// The message goes to the receive that its destination shows, and its copy has begun, if it is short in the stream of the buffer behind what is
// pending there, which nobody has to ask then. None: nothing was sent, there is none that it is for, or something else speaks against it.
std::optional<OperationId> Engine::accept(const Piece& piece, const Destination& order) {
  PeerState& to = peer(order.rank);
  const auto invitation = to.guest->look();
  if (!invitation || invitation->sequence != to.next_sequence || invitation->context != order.scope.context ||
      (invitation->tag != kAnyTag && invitation->tag != order.tag) || piece.size == Bytes{} ||
      piece.size.value > invitation->room || to.ahead >= kMostCalls || ended_puts_)
    return std::nullopt;
  const auto kind = static_cast<KindId>(invitation->kind);
  const Loan loan = loan_in(invitation->loan);
  Lending* const borrower = lending(*to.link, kind);
  if (borrower == nullptr || !borrower->serves(piece)) return std::nullopt;
  if (piece.kind != KindId::host && borrower->same_device(loan, piece)) return std::nullopt;
  auto memory = borrower->borrow(loan, order.rank, piece);
  if (memory == nullptr) return std::nullopt;
  auto ready = pending_work(piece, piece.size <= kMostInStream);
  if (!ready.ok() || (!ready->empty() && !parts_.kinds.goes_into_queue(piece, *ready))) return std::nullopt;
  if (!operations_.has_room() || !to.guest->take()) return std::nullopt;
  wake_sleeper();
  const OperationId id = operations_.add();
  Operation& operation = operations_.at(id.index());
  Envelope& envelope = operation.envelope;
  envelope = {};
  envelope.sequence = to.next_sequence;
  envelope.context = order.scope.context;
  envelope.tag = order.tag;
  envelope.type = EnvelopeType::announce;
  envelope.kind = static_cast<std::uint8_t>(piece.kind);
  envelope.flags = kEnvelopeInvited;
  envelope.bytes = piece.size.value;
  envelope.sender_op = operation.wire = id.wire();
  envelope.receiver_op = invitation->receiver_op;
  operation.sends = true;
  operation.peer = order.rank;
  operation.piece = piece;
  operation.ready = std::move(*ready);
  operation.group = order.scope.group;
  operation.outcome = {Status{}, parts_.rank, order.tag, IST_CARRIER_DEVICE, piece.size, nullptr, false};
  operation.state = state::Cleared{envelope.receiver_op, piece.size, kind, loan, false, false, nullptr, Bytes{}};
  // Where the copy cannot be started, the message goes another way.
  if (!begin_ahead(operation, {id.index(), std::move(memory), piece})) {
    operations_.release(id.index());
    to.guest->give_back();
    return std::nullopt;
  }
  ++to.next_sequence;
  say_soon(operation);
  return id;
}

// Also where memory runs out before it has begun.
bool Engine::begin_ahead(Operation& operation, Put put) try {
  if (parts_.trace != nullptr) trace_begin(operation);
  return begin_put(std::move(put), Turn::ahead);
} catch (const std::bad_alloc&) {
  return operation.in<state::Putting>();
}

// The receiver is gone, and the program's kernel, which the copy is behind, may wait for it for ever. As of a cell: whoever sends hears of
// it now, and waits for his stream before he frees the buffer. False: that copy waits for no kernel.
bool Engine::leave_copy(Operation& operation) {
  auto* const putting = std::get_if<state::Putting>(&operation.state);
  if (putting == nullptr || !putting->copies->ahead || putting->copies->over || operation.ready.empty()) return false;
  left_copies_.push_back({operation.peer, putting->copies, std::move(putting->memory)});
  return true;
}

void Engine::step_left_copies() {
  std::erase_if(left_copies_, [this](LeftCopy& left) {
    const auto over = is_finished(left.copies->ticket);
    if (over.ok() && !*over) return false;
    copies_over(*left.copies, left.to);
    return true;
  });
}

}  // namespace ist
