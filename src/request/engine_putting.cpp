// Messages between devices of two processes: the sender copies into the receiver's memory, which its process has opened.
#include <utility>

#include "base/log.hpp"
#include "request/engine.hpp"

namespace ist {
namespace {

// So often a message that fits a cell is announced all the same, to hear whether its receiver lends by now.
constexpr std::uint32_t kAskAgain = 16;

}  // namespace

// Who lends and borrows memory of the piece's kind along that link; null if nobody does.
Lending* Engine::lending(const Link& link, const Piece& piece) const {
  if (piece.kind == KindId::host || piece.size == Bytes{} || !link.lends() || parts_.settings.device_ipc == "never")
    return nullptr;
  return parts_.kinds.find(piece.kind)->lending();
}

// Is a message worth announcing for it?
bool Engine::may_put(PeerState& to, const Piece& piece) const {
  return lending(*to.link, piece) != nullptr && (to.lends || ++to.since_heard % kAskAgain == 0);
}

// What goes with a clearance; no loan where that would not help.
Loan Engine::lend(const PeerState& from, const Piece& piece, KindId sender) const {
  Lending* lender = sender == piece.kind ? lending(*from.link, piece) : nullptr;
  return lender == nullptr ? Loan{} : lender->lend(piece, from.rank).value_or(Loan{});
}

// False: the receiver lends nothing, or its memory is not open (yet), and the bytes go through the ring.
bool Engine::put(Operation& operation, std::uint32_t index) {
  const auto& cleared = std::get<state::Cleared>(operation.state);
  PeerState& to = peer(operation.peer);
  const Piece from = operation.piece.part(Offset{}, cleared.accepted);
  Lending* borrower = cleared.loan.allocation != 0 ? lending(*to.link, from) : nullptr;
  if (borrower == nullptr) return false;
  auto memory = borrower->borrow(cleared.loan, operation.peer, from);
  to.lends = memory != nullptr;  // until it is open, and where it cannot be opened, cells are the quicker way for what fits
  if (memory == nullptr) return false;
  auto copy = borrower->copy_to(*memory, cleared.loan, from, Ticket{});
  if (!copy.ok()) {
    log::once(log::Level::warning, "nothing can be copied to the memory of another rank: " + copy.status().text());
    return false;
  }
  operation.state = state::Putting{std::move(memory), std::move(*copy), cleared.receiver_op};
  operation.outcome.carrier = IST_CARRIER_DEVICE;
  activate(operation, index);
  return true;
}

bool Engine::step_putting(Operation& operation, std::uint32_t index) {
  auto& putting = std::get<state::Putting>(operation.state);
  const auto done = is_finished(putting.copy);
  if (done.ok() && !*done) return false;
  Envelope answer;
  answer.type = done.ok() ? EnvelopeType::put : EnvelopeType::refuse;
  answer.receiver_op = putting.receiver_op;
  post_or_queue(peer(operation.peer), answer);
  finish(operation, index, done.status());
  return true;
}

void Engine::on_put(const Arrival& arrival) {
  Operation* operation = operations_.find_wire(arrival.envelope.receiver_op);
  if (operation == nullptr || !operation->in<state::Streaming>()) return;
  if (peer(arrival.source).receiver) peer(arrival.source).receiver->forget(arrival.envelope.receiver_op);
  operation->outcome.carrier = IST_CARRIER_DEVICE;
  finish(*operation, arrival.envelope.receiver_op & 0xfffff, {});
}

}  // namespace ist
