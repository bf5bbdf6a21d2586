// Messages whose bytes do not lie in one piece: packed before they are sent, unpacked when they have come.
#include "layout/form.hpp"
#include "protocol/choose_packing.hpp"
#include "request/engine.hpp"

namespace ist {
namespace {

// Bytes that the processor unpacks at once, so that one long message does not keep the engine from everybody else.
constexpr std::int64_t kUnpackedAtOnce = 1 << 20;

// So often a sender is asked for a loan again whose memory could not be opened.
constexpr std::uint32_t kGatherAgain = 16;

const char* refuses_slots_of(const PeerState& to, const PackWork& work, const Kinds& kinds) {
  if (work.memory.kind == KindId::host || work.packed.size <= to.link->cell_limit || to.link->same_process())
    return PackedShape{}.no_slots;
  return kinds.find(work.memory.kind)
      ->packing()
      ->refuses_mapped(work.memory, to.sender ? to.sender->memory() : std::span<const std::byte>{});
}

// What is cleared, and goes through the ring. Only the slots themselves tell whether kernels reach them, so that a ring is made first. Where a link is
// open, and only a kernel did not start, one copy of a block goes over that.
PackingWay way_through_slots(PeerState& to, PackedShape shape, const PackWork& work, const state::Cleared& cleared,
                             const Engine::Parts& parts) {
  const bool linked = cleared.loan.allocation != 0 && to.links;
  const auto find = [&] {
    const bool fetched = cleared.borrows && to.link->lends() && parts.settings.device_ipc != "never";
    shape.no_slots = linked    ? "a copy goes over the link"
                     : fetched ? "the receiver fetches a block in one copy"
                               : refuses_slots_of(to, work, parts.kinds);
    return through_slots(shape, cleared.receiver_kind, false, parts.machine);
  };
  const PackingWay way = find();
  const bool known = way != PackingWay::slots || to.sender != nullptr;
  return known || !to.open_ring(parts.kinds, parts.settings.ring_in_flight).ok() ? way : find();
}

}  // namespace

const char* Engine::refuses_slots(const PackWork& work, Rank dest) const {
  if (!check_peer(dest).ok()) return PackedShape{}.no_slots;
  return refuses_slots_of(peers_[static_cast<std::size_t>(dest.value)], work, parts_.kinds);
}

// The envelope takes its place in the order now, and the kernel that packs is what is pending on the block.
Result<OperationId> Engine::start_send_laid(std::unique_ptr<LaidOut> laid, Rank dest, std::int32_t tag, const Scope& scope,
                                            bool* done, SendMode mode) {
  IST_TRY(check_peer(dest));
  const Piece block = laid->work.packed;
  Ticket ready;
  if (block.kind != KindId::host) {
    // Nothing may refuse the message once a kernel writes into its block.
    if (!operations_.has_room()) return too_many();
    auto pending = pending_work(laid->work.memory, laid->waits);  // of what is announced, behind the announcement
    if (!pending.ok()) return pending.status();
    if (laid->waits) {
      ready = std::move(*pending);
    } else {
      auto started = parts_.kinds.find(block.kind)->packing()->pack_bytes(laid->work, *pending);
      if (!started.ok()) return started.status();
      laid->ready = std::move(*pending);
      ready = std::move(*started);
    }
  }
  const ist_carrier carrier = laid->waits ? IST_CARRIER_RING : carrier_of(block, peer(dest), false, mode);
  const auto send = [&] {
    try {
      return send_ready(block, std::move(ready), {dest, tag, scope, carrier, false, nullptr, mode.stays_eager}, done);
    } catch (const std::bad_alloc&) {
      laid->device.let_go_later();  // a kernel may write there
      throw;
    }
  };
  auto id = send();
  if (!id.ok() || *done) return id;
  Operation& operation = operations_.at(id->index());
  operation.laid = std::move(laid);
  if (complete(operation)) let_go_of_block(operation);
  return id;
}

// Says how, too: by a kernel or in rows.
bool Engine::packs_late(PackWork& work, Rank dest, SendMode mode) const {
  work.rows = false;
  if (work.memory.kind == KindId::host || !check_peer(dest).ok()) return false;
  const PeerState& to = peers_[static_cast<std::size_t>(dest.value)];
  const bool lent = lending(*to.link, work.memory.kind) != nullptr && !to.link->same_process() &&
                    (to.lends || (to.links && work.packed.size > to.link->cell_limit));
  PackedShape shape =
      packed_shape(work, parts_.kinds.find(work.memory.kind)->packing(), shape_of(work.packed, to, mode, lent));
  shape.no_slots = refuses_slots_of(to, work, parts_.kinds);
  const PackingWay way = choose_packing(shape, parts_.machine);
  work.rows = is_by_rows(way);
  return is_on_the_way(way);
}

// Cleared, with nothing packed: its memory is lent as it is, for one kernel of the receiver's, or that is done straight into the receiver's memory or, where that is not open, into the ring's
// slots or into a block, which then goes as any buffer.
bool Engine::send_unpacked(Operation& operation, std::uint32_t index, const Status& ready) {
  const auto& cleared = std::get<state::Cleared>(operation.state);
  LaidOut& laid = *operation.laid;
  Packing* const packing = parts_.kinds.find(laid.work.memory.kind)->packing();
  PackedShape shape = packed_shape(laid.work, packing, shape_of(laid.work.packed, peer(operation.peer), {}, true));
  laid.work.rows = rows_over_link(shape, parts_.machine);
  if (ready.ok() && (lend_to_receiver(operation) || put(operation, index))) return true;
  if (ready.ok() && cleared.sent == Bytes{}) {
    const PackingWay way = way_through_slots(peer(operation.peer), shape, laid.work, cleared, parts_);
    laid.work.rows = is_by_rows(way);
    if (way != PackingWay::block) {
      start_stream(operation, index);
      return true;
    }
  }
  laid.work.rows = rows_within_device(shape, parts_.machine);
  Status failed = ready.ok() ? take_block(laid, scratch_) : ready;
  if (failed.ok()) {
    auto packed = packing->pack_bytes(laid.work, Ticket{});
    failed = packed.status();
    if (packed.ok()) {
      laid.waits = false;  // not before: where memory runs out, all of this is done again
      operation.piece = laid.work.packed;
      operation.ready = std::move(*packed);
      return false;
    }
  }
  refuse(operation, index, cleared.receiver_op, failed);
  return true;
}

// Of what comes through the ring: copies or kernels from its slots to where the bytes belong, where those cost less than a block and a kernel. Not
// beside the user's work on the memory, for which a block does not wait. The first message comes in a block: before its ring is here, nobody knows
// whether kernels reach that.
std::shared_ptr<const PackWork> Engine::into_place(const Operation& operation, const PeerState& from, KindId sender) const {
  if (operation.laid == nullptr || operation.laid->work.memory.kind == KindId::host || operation.in<state::Bouncing>())
    return nullptr;
  LaidOut& laid = *operation.laid;
  MessageShape message;
  message.bytes = operation.outcome.bytes;
  auto work = std::make_shared<PackWork>(laid.work.part(0, message.bytes));
  Packing* const packing = parts_.kinds.find(work->memory.kind)->packing();
  PackedShape shape = packed_shape(*work, packing, message);
  if (from.receiver->connected()) shape.no_slots = packing->refuses_mapped(work->memory, from.receiver->memory());
  const PackingWay way = through_slots(shape, sender, true, parts_.machine);
  if (way == PackingWay::block) return nullptr;
  const auto idle = is_finished(laid.ready);
  if (!idle.ok() || !*idle) return nullptr;
  work->rows = is_by_rows(way);
  return work;
}

// Is it quicker to unpack straight out of the sender's memory than out of the block? Not while the user's work on the memory is pending,
// which the sender would wait for, too.
bool Engine::would_gather(Operation& operation, PeerState& from, KindId sender) const {
  if (operation.laid == nullptr || operation.piece.kind == KindId::host || sender != operation.piece.kind) return false;
  if (lending(*from.link, sender) == nullptr) return false;
  const auto idle = is_finished(operation.laid->ready);
  if (!idle.ok() || !*idle || (!from.gathers && ++from.since_gathered % kGatherAgain != 0)) return false;
  PackWork& work = operation.laid->work;
  const PackedShape shape =
      packed_shape(work, parts_.kinds.find(work.memory.kind)->packing(), shape_of(work.packed, from, {}, true));
  const PackingWay way = choose_unpacking(shape, parts_.machine);
  work.rows = way == PackingWay::link_rows;
  return way == PackingWay::link || way == PackingWay::link_rows;
}

Result<OperationId> Engine::start_receive_laid(std::unique_ptr<LaidOut> laid, std::int32_t source, std::int32_t tag,
                                               const Scope& scope) {
  auto ready = pending_work(laid->work.memory);
  if (!ready.ok()) return ready.status();
  laid->ready = std::move(*ready);
  const Piece block = laid->work.packed;
  return receive_ready(block, Ticket{}, source, tag, scope, std::move(laid));
}

// False: there is nothing to unpack, or it is done already. Throws nothing: where memory runs out, a later step begins it.
bool Engine::begin_unpacking(Operation& operation, std::uint32_t index) {
  if (operation.laid == nullptr || operation.sends || operation.laid->gathered || operation.outcome.bytes == Bytes{})
    return false;
  const auto& fold = operation.laid->fold;
  if (fold && (fold->size != operation.outcome.bytes || !operation.outcome.status.ok())) return false;  // the call fails
  PackWork& work = operation.laid->work;
  work.to = static_cast<std::int64_t>(operation.outcome.bytes.value);
  work.packed.size = operation.outcome.bytes;
  operation.state = state::Unpacking{};
  copying(operation);
  try {
    if (unpacked(operation)) return false;
    activate(operation, index);
  } catch (const std::bad_alloc&) {
    activate(operation, index);
  }
  return true;
}

Result<Ticket> Engine::start_unpacking(const Operation& operation) const {
  PackWork& work = operation.laid->work;
  Packing* const packing = parts_.kinds.find(work.memory.kind)->packing();
  MessageShape message;
  message.bytes = operation.outcome.bytes;
  work.rows = rows_within_device(packed_shape(work, packing, message), parts_.machine);
  return packing->pack_bytes(work, operation.laid->ready);
}

bool Engine::unpacked(Operation& operation) {
  auto& unpacking = std::get<state::Unpacking>(operation.state);
  const PackWork& work = operation.laid->work;
  if (work.memory.kind == KindId::host) {
    const std::int64_t from = unpacking.done, to = std::min(work.to, from + kUnpackedAtOnce);
    if (const auto& fold = operation.laid->fold; fold)
      (*fold)(static_cast<std::uint64_t>(from), work.packed.address() + from, static_cast<std::uint64_t>(to - from));
    else
      unpack(*work.form, work.memory.address() + work.origin, from, to, work.packed.address() + from);
    unpacking.done = to;
    if (to < work.to) return false;
  } else {
    if (!unpacking.begun) {
      auto started = start_unpacking(operation);
      if (started.ok())
        unpacking.kernel = std::move(*started);
      else
        operation.outcome.fail(started.status());
      unpacking.begun = true;
    }
    const auto over = is_finished(unpacking.kernel);
    if (over.ok() && !*over) return false;
    if (!over.ok()) operation.outcome.fail(over.status());
  }
  copied(operation, "unpack", operation.outcome.bytes);
  if (operation.laid->of_call) operation.outcome.bytes = Bytes{};  // as of any collective call
  return true;
}

// Where its kernel still packs, because the message is over for another reason, the block stays until it does not.
void Engine::let_go_of_block(Operation& operation) {
  std::unique_ptr<LaidOut> laid = std::move(operation.laid);
  laid->packed = std::move(operation.ready);
  const auto packs = [&laid] {
    const auto over = is_finished(laid->packed);
    return over.ok() && !*over;
  };
  if (!packs()) return;
  try {
    still_packed_.push_back(std::move(laid));
  } catch (const std::bad_alloc&) {
    laid->device.let_go_later();
  }
}

void Engine::let_go_of_blocks() {
  std::erase_if(still_packed_, [](const std::unique_ptr<LaidOut>& laid) {
    const auto over = is_finished(laid->packed);
    return !over.ok() || *over;
  });
}

}  // namespace ist
