// Messages between devices into memory that no other process can open: the sender copies into device memory of this library's own,
// and the receiver from there into the buffer, half by half, so that both are busy. And long ones into layouts, which are unpacked so.
#include <utility>

#include "request/mail.hpp"

namespace ist {
namespace {

Bytes next_part(const state::Bouncing& bouncing) {
  return smaller(Bytes{bouncing.loan.part}, Bytes{bouncing.to.size.value - bouncing.arrived.value});
}

// The copies that are over are forgotten, and their error is kept.
bool look_at_copy(state::Bouncing& bouncing, int half) {
  Ticket& copy = bouncing.copies[static_cast<std::size_t>(half)];
  const auto over = is_finished(copy);
  if (over.ok()) return *over;
  copy = Ticket{};
  if (bouncing.failure.ok()) bouncing.failure = over.status();
  return true;
}

// Of a layout: the block is lent in halves, and each takes an answer and a launch more, which what is unpacked meanwhile has to outweigh.
bool pays_in_parts(Bytes size, const Engine::Parts& parts) {
  const Bytes part = smaller(mebibytes(32), Bytes{parts.settings.bounce_limit.value / 2});
  const MachineProfile& machine = parts.machine;
  return size > part && static_cast<double>(part.value) * machine.device_pack_beta >
                            machine.slot_alpha + machine.handshake_alpha + machine.device_copy_alpha;
}

}  // namespace

// In place of the receiver's buffer; none where the ring serves as well. While every block is in use and what is in them moves, the
// operation stays as it is, and waits for one.
std::optional<state::Bouncing> Engine::lend_bounce(Operation& operation, const PeerState& from, const Piece& to,
                                                   const Envelope& announced) {
  Lending* lender = static_cast<KindId>(announced.kind) == to.kind ? lending(*from.link, to.kind) : nullptr;
  const bool fits = lender != nullptr && to.size > from.link->cell_limit;
  auto* readying = std::get_if<state::Readying>(&operation.state);
  const std::uint64_t place = readying == nullptr ? 0 : readying->place;
  auto bounce = fits ? lender->bounce(to, from.rank) : std::nullopt;
  if (bounce && readying != nullptr && blocks_.moving() && (bounce->block == nullptr || !blocks_.turn_of(place))) {
    readying->place = blocks_.wait(place);
    return std::nullopt;
  }
  leave_blocks(operation);
  if (!bounce || bounce->block == nullptr) return std::nullopt;
  blocks_.moved();
  return state::Bouncing{std::move(bounce->block), bounce->loan, to, Bytes{}, announced_as(announced), false, {}, {}};
}

// A long message into a layout: a kernel unpacks one half while the sender fills the other. Not beside the user's work on the memory,
// which the sender would wait for, too.
std::optional<state::Bouncing> Engine::lend_parts(Operation& operation, const PeerState& from, const Piece& to,
                                                  const Envelope& announced) {
  if (operation.laid == nullptr || to.kind == KindId::host || !pays_in_parts(to.size, parts_)) return std::nullopt;
  if (!blocks_.turn_of(0)) return std::nullopt;  // others need one, and this receive does not
  Lending* lender = static_cast<KindId>(announced.kind) == to.kind ? lending(*from.link, to.kind) : nullptr;
  const auto idle = is_finished(operation.laid->ready);
  if (lender == nullptr || !idle.ok() || !*idle) return std::nullopt;
  auto bounce = lender->part_block(to, from.rank);
  if (!bounce || bounce->block == nullptr) return std::nullopt;
  if (!parts_.kinds.find(to.kind)->together(*bounce->block, operation.laid->work.memory)) return std::nullopt;
  leave_blocks(operation);
  blocks_.moved();
  return state::Bouncing{std::move(bounce->block), bounce->loan, to, Bytes{}, announced_as(announced), false, {}, {}};
}

bool Engine::waits_for_block(const Operation& operation) {
  const auto* readying = std::get_if<state::Readying>(&operation.state);
  return readying != nullptr && readying->place != 0;
}

// Before the state says that it is over, or when it goes another way than by a block.
void Engine::leave_blocks(Operation& operation) {
  if (operation.in<state::Bouncing>()) blocks_.freed();
  if (auto* readying = std::get_if<state::Readying>(&operation.state)) blocks_.leave(std::exchange(readying->place, 0));
}

// A part has come: it is copied on, and the next one may come into the other half.
void Engine::take_part(Operation& operation, std::uint32_t index) {
  auto& bouncing = std::get<state::Bouncing>(operation.state);
  const Bytes length = next_part(bouncing);
  const Piece from = bouncing.block->part(Offset{bouncing.half ? bouncing.loan.part : 0}, length);
  const Piece to = bouncing.to.part(Offset{bouncing.arrived.value}, length);
  const auto move = [&] {
    if (operation.laid == nullptr) return parts_.kinds.copier(to.kind, from.kind)->copy(to, from, Ticket{});
    const PackWork part = operation.laid->work.part(static_cast<std::int64_t>(bouncing.arrived.value), length);
    return parts_.kinds.find(to.kind)->packing()->pack_bytes(part.in(from), Ticket{});
  };
  auto copy = move();
  if (operation.laid != nullptr) operation.laid->gathered = true;
  // After an error the rest still comes: the sender waits to be asked for it.
  if (copy.ok())
    bouncing.copies[bouncing.half ? 1 : 0] = std::move(*copy);
  else if (bouncing.failure.ok())
    bouncing.failure = copy.status();
  bouncing.arrived = Bytes{bouncing.arrived.value + length.value};
  bouncing.half = !bouncing.half;
  bouncing.asked = false;
  blocks_.moved();
  operation.outcome.carrier = IST_CARRIER_DEVICE;
  set_off(operation, index);
}

// True if the operation is complete.
bool Engine::step_bouncing(Operation& operation, std::uint32_t index) {
  auto& bouncing = std::get<state::Bouncing>(operation.state);
  if (bouncing.arrived == bouncing.to.size) {
    const bool first = look_at_copy(bouncing, 0);
    if (!look_at_copy(bouncing, 1) || !first) return false;
    const Status status = bouncing.failure;
    finish(operation, index, status);
    return true;
  }
  if (bouncing.asked || !look_at_copy(bouncing, bouncing.half ? 1 : 0)) return false;
  const Envelope clear = clearance(bouncing.sender, operations_.id_of(index).wire(), bouncing.to.kind, bouncing.to.size);
  Loan loan = bouncing.loan;
  loan.ended = {};  // told with the first part
  loan.offset += bouncing.half ? loan.part : 0;
  post_or_queue(peer(operation.peer), clear, std::as_bytes(std::span{&loan, 1}));
  bouncing.asked = true;  // not before: where memory runs out, the next step asks
  return false;
}

// The buffer is about to be given back: what still copies into it is over within microseconds.
void Engine::settle(Operation& operation) {
  if (auto* const taking = std::get_if<state::TakingMail>(&operation.state)) return Mail::settle(*taking);
  auto* bouncing = std::get_if<state::Bouncing>(&operation.state);
  if (bouncing == nullptr) return;
  for (const int half : {0, 1})
    while (!look_at_copy(*bouncing, half)) {
    }
}

}  // namespace ist
