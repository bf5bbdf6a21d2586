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

Bytes SlotRingLayout::total() const { return Bytes{kFirstSlot + slots * round_to_page(slot_bytes.value)}; }

SlotRingWriter::SlotRingWriter(std::byte* memory, SlotRingLayout layout, std::function<void()> ring_bell, Bytes lap)
    : memory_(memory), layout_(layout), shared_(new (memory) SlotRingShared), ring_bell_(std::move(ring_bell)), lap_(lap) {
  shared_->slots = layout.slots;
  shared_->slot_bytes = layout.slot_bytes.value;
  shared_->published.store(0, std::memory_order_relaxed);
  shared_->released.store(0, std::memory_order_relaxed);
  // The reader maps the ring only after it was handed the descriptor, which happens after this.
  shared_->magic = SlotRingShared::kMagic;
}

// Guard ROOM of models/slot_ring.pml: numbers that are less than `slots` apart are in different slots, wherever there. Guard ALIKE: those further apart, and
// less than slots and places are, are in different ones of these only if all take the same turns. Guards FEW and MANY: rounds of fewer or more
// slots may put numbers that are close into one, so that all of the others are released first.
std::optional<Slot> SlotRingWriter::start_next(Bytes wanted, Filling filling, std::uint64_t most) {
  const Round round = this->round(round_to_page(std::max<std::uint64_t>(wanted.value, 1)), filling);
  const std::uint64_t since = round == round_ ? alike_since_ : started_;
  const std::uint64_t others = round.used == round_.used ? 0 : started_;
  // How many are to be released, as far as it is known now.
  const auto least = [&] {
    const bool all = filling == Filling::ahead && released_seen_ >= since;
    const std::uint64_t places = std::min({most, SlotRingLayout::kHeaders, round.used * round.places});
    const std::uint64_t room = all ? std::max(round.used, places) : round.used;
    return std::max(others, started_ + 1 - std::min(started_ + 1, room));
  };
  if (released_seen_ < least()) {
    // Acquire pairs with the release in release_oldest(): the reader's last look at the slot comes before our first write.
    released_seen_ = shared_->released.load(std::memory_order_acquire);
    wanted_ = least();
    refused_ = released_seen_ < wanted_;
    if (refused_) return std::nullopt;
  }
  refused_ = false;
  round_ = round;
  alike_since_ = since;
  const std::uint64_t n = started_++;
  const std::uint64_t place = place_of(n, round);
  return Slot{memory_ + kFirstSlot + place, round.places > 1 ? Bytes{round.piece} : layout_.slot_bytes,
              static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place_of(n + 1, round))};
}

SlotRingWriter::Round SlotRingWriter::round(std::uint64_t piece, Filling filling) const {
  if (filling == Filling::few) return {std::min<std::uint64_t>(SlotRingLayout::kFew, layout_.slots), piece, 1};
  return {layout_.slots, piece, filling == Filling::in_place ? 1 : places_for(piece)};
}

// Behind the start of the first slot.
std::uint64_t SlotRingWriter::place_of(std::uint64_t n, const Round& round) const {
  return layout_.slot(n % round.used).value - kFirstSlot + n / round.used % round.places * round.piece;
}

std::uint64_t SlotRingWriter::round_of(Bytes wanted) const {
  return layout_.slots * places_for(round_to_page(std::max<std::uint64_t>(wanted.value, 1)));
}

std::uint64_t SlotRingWriter::places_for(std::uint64_t piece) const {
  return std::max<std::uint64_t>(1, std::min(layout_.slot_bytes.value / piece, lap_.value / (piece * layout_.slots)));
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
  if (!refused_ || shared_->released.load(std::memory_order_relaxed) < wanted_) return false;
  refused_ = false;
  return true;
}

SlotRingReader::SlotRingReader(std::byte* memory, SlotRingLayout layout, std::function<void()> ring_bell)
    : memory_(memory),
      layout_(layout),
      shared_(std::launder(reinterpret_cast<SlotRingShared*>(memory))),
      room_(layout.total().value - kFirstSlot),
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
  // A place beyond the slots is never written; it keeps a scribbled ring from leading us out of it.
  if (!is_within(full.header.place)) full.header.place = 0;
  full.data = memory_ + kFirstSlot + full.header.place;
  ++taken_;
  if (is_within(full.header.next)) fetch_next(full.header.next);
  return full;
}

// Where the next slot is published already, its header and first bytes travel while this one is copied. They nearly always are where this one says.
void SlotRingReader::fetch_next(std::uint64_t place) {
  if (taken_ == published_seen_) published_seen_ = shared_->published.load(std::memory_order_acquire);
  if (taken_ == published_seen_) return;
  __builtin_prefetch(memory_ + layout_.header(taken_).value);
  for (std::size_t line = 0; line < kLinesAhead; ++line) __builtin_prefetch(memory_ + kFirstSlot + place + 64 * line);
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
