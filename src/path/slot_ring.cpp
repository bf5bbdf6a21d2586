#include "path/slot_ring.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace ist {
namespace {

constexpr std::uint64_t kPage = 4096;
// One line per header: the writer fills header n + 1 while the reader looks at header n.
constexpr std::uint64_t kHeaderStride = 64;
constexpr std::size_t kLinesAhead = 16;

constexpr std::uint64_t round_to_page(std::uint64_t n) { return (n + kPage - 1) / kPage * kPage; }

constexpr std::uint64_t kFirstSlot = round_to_page(sizeof(SlotRingShared) + SlotRingLayout::kHeaders * kHeaderStride);

}  // namespace

// The counters cross process borders, so that a lock hidden inside an atomic would not work.
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

Offset SlotRingLayout::header(std::uint64_t n) const {
  return Offset{sizeof(SlotRingShared) + (n % kHeaders) * kHeaderStride};
}

Offset SlotRingLayout::slot(std::uint64_t n) const {
  return Offset{kFirstSlot + (n % slots) * round_to_page(slot_bytes.value)};
}

Bytes SlotRingLayout::room() const { return Bytes{slots * round_to_page(slot_bytes.value)}; }

Bytes SlotRingLayout::total() const { return Bytes{kFirstSlot} + room(); }

SlotRingWriter::SlotRingWriter(std::byte* memory, SlotRingLayout layout, std::function<void()> ring_bell, Bytes lap)
    : memory_(memory), layout_(layout), shared_(new (memory) SlotRingShared), ring_bell_(std::move(ring_bell)), lap_(lap) {
  shared_->slots = layout.slots;
  shared_->slot_bytes = layout.slot_bytes.value;
  shared_->published.store(0, std::memory_order_relaxed);
  shared_->released.store(0, std::memory_order_relaxed);
  // The reader maps the ring only after it was handed the descriptor, which happens after this.
  shared_->magic = SlotRingShared::kMagic;
}

// Guard ROOM of models/slot_ring.pml: never more than there are slots between started and released. Guard DRAINED: bytes of one shape's slots
// are also those of the other's, and of other numbers, so that all slots are released before the shape changes.
std::optional<Slot> SlotRingWriter::start_next(Bytes wanted, Filling filling) {
  const std::uint64_t piece = round_to_page(std::max<std::uint64_t>(wanted.value, 1));
  const std::uint64_t ahead = filling == Filling::ahead ? pieces_ahead(piece) : 0;
  const std::uint64_t short_bytes = ahead > layout_.slots ? piece : 0;
  const bool same_shape = short_bytes == short_bytes_;
  most_ = same_shape ? std::max<std::uint64_t>(ahead, layout_.slots) : 1;
  refused_ = !has_room();
  if (refused_) return std::nullopt;
  short_bytes_ = short_bytes;
  const std::uint64_t begin = layout_.slot(started_).value;
  const std::uint64_t n = started_++;
  if (short_bytes == 0) {
    const std::uint64_t place = filling == Filling::in_place ? 0 : place_by_turns(n, piece);
    return Slot{memory_ + begin + place, layout_.slot_bytes - Bytes{place}, place};
  }
  const std::uint64_t at = kFirstSlot + n % ahead * piece;
  return Slot{memory_ + at, Bytes{piece}, at < begin ? at + layout_.room().value - begin : at - begin};
}

// As many as a lap has, and have headers.
std::uint64_t SlotRingWriter::pieces_ahead(std::uint64_t piece) const {
  return std::min(SlotRingLayout::kHeaders, smaller(lap_, layout_.room()).value / piece);
}

bool SlotRingWriter::has_room() {
  if (started_ - released_seen_ < most_) return true;
  // Acquire pairs with the release in release_oldest(): the reader's last look at the slot comes before our first write.
  released_seen_ = shared_->released.load(std::memory_order_acquire);
  return started_ - released_seen_ < most_;
}

std::uint64_t SlotRingWriter::place_by_turns(std::uint64_t n, std::uint64_t piece) const {
  const std::uint64_t places = std::min(layout_.slot_bytes.value / piece, lap_.value / (piece * layout_.slots));
  return places < 2 ? 0 : n / layout_.slots % places * piece;
}

void SlotRingWriter::publish_oldest(const SlotHeader& header) {
  std::memcpy(memory_ + layout_.header(published_).value, &header, sizeof(header));
  // Guard PUBLISH_LAST: release keeps header and bytes before the count that shows them. Bytes a device wrote are in host
  // memory already: the caller publishes only what its copy's ticket has reported finished. What was stored past the caches, the fence at the end
  // of that copy keeps before it (copy_past() in handing_copy.cpp).
  shared_->published.store(++published_, std::memory_order_release);
  if (ring_bell_) ring_bell_();
}

bool SlotRingWriter::news() {
  if (!refused_ || started_ - shared_->released.load(std::memory_order_relaxed) >= most_) return false;
  refused_ = false;
  return true;
}

SlotRingReader::SlotRingReader(std::byte* memory, SlotRingLayout layout, std::function<void()> ring_bell)
    : memory_(memory),
      layout_(layout),
      shared_(std::launder(reinterpret_cast<SlotRingShared*>(memory))),
      ring_bell_(std::move(ring_bell)) {}

// Guard FULL: a slot is looked at only once it is counted as published.
std::optional<FullSlot> SlotRingReader::take_next() {
  if (taken_ == published_seen_) {
    // Acquire pairs with the release in publish_oldest(): header and bytes are read after the count.
    published_seen_ = shared_->published.load(std::memory_order_acquire);
    refused_ = taken_ == published_seen_;
    if (refused_) return std::nullopt;
  }
  refused_ = false;
  FullSlot full;
  std::memcpy(&full.header, memory_ + layout_.header(taken_).value, sizeof(full.header));
  full.data = data_of(taken_++, full.header);
  fetch_next();
  return full;
}

// A place from which the bytes would leave the ring is never written; it keeps a scribbled one from leading us out of it.
const std::byte* SlotRingReader::data_of(std::uint64_t n, const SlotHeader& header) const {
  const std::uint64_t room = layout_.room().value;
  const std::byte* const slots = memory_ + kFirstSlot;
  const std::uint64_t begin = layout_.slot(n).value - kFirstSlot;
  if (header.place >= room) return slots + begin;
  const std::uint64_t at = begin + header.place < room ? begin + header.place : begin + header.place - room;
  return slots + (header.bytes <= room - at ? at : begin);
}

// Where the next slot is published already, its first bytes travel while this one is copied, and so does the header behind it.
void SlotRingReader::fetch_next() {
  if (taken_ == published_seen_) published_seen_ = shared_->published.load(std::memory_order_acquire);
  if (taken_ == published_seen_) return;
  SlotHeader next;
  std::memcpy(&next, memory_ + layout_.header(taken_).value, sizeof(next));
  const std::byte* const data = data_of(taken_, next);
  for (std::size_t line = 0; line < kLinesAhead; ++line) __builtin_prefetch(data + 64 * line);
  if (taken_ + 1 != published_seen_) __builtin_prefetch(memory_ + layout_.header(taken_ + 1).value);
}

void SlotRingReader::release_oldest() {
  // Guard RELEASE_LAST: release keeps our reads of the slot before the count that lets the writer fill it again.
  shared_->released.store(++released_, std::memory_order_release);
  if (ring_bell_) ring_bell_();
}

bool SlotRingReader::news() {
  if (!refused_ || shared_->published.load(std::memory_order_relaxed) == taken_) return false;
  refused_ = false;
  return true;
}

}  // namespace ist
