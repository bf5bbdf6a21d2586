#include "path/shm/shm_link.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <utility>

#include "base/log.hpp"
#include "memory/host/handing_copy.hpp"
#include "memory/host/shared_heap.hpp"

namespace ist {
namespace {

// Maps the ring that a peer made and checks that it is one.
Result<SharedMemory> open_ring(FileDescriptor descriptor, Rank peer, SlotRingLayout& layout) {
  struct stat info {};
  if (::fstat(descriptor.get(), &info) != 0)
    return system_error("fstat of the ring from rank " + std::to_string(peer.value));
  auto memory = SharedMemory::open(std::move(descriptor), Bytes{static_cast<std::uint64_t>(info.st_size)});
  if (!memory.ok()) return memory.status();
  if (memory->size() >= Bytes{sizeof(SlotRingShared)}) {
    const auto& shared = *std::launder(reinterpret_cast<const SlotRingShared*>(memory->data()));
    layout = {shared.slots, Bytes{shared.slot_bytes}};
    const bool slots = layout.slots > 0 && layout.slots <= SlotRingLayout::kHeaders;
    if (shared.magic == SlotRingShared::kMagic && slots && layout.total() == memory->size()) return memory;
  }
  return Status{IST_ERR_SYSTEM, "the ring from rank " + std::to_string(peer.value) + " has " +
                                    std::to_string(memory->size().value) +
                                    " bytes that do not describe a ring; run the same Isthmus on all ranks"};
}

}  // namespace

void CellPool::reclaim() {
  std::vector<CellName> unread;
  for (std::uint64_t index = 0; index < sent_to_.size(); ++index) {
    // Acquire: what the rank had brought back before it left is in the free queue, as far as this process sees.
    const Segment* holder = sent_to_[index];
    if (holder != nullptr && holder->shared().left.load(std::memory_order_acquire) != 0)
      unread.push_back(cell_name(place_, index));
  }
  if (unread.empty()) return;
  // Only with an empty free queue is it certain that none of them is in it: behind the gap of a writer that has not finished,
  // one could be hidden.
  collect();
  if (shared_.tail.load(std::memory_order_acquire) != kNoCell) return;
  for (const CellName name : unread) {
    const Segment*& holder = sent_to_[index_of(name)];
    if (holder == nullptr || !nobody_touches(name, *holder)) continue;
    holder = nullptr;
    spare_.push_back(name);
  }
}

// Others may still post to a rank whose leaving they have not seen, and the next of them writes the link of the queue's last cell. So guard
// LAST (models/left_cells.pml) holds for the owner of a cell as it does for the reader, which is gone: either the link has been written, or the cell is still the
// tail, and then the queue becomes empty in the same step. Whoever posts next writes `head`, which nobody reads any more.
bool CellPool::nobody_touches(CellName name, const Segment& holder) const {
  if (table_.header(name).next.load(std::memory_order_acquire) != kNoCell) return true;
  CellName expected = name;
  return holder.shared().arrivals.tail.compare_exchange_strong(expected, kNoCell, std::memory_order_acq_rel,
                                                               std::memory_order_relaxed);
}

bool CellPool::news() {
  if (!refused_ || (spare_.empty() && !free_.ready())) return false;
  refused_ = false;
  return true;
}

ShmLink::ShmLink(const Ends& ends)
    : ends_(ends),
      bell_(ends.peer->shared().may_sleep != 0 ? &ends.peer->shared().bell : nullptr),
      slots_(ends.peer->slots(ends.my_place), &ends.peer->pair(ends.my_place).consumed, ends.peer->shape().pair_slots()) {
  cell_limit = Bytes{ends.mine->shape().cell_bytes};
  const std::uint32_t ranks = ends.peer->shape().ranks;
  const PairSlotShape there = ends.peer->shape().pair_slots();  // of the peer's eager limit, which may be another one
  slot_limit = smaller(pair_slot_limit(cell_limit, ranks), Bytes{there.longest});
  slot_limit_again = smaller(pair_slot_limit_again(cell_limit, ranks), Bytes{there.again});
  outgoing_slots = &slots_;
  may_sleep = bell_ != nullptr;
  invites = &ends.mine->pair(ends.peer_place).invitation;
  invited = &ends.peer->pair(ends.my_place).invitation;
}

ShmLink::~ShmLink() {
  if (outgoing_locked_) ends_.surroundings->unlock(outgoing_memory_->data());
  if (incoming_locked_) ends_.surroundings->unlock(incoming_memory_->data());
}

bool ShmLink::post(const Envelope& envelope, std::span<const std::byte> payload) {
  if (!slots_.post(envelope, payload)) return false;
  ring();
  return true;
}

void ShmLink::post_cell(const Cell& cell, const Envelope& envelope, Bytes length) {
  // Guard CONTENT_FIRST: the releases in put_cell() keep all of this, and the cell's bytes, before the cell is seen.
  ends_.pool->sending(cell, *ends_.peer);
  CellHeader& header = ends_.table->header(cell.id);
  header.envelope = envelope;
  header.length = length.value;
  put_cell(ends_.peer->shared().arrivals, *ends_.table, cell.id);
  ring();
}

Result<SlotRingWriter*> ShmLink::outgoing() {
  if (outgoing_) return &*outgoing_;
  const Settings& settings = ends_.surroundings->settings;
  const SlotRingLayout layout{static_cast<std::uint32_t>(settings.ring_slots),
                              std::max(settings.ring_slot_device, settings.ring_slot_host)};
  auto memory = SharedMemory::create("isthmus-ring", layout.total());
  if (!memory.ok()) return memory.status();
  SlotRingWriter writer{memory->data(), layout, bell_ ? std::function<void()>{[this] { ring(); }} : nullptr,
                        ends_.peer->shape().pair_slots().room()};
  IST_TRY(ends_.surroundings->send_descriptor(peer_rank(), kRingPurpose, memory->descriptor()));
  outgoing_memory_ = std::move(memory).value();
  outgoing_ = std::move(writer);
  // Release: a peer that sees this finds the descriptor in its socket, so that it need not ask the kernel before.
  ends_.peer->pair(ends_.my_place).rings_made.store(++rings_made_, std::memory_order_release);
  ring();
  if (*ends_.lock_rings) lock_or_warn(*outgoing_memory_, outgoing_locked_);
  return &*outgoing_;
}

void ShmLink::drop_outgoing() {
  outgoing_.reset();
  if (std::exchange(outgoing_locked_, false)) ends_.surroundings->unlock(outgoing_memory_->data());
  outgoing_memory_.reset();
}

Result<SlotRingReader*> ShmLink::incoming() {
  if (incoming_) return &*incoming_;
  const std::uint32_t made = ends_.mine->pair(ends_.peer_place).rings_made.load(std::memory_order_acquire);
  incoming_refused_ = made == rings_lost_;
  if (incoming_refused_) return static_cast<SlotRingReader*>(nullptr);
  auto ring = take_ring();
  // Its descriptor has been taken, and does not come again.
  if (!ring.ok() && ring.status().code() != IST_ERR_PEER_DEAD) rings_lost_ = made;
  return ring;
}

Result<SlotRingReader*> ShmLink::take_ring() {
  auto descriptor = ends_.surroundings->take_descriptor(peer_rank(), kRingPurpose, 0.0);
  if (!descriptor.ok()) return descriptor.status();
  if (!descriptor.value()) return static_cast<SlotRingReader*>(nullptr);
  SlotRingLayout layout;
  auto memory = open_ring(std::move(*descriptor.value()), peer_rank(), layout);
  if (!memory.ok()) return memory.status();
  incoming_memory_ = std::move(memory).value();
  incoming_.emplace(incoming_memory_->data(), layout, bell_ ? std::function<void()>{[this] { ring(); }} : nullptr);
  if (*ends_.lock_rings) lock_or_warn(*incoming_memory_, incoming_locked_);
  return &*incoming_;
}

// Never waits for the peer, which may not look at its socket for long: a later send tries again.
bool ShmLink::show_heap() {
  if (heap_shown_ || heap_hidden_) return heap_shown_;
  const Surroundings& around = *ends_.surroundings;
  heap_hidden_ = around.heap == nullptr || around.settings.single_copy == "never";
  if (heap_hidden_) return false;
  const SharedHeap& heap = *around.heap;
  const auto sent = around.try_send_descriptor(peer_rank(), kHeapPurpose, heap.descriptor());
  if (sent.ok() && !*sent) return false;
  heap_hidden_ = !sent.ok();
  if (heap_hidden_) {
    log::write(log::Level::info,
               "host memory is not shared with rank " + std::to_string(peer_rank().value) + ": " + sent.status().text());
    return false;
  }
  ends_.mine->shared().heap_start.store(heap.start(), std::memory_order_relaxed);
  ends_.mine->shared().heap_length.store(heap.length().value, std::memory_order_relaxed);
  // Release: a peer that sees this finds the descriptor in its socket, and start and length.
  ends_.peer->pair(ends_.my_place).heap_shown.store(1, std::memory_order_release);
  return heap_shown_ = true;
}

// Of the peer's heap, up to that place. By doubling, since what is mapped is memory where a program locks all of its own.
Status ShmLink::map_heap(std::uint64_t end) {
  constexpr std::uint64_t kLeastMapped = std::uint64_t{64} << 20;
  const Bytes wanted{std::min(ends_.peer->shared().heap_length.load(std::memory_order_relaxed),
                              std::max(std::bit_ceil(end), kLeastMapped))};
  if (peers_heap_) return peers_heap_->look_further(wanted);
  auto descriptor = ends_.surroundings->take_descriptor(peer_rank(), kHeapPurpose, 0.0);
  // One that is not wanted is taken nevertheless: a system has only so many under way for a user.
  if (!descriptor.ok() || !*descriptor || ends_.surroundings->settings.single_copy == "never")
    return descriptor.ok() ? Status{IST_ERR_SYSTEM, "it is not wanted, or did not come"} : descriptor.status();
  auto memory = SharedMemory::look_at(std::move(**descriptor), wanted);
  if (memory.ok()) peers_heap_ = std::move(*memory);
  return memory.status();
}

bool ShmLink::open_heap(std::uint64_t end) {
  if (peers_heap_ && end <= peers_heap_->size().value) return true;
  if (heap_failed_ || ends_.mine->pair(ends_.peer_place).heap_shown.load(std::memory_order_acquire) == 0) return false;
  const Status mapped = map_heap(end);
  heap_failed_ = !mapped.ok();
  if (heap_failed_) {
    peers_heap_.reset();
    log::write(log::Level::info,
               "host memory that rank " + std::to_string(peer_rank().value) + " shares is not mapped: " + mapped.text());
  }
  return !heap_failed_;
}

// By the peer's own addresses.
bool ShmLink::in_heap(std::uint64_t address, std::uint64_t size) const {
  const std::uint64_t offset = address - ends_.peer->shared().heap_start.load(std::memory_order_relaxed);
  const std::uint64_t length = ends_.peer->shared().heap_length.load(std::memory_order_relaxed);
  return offset < length && size <= length - offset;
}

bool ShmLink::sees(const Offer& offer, Bytes size) {
  if (heap_failed_ || !in_heap(offer.address, size.value) || !in_heap(offer.word, sizeof offer.value) ||
      offer.word % sizeof offer.value != 0)
    return false;
  const std::uint64_t start = ends_.peer->shared().heap_start.load(std::memory_order_relaxed);
  return open_heap(std::max(offer.address + size.value, offer.word + sizeof offer.value) - start);
}

bool ShmLink::could_read_peer() {
  if (memory_tried_) return memory_.has_value();
  memory_tried_ = true;
  const Surroundings& around = *ends_.surroundings;
  unreadable_ = {IST_ERR_SYSTEM, "ISTHMUS_SINGLE_COPY is never"};
  if (around.settings.single_copy == "never" || !around.process_of) return false;
  const Segment::Shared& peer = ends_.peer->shared();
  auto opened = PeerMemory::open(around.process_of(peer_rank()), {peer.proof_address, peer.proof});
  if (opened.ok()) {
    memory_ = *opened;
    return true;
  }
  refused_ = true;
  unreadable_ = {opened.status().code(), opened.status().text()};
  return false;
}

bool ShmLink::reads_peer() {
  if (could_read_peer()) return true;
  if (!std::exchange(refused_, false)) return false;
  // Once for all ranks: the reason is nearly always the same.
  log::once(log::Level::warning, "single copy",
            "long messages between host buffers of two ranks take two copies instead of one: " + unreadable_.text() +
                "; ISTHMUS_SINGLE_COPY=never asks for no more");
  unreadable_ = {IST_ERR_SYSTEM,
                 "the memory of rank " + std::to_string(peer_rank().value) + " cannot be read: " + unreadable_.text()};
  return false;
}

// Guards WITHDRAW, WITHDRAW_FIRST: what the caller writes next must not be seen before this, for which a store alone would not do on
// processors that reorder stores.
void ShmLink::withdraw_offer() {
  std::atomic<std::uint32_t>& count = ends_.peer->pair(ends_.my_place).withdrawn;
  const std::uint32_t before = count.load(std::memory_order_relaxed);
  if (before != Offer::kNotCounted) count.store(before + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

// May what was read be something else? Then the word is to be asked. Guards COUNT, COUNT_LAST: the fence keeps this behind the copy.
bool ShmLink::is_withdrawn(const Offer& offer) const {
  std::atomic_thread_fence(std::memory_order_acquire);
  const std::uint32_t now = ends_.mine->pair(ends_.peer_place).withdrawn.load(std::memory_order_relaxed);
  return offer.withdrawn == Offer::kNotCounted || now != offer.withdrawn;
}

const std::byte* ShmLink::in_peers_heap(std::uint64_t address) const {
  return peers_heap_->data() + (address - ends_.peer->shared().heap_start.load(std::memory_order_relaxed));
}

const std::byte* ShmLink::seen_at(const Offer& offer) { return in_peers_heap(offer.address); }

bool ShmLink::is_still_offered(const Offer& offer) {
  // Guards LOOK, LOOK_LAST: the fence in it keeps the look at the word behind the copy, so that the word is no older than any byte.
  if (!is_withdrawn(offer)) return true;
  const auto* const word = reinterpret_cast<const std::uint64_t*>(in_peers_heap(offer.word));
  return __atomic_load_n(word, __ATOMIC_RELAXED) ==
         offer.value;  // guard OWN_NUMBER: a later send from the same place is another message
}

Result<bool> ShmLink::read_peer(std::byte* into, const Offer& offer, Offset from, Bytes size) {
  if (sees(offer, Bytes{from.value + size.value})) {
    copy_across(into, seen_at(offer) + from.value, size.value);
    return is_still_offered(offer);
  }
  std::uint64_t found = 0;
  if (!memory_) return false;
  Status read = memory_->read({into, size.value}, offer.address + from.value);
  if (read.ok() && !is_withdrawn(offer)) return true;
  if (read.ok()) read = memory_->read(std::as_writable_bytes(std::span{&found, 1}), offer.word);
  if (read.ok()) return found == offer.value;
  memory_.reset();
  unreadable_ = read;
  return read;
}

bool ShmLink::read_together(std::span<const OfferRead> reads) {
  if (!memory_ || reads.size() > kMostTogether) return false;
  static_assert(kMostTogether <= PeerMemory::kMostParts);
  std::array<PeerMemory::Part, kMostTogether> parts;
  for (std::size_t i = 0; i < reads.size(); ++i) parts[i] = {reads[i].into, reads[i].offer.address};
  // Guards COUNT, COUNT_LAST, as in read_peer(): the count is asked behind all of the copies. Where it has changed, or they failed, the words are to be
  // asked one by one.
  return memory_->read({parts.data(), reads.size()}) &&
         std::none_of(reads.begin(), reads.end(), [this](const OfferRead& read) { return is_withdrawn(read.offer); });
}

// Also where it fails: the memory may be locked for some of the kinds, and is unlocked in the end all the same.
Status ShmLink::lock(SharedMemory& ring, bool& locked) const {
  locked = true;
  return ends_.surroundings->lock(ring.data(), ring.size());
}

// A pageable ring carries every message, only slower: no reason to fail one.
void ShmLink::lock_or_warn(SharedMemory& ring, bool& locked) const {
  if (const Status status = lock(ring, locked); !status.ok())
    log::once(log::Level::warning,
              "rings of shared memory stay pageable, device copies through them will be slower: " + status.text());
}

Status ShmLink::lock_rings() {
  Status first;
  if (outgoing_memory_) first = lock(*outgoing_memory_, outgoing_locked_);
  if (incoming_memory_)
    if (Status status = lock(*incoming_memory_, incoming_locked_); first.ok()) first = std::move(status);
  return first;
}

bool ShmLink::news() {
  // A ring announced, but its descriptor still in flight: incoming() found nothing yet and must be called again.
  if (incoming_refused_ && ends_.mine->pair(ends_.peer_place).rings_made.load(std::memory_order_relaxed) != rings_lost_) {
    incoming_refused_ = false;
    return true;
  }
  bool news = slots_.news();
  if (outgoing_) news |= outgoing_->news();
  if (incoming_) news |= incoming_->news();
  return news;
}

}  // namespace ist
