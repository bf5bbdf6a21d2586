// The way to one peer of this host: slots and queue in the peer's segment, cells of our own, a ring per direction.
//
// Who calls this : as Link; shm_path makes one per peer and asks it for news before it sleeps.
// Threads        : the path's one thread.
// Ownership      : owns the two rings; looks at the path's segments.
// Errors         : rings: what the kernel or the peer's socket said, with the peer's rank.
#pragma once

#include <memory>
#include <vector>

#include "path/path.hpp"
#include "path/shm/peer_memory.hpp"
#include "path/shm/segment.hpp"
#include "path/surroundings.hpp"

namespace ist {

// The cells of this rank, one pool for all its links. The cell that came back last goes out first: its bytes are still in
// the caches of both sides, and a rank that has few messages under way touches few pages. (Taking them in the queue's order
// walks through all of them: 64 KiB between two host buffers then took 25 us instead of 10, on an H200 machine's EPYC host,
// 2026-11-21, most of it page faults.)
class CellPool {
 public:
  CellPool(const Segment& mine, const CellTable& table)
      : place_(mine.shared().place),
        shared_(mine.shared().free_cells),
        free_(&shared_, &table),
        table_(table),
        sent_to_(mine.shape().cells) {
    spare_.reserve(mine.shape().cells);
  }
  std::optional<Cell> take() {
    collect();
    if (spare_.empty()) reclaim();
    refused_ = spare_.empty();
    if (refused_) return std::nullopt;
    const CellName name = spare_.back();
    spare_.pop_back();
    return Cell{table_.data(name), name};
  }
  void give_back(const Cell& cell) { spare_.push_back(cell.id); }
  // The cell is about to be posted to the rank with that segment, which is to bring it back.
  void sending(const Cell& cell, const Segment& to) { sent_to_[index_of(cell.id)] = &to; }
  // Was the last take() refused, and would it find a cell now? Then the refusal is forgotten.
  bool news();

 private:
  void collect() {
    for (CellName back = free_.take(); back != kNoCell; back = free_.take()) {
      sent_to_[index_of(back)] = nullptr;
      spare_.push_back(back);
    }
  }
  // Takes back cells that lie unread with ranks that have left.
  void reclaim();
  bool nobody_touches(CellName name, const Segment& holder) const;

  const std::size_t place_;  // of this rank
  CellQueueShared& shared_;
  CellQueueReader free_;
  std::vector<CellName> spare_;  // free cells already taken from the queue
  const CellTable& table_;
  std::vector<const Segment*> sent_to_;  // by index: who has the cell; null: nobody
  bool refused_ = false;
};

class ShmLink final : public Link {
 public:
  struct Ends {
    const Surroundings* surroundings;
    const Segment* mine;
    const Segment* peer;
    std::size_t my_place;
    std::size_t peer_place;
    CellPool* pool;
    const CellTable* table;
    const bool* lock_rings;  // was lock_memory() called?
  };
  explicit ShmLink(const Ends& ends);
  ~ShmLink() override;
  ShmLink(const ShmLink&) = delete;
  ShmLink& operator=(const ShmLink&) = delete;

  bool post(const Envelope& envelope, std::span<const std::byte> payload) override;
  std::optional<Cell> take_cell() override { return ends_.pool->take(); }
  void post_cell(const Cell& cell, const Envelope& envelope, Bytes length) override;
  void return_cell(const Cell& cell) override { ends_.pool->give_back(cell); }
  Result<SlotRingWriter*> outgoing() override;
  void drop_outgoing() override;
  Result<SlotRingReader*> incoming() override;

  bool show_heap() override;
  std::uint32_t offers_withdrawn() const override {
    return ends_.peer->pair(ends_.my_place).withdrawn.load(std::memory_order_relaxed);
  }
  void withdraw_offer() override;
  bool sees(const Offer& offer, Bytes size) override;
  const std::byte* seen_at(const Offer& offer) override;
  bool is_still_offered(const Offer& offer) override;
  bool reads_peer() override;
  bool could_read_peer() override;
  Status why_not_read() override { return reads_peer() ? Status{} : unreadable_; }
  bool lends() const override { return true; }
  Result<bool> read_peer(std::byte* into, const Offer& offer, Offset from, Bytes size) override;
  bool read_together(std::span<const OfferRead> reads) override;

  // After something was published for the peer: rings its doorbell, if it is one that may sleep.
  void ring() const override {
    if (bell_) bell_->ring();
  }
  // Page-locks the rings that exist for every kind in use; tells the first error, after trying all.
  Status lock_rings();
  // Could something that this link refused be done now, or has the peer published in its ring? Forgets what it reports.
  bool news();

 private:
  Status lock(SharedMemory& ring, bool& locked) const;
  void lock_or_warn(SharedMemory& ring, bool& locked) const;
  bool is_withdrawn(const Offer& offer) const;
  const std::byte* in_peers_heap(std::uint64_t address) const;  // by the peer's own addresses
  bool in_heap(std::uint64_t address, std::uint64_t size) const;
  bool open_heap(std::uint64_t end);
  Status map_heap(std::uint64_t end);
  Result<SlotRingReader*> take_ring();
  Rank peer_rank() const { return ends_.surroundings->local[ends_.peer_place]; }

  Ends ends_;
  Doorbell* bell_;  // null: the peer never sleeps
  PairSlotWriter slots_;
  std::optional<SharedMemory> outgoing_memory_;
  std::optional<SharedMemory> incoming_memory_;
  std::optional<SlotRingWriter> outgoing_;
  std::optional<SlotRingReader> incoming_;
  bool outgoing_locked_ = false;
  bool incoming_locked_ = false;
  bool incoming_refused_ = false;
  std::uint32_t rings_made_ = 0;            // by this side
  std::uint32_t rings_lost_ = 0;            // of the peer's, the last one included; all of them until it has made one more
  bool heap_shown_ = false;                 // ours
  bool heap_hidden_ = false;                // and will be
  bool heap_failed_ = false;                // to see the peer's
  std::optional<SharedMemory> peers_heap_;  // for reading
  bool memory_tried_ = false;
  bool refused_ = false;  // which is to be told
  std::optional<PeerMemory> memory_;
  Status unreadable_;  // without memory_: why
};

}  // namespace ist
