// A ring of page-locked slots between two processes; one writes, one reads.
//
// Who calls this : protocol/pipelined, once per large message and slot. Model: models/slot_ring.pml.
// Threads        : one writer thread and one reader thread; no lock.
// Ownership      : views of memory that the path maps; slots are views of the ring.
// Errors         : none; a full or empty ring gives no slot.
//
// A slot may be filled while the copies of earlier ones are still running: `started` (private to the writer) runs ahead of
// `published` (shared), and only published slots are seen by the reader. The reader in turn takes slots ahead of releasing
// them: `taken` is private, `released` shared.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "base/units.hpp"
#include "base/wire.hpp"

namespace ist {

// The shared part, at the start of the ring's memory; headers and slots follow at fixed places.
struct SlotRingShared {
  static constexpr std::uint32_t kMagic = 0x49537248;
  alignas(128) std::uint32_t magic;
  std::uint32_t slots;
  std::uint64_t slot_bytes;
  alignas(128) std::atomic<std::uint64_t> published;  // slots ever published
  alignas(128) std::atomic<std::uint64_t> released;   // slots ever released
};

struct SlotRingLayout {
  static constexpr std::uint64_t kHeaders = 64;  // and so the most slots, and pieces outstanding
  static constexpr std::uint64_t kFew = 4;       // slots, of Filling::few
  std::uint32_t slots = 0;
  Bytes slot_bytes;
  Bytes total() const;  // of the whole ring, a multiple of the page size
  Offset header(std::uint64_t n) const;
  Offset slot(std::uint64_t n) const;  // page-aligned
};

// Which bytes of its slot the next piece has, and how far the writer may be ahead of the reader. Pieces that a slot takes several of take turns in it, so that
// they are as many again as it has places.
enum class Filling : std::uint8_t {
  in_place,  // the first bytes, always
  // The same in the first SlotRingLayout::kFew slots alone. Begun when all pieces of other fillings are released, as those are behind it.
  few,
  by_turns,  // the next place
  ahead,     // the same, and as many pieces may be outstanding as all slots have places, and there are headers
};

struct Slot {
  std::byte* data = nullptr;
  Bytes capacity;
  std::uint32_t place = 0;  // of data; for its header
  std::uint32_t next = 0;   // of the next one, if that is filled alike; for its header, too
};

struct FullSlot {
  const std::byte* data = nullptr;
  SlotHeader header;
};

class SlotRingWriter {
 public:
  // Formats the memory; `ring_bell` is called after each publication. `lap`: where a slot takes several of the pieces that are wanted, they
  // take turns, so that a processor comes back to a line after about so many bytes (memory/host/handing_copy.hpp says why).
  SlotRingWriter(std::byte* memory, SlotRingLayout layout, std::function<void()> ring_bell, Bytes lap = {});
  // The next free slot, for `wanted` bytes, or all that it takes; none if all that the filling has are filled or being filled, or if others are to be released
  // first. Who is not `ahead` has one slot for each number; who is, has so until all that lies elsewhere in the slots has been released.
  // `most`: no more than so many pieces are outstanding then, or one in each slot, where those are more.
  std::optional<Slot> start_next(Bytes wanted, Filling filling = Filling::by_turns,
                                 std::uint64_t most = SlotRingLayout::kHeaders);
  std::optional<Slot> start_next() { return start_next(layout_.slot_bytes); }
  // The oldest started slot has its bytes: shows it to the reader.
  void publish_oldest(const SlotHeader& header);
  // Slots started and not yet published.
  std::uint64_t pending() const { return started_ - published_; }
  std::span<const std::byte> memory() const { return {memory_, layout_.total().value}; }
  // Was the last start_next() refused, and would it find a slot now? Then the refusal is forgotten; for Path::sleep().
  bool news();
  Bytes slot_bytes() const { return layout_.slot_bytes; }
  // Have all that were started been released?
  bool is_empty() const { return shared_->released.load(std::memory_order_relaxed) == started_; }
  // So many pieces of that size fill all places that they take turns in.
  std::uint64_t round_of(Bytes wanted) const;
  // Do pieces of so many bytes, one in each slot, go round no more than the lap?
  bool within_lap(Bytes piece) const { return piece <= layout_.slot_bytes && layout_.slots * piece.value <= lap_.value; }

 private:
  // How pieces go round: in slots, and the places of each.
  struct Round {
    std::uint64_t used = 0;
    std::uint64_t piece = 0;
    std::uint64_t places = 0;
    bool operator==(const Round&) const = default;
  };
  Round round(std::uint64_t piece, Filling filling) const;
  std::uint64_t place_of(std::uint64_t n, const Round& round) const;
  std::uint64_t places_for(std::uint64_t piece) const;
  std::byte* memory_;
  SlotRingLayout layout_;
  SlotRingShared* shared_;
  std::function<void()> ring_bell_;
  Bytes lap_;
  std::uint64_t started_ = 0;
  std::uint64_t published_ = 0;
  std::uint64_t released_seen_ = 0;
  Round round_;                    // of the last one started
  std::uint64_t alike_since_ = 0;  // the first number since which all were started so
  std::uint64_t wanted_ = 0;       // so many are to be released before one more is started
  bool refused_ = false;
};

class SlotRingReader {
 public:
  SlotRingReader(std::byte* memory, SlotRingLayout layout, std::function<void()> ring_bell);
  // The next published slot not yet taken.
  std::optional<FullSlot> take_next();
  // The oldest taken slot has been read: gives it back to the writer.
  void release_oldest();
  std::uint64_t pending() const { return taken_ - released_; }
  std::span<const std::byte> memory() const { return {memory_, layout_.total().value}; }
  // Was the last take_next() refused, and would it find a slot now? Then the refusal is forgotten; for Path::sleep().
  bool news();

 private:
  void fetch_next(std::uint64_t place);
  bool is_within(std::uint64_t place) const { return place < room_; }
  std::byte* memory_;
  SlotRingLayout layout_;
  SlotRingShared* shared_;
  const std::uint64_t room_;  // of all slots
  std::function<void()> ring_bell_;
  std::uint64_t taken_ = 0;
  std::uint64_t released_ = 0;
  std::uint64_t published_seen_ = 0;
  bool refused_ = false;
};

}  // namespace ist
