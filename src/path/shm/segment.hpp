// What one rank shows to the others of its host: doorbell, queue of arrivals, slots of every pair, lanes of collective calls, its own cells.
//
// Who calls this : shm_path; one segment per local rank, each mapped by all of them.
// Threads        : set-up by one thread; then every word says who writes it.
// Ownership      : owns the mapping; pointers into it live as long as the segment.
// Errors         : IST_ERR_BOOT if a peer's segment is of another version or size, with both.
#pragma once

#include <memory>

#include "base/file_descriptor.hpp"
#include "path/invitation.hpp"
#include "path/shm/cell_queue.hpp"
#include "path/shm/doorbell.hpp"
#include "path/shm/lane.hpp"
#include "path/shm/pair_slots.hpp"

namespace ist {

// Everything from which sizes and places follow. Cells may differ from rank to rank: senders fill their own.
struct SegmentShape {
  std::uint32_t ranks = 0;  // of this host
  std::uint32_t cells = 0;
  std::uint64_t cell_bytes = 0;
  bool operator==(const SegmentShape&) const = default;

  PairSlotShape pair_slots() const { return pair_slot_shape(ranks, Bytes{cell_bytes}); }
  std::uint64_t cell_stride() const;  // whole pages
  Offset pairs() const;
  Offset cell_headers() const;
  Offset slots(std::size_t sender) const;  // page-aligned
  Offset lanes() const;                    // page-aligned
  Offset cell_data() const;                // page-aligned
  Bytes total() const;
};

// Between the owner, who receives, and one sender.
struct PairShared {
  alignas(128) std::atomic<std::uint64_t> consumed;    // PairConsumed; written by the owner
  alignas(128) std::atomic<std::uint32_t> rings_made;  // counted by the sender once it has sent the ring's descriptor
  std::atomic<std::uint32_t> heap_shown;               // written once it has sent that of its heap
  std::atomic<std::uint32_t> withdrawn;                // of the sender's offers (Offer::withdrawn), counted by it
  InvitationBoard invitation;                          // of the owner's, to the sender
};

class Segment {
 public:
  struct Shared {
    static constexpr std::uint32_t kMagic = 0x49537367;
    static constexpr std::uint32_t kVersion = 20;
    alignas(128) std::uint32_t magic;
    std::uint32_t version;
    SegmentShape shape;
    std::uint32_t place;      // of the owner among the ranks of this host
    std::uint32_t may_sleep;  // must the owner's doorbell be rung?
    std::uint64_t proof;      // a word to be read in the owner's own memory, and where it lies there
    std::uint64_t proof_address;
    std::atomic<std::uint64_t> heap_start;  // of the owner's heap in its own memory; written before it is shown to anybody
    std::atomic<std::uint64_t> heap_length;
    alignas(128) std::atomic<std::uint32_t> left;  // 0: here; 1: left; more: left, and knew of the death of rank word - 2
    alignas(128) Doorbell bell;
    CellQueueShared arrivals;
    CellQueueShared free_cells;
  };

  // This rank's own, with all its cells free. `place`: position among the ranks of this host.
  static Result<Segment> create(const SegmentShape& shape, std::size_t place, bool may_sleep);
  // A peer's; its cells may have another shape than ours.
  static Result<Segment> open(FileDescriptor descriptor, std::uint32_t ranks, std::size_t place);
  // The same mapping once more, for several ranks inside one process.
  Segment share() const { return Segment{memory_, shape_}; }

  int descriptor() const { return memory_->descriptor(); }
  const SegmentShape& shape() const { return shape_; }
  Shared& shared() const { return *shared_; }
  PairShared& pair(std::size_t sender) const { return at<PairShared>(shape_.pairs())[sender]; }
  PairSlot* slots(std::size_t sender) const { return at<PairSlot>(shape_.slots(sender)); }
  // The owner's; nothing in them is memory before somebody writes there.
  Lane* lanes() const { return at<Lane>(shape_.lanes()); }
  CellTable::Cells cells() const;
  std::byte* cell_data() const { return memory_->data() + shape_.cell_data().value; }
  Bytes cell_data_size() const { return shape_.total() - Bytes{shape_.cell_data().value}; }

 private:
  Segment(std::shared_ptr<SharedMemory> memory, const SegmentShape& shape);
  template <class T>
  T* at(Offset offset) const {
    return reinterpret_cast<T*>(memory_->data() + offset.value);
  }
  std::shared_ptr<SharedMemory> memory_;
  SegmentShape shape_;
  Shared* shared_;
};

}  // namespace ist
