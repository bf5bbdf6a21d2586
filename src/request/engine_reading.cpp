// Long messages between host buffers: in one copy, where that is possible and quicker.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>

#include "base/log.hpp"
#include "request/engine_at_once.hpp"

namespace ist {
namespace {

// Read at once, so that a long message does not keep the engine from everybody else.
constexpr std::uint64_t kAtOnce = 512 << 10;

// What waits to be read from that peer is read along with the first of it, as far as a call of the system may be long: four messages of 64, 128 and
// 256 KiB take 0.35, 0.4 and 0.4 us less each so (docs/measured/README.md). What was is read to its end, and finished in its own step.
void read_along(OperationTable& operations, std::span<const std::uint32_t> active, Rank peer, Link& link) {
  std::array<Link::OfferRead, Link::kMostTogether> reads;
  std::array<state::Reading*, Link::kMostTogether> found{};
  std::size_t count = 0;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < active.size() && count < found.size(); ++i) {
    Operation* const one = operations.whole_at(active[i]);
    auto* const reading = one != nullptr ? std::get_if<state::Reading>(&one->state) : nullptr;
    if (reading == nullptr || one->peer != peer || one->timed || one->shown || reading->done != 0) continue;
    const std::uint64_t size = one->outcome.bytes.value;
    if (bytes + size > kAtOnce) continue;
    reads[count] = {{one->piece.address(), size}, reading->offer};
    found[count++] = reading;
    bytes += size;
  }
  if (count < 2 || !link.read_together({reads.data(), count})) return;
  for (std::size_t i = 0; i < count; ++i) found[i]->done = reads[i].into.size();
}

}  // namespace

// Can this receiver copy the announced bytes at once, all of them, from memory that it shares with the sender?
bool Engine::is_shown(const PeerState& from, const Envelope& envelope, std::span<const std::byte> payload, Bytes room) {
  return envelope.type == EnvelopeType::announce && envelope.flags == 0 && envelope.bytes <= std::min(room.value, kAtOnce) &&
         from.link->sees(offer_in(envelope, payload), Bytes{envelope.bytes});
}

// False: it is shown no more, and what was copied may be anything; or there is no memory for the answer, and the longer way is to come to it.
bool Engine::copy_shown(PeerState& from, const Envelope& envelope, std::span<const std::byte> payload, std::byte* to) {
  const Bytes bytes{envelope.bytes};
  const auto copied = from.link->read_peer(to, offer_in(envelope, payload), Offset{}, bytes);
  if (!copied.ok() || !*copied) return false;
  Envelope taken;
  taken.type = EnvelopeType::taken;
  taken.flags = kEnvelopeSeen;
  taken.sender_op = envelope.sender_op;
  taken.sequence = envelope.sequence;
  try {
    post_or_queue(from, taken);
  } catch (const std::bad_alloc&) {
    return false;
  }
  from.shows = true;
  from.traffic.received_by(Way::single_copy).add(bytes);
  return true;
}

// Does this receiver read the announced bytes where they lie? Otherwise they come through the ring.
bool Engine::reads(Operation& operation, const state::Readying& announcement) {
  const Bytes size = smaller(Bytes{announcement.announced.bytes}, operation.piece.size);
  if (operation.piece.kind != KindId::host || announcement.offer.value == 0 || size == Bytes{}) return false;
  Link& link = *peer(announcement.source).link;
  operation.shown = link.sees(announcement.offer, size);
  if (operation.shown) return true;
  if (!link.reads_peer()) return false;
  if (operation.fold() != nullptr) return parts_.settings.single_copy == "always";  // out of the ring it is folded
  if (parts_.settings.single_copy == "always") return true;
  if (!copies_.learns(size)) return copies_.chosen(size, offers_ > 0) == CopyChoice::Way::single;
  operation.timed = true;
  operation.copying = {};
  return copies_.next(size, offers_ > 0) == CopyChoice::Way::single;
}

// True if the operation moved on.
bool Engine::step_reading(Operation& operation, std::uint32_t index) {
  auto& reading = std::get<state::Reading>(operation.state);
  PeerState& from = peer(operation.peer);
  const std::uint64_t size = operation.outcome.bytes.value;
  if (reading.done == 0 && !operation.timed && !operation.shown && 2 * size <= kAtOnce)
    read_along(operations_, active_, from.rank, *from.link);
  const Bytes part{std::min(kAtOnce, size - reading.done)};
  const auto begun = operation.timed ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
  const Fold* const fold =
      operation.shown && operation.fold() != nullptr && operation.fold()->size.value == size ? operation.fold() : nullptr;
  const auto is_there = [&] {
    return from.link->sees(reading.offer, Bytes{size}) && from.link->is_still_offered(reading.offer);
  };
  bool folded_some = reading.done > 0;
  const auto take_part = [&]() -> Result<bool> {
    if (part == Bytes{}) return true;
    if (fold == nullptr)
      return from.link->read_peer(operation.piece.address() + reading.done, reading.offer, Offset{reading.done}, part);
    if (!is_there()) return false;
    (*fold)(reading.done, from.link->seen_at(reading.offer) + reading.done, part.value);
    folded_some = true;
    return is_there();
  };
  const auto read = take_part();
  if (!read.ok() || !*read) {
    // In place what it was combined with is gone: whatever comes now, or why nothing does, the receive has failed.
    if (fold != nullptr && fold->to == fold->here && folded_some) {
      operation.outcome.fail(taken_back(from.rank));
      operation.outcome.about = from.rank;
    }
    // A death, a permission taken back, a send that has ended: the ring carries the message, or the sender says why not.
    if (!read.ok())
      log::once(log::Level::info, "the memory of another rank cannot be read any more: " + read.status().text());
    operation.timed = false;
    clear(operation, index, Envelope{reading.announced});
    return true;
  }
  if (operation.timed) operation.copying += std::chrono::steady_clock::now() - begun;
  if (reading.done + part.value < size) {
    reading.done += part.value;
    return true;
  }
  reading.done = size;  // where memory runs out from here on, nothing is read or combined again
  Envelope taken;
  taken.type = EnvelopeType::taken;
  taken.flags = operation.shown ? kEnvelopeSeen : 0;
  taken.sender_op = reading.announced.sender_op;
  taken.sequence = reading.announced.sequence;
  operation.outcome.carrier = IST_CARRIER_DIRECT;
  if (fold != nullptr) operation.laid->gathered = true;
  from.shows = operation.shown;
  copied(operation, "copy out of the sender's memory", operation.outcome.bytes);
  post_or_queue(from, taken);
  if (operation.timed)
    copies_.took(CopyChoice::Way::single, operation.outcome.bytes, std::chrono::duration<double>(operation.copying).count());
  finish(operation, index, {});
  return true;
}

// Before the caller may use the buffer again. Once it is answered nobody reads the bytes any more, nor the word.
void Engine::end_offer(Operation& operation) {
  const std::uint64_t id = operation.offered;
  if (id == 0) return;
  --offers_;
  std::atomic_ref(operation.offered).store(0, std::memory_order_relaxed);
  if (operation.answered) return;
  heap_->hide(id);
  peer(operation.peer).link->withdraw_offer();
}

}  // namespace ist
