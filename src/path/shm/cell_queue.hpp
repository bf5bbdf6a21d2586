// A queue of cells that many processes fill and one empties, after Nemesis (Buntinas, Mercier, Gropp 2006).
//
// Who calls this : shm_path: for arrivals, and with the roles swapped for cells that come back.
// Threads        : any number of writers, one reader, in different processes; no lock, and nobody waits for another.
// Ownership      : links cells by name, because each process maps them elsewhere; each belongs to whoever took it last.
// Errors         : none. A writer that dies between its two steps leaves a gap, beyond which nothing is ever seen; the
//                  reader only finds nothing, and learns of the death from the abort board.
// Model          : models/cell_queue.pml, and models/leaving.pml for writers that end.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/wire.hpp"

namespace ist {

// (place of the owner + 1) << 32 | index; 0 names no cell.
using CellName = std::uint64_t;
constexpr CellName kNoCell = 0;
constexpr CellName cell_name(std::size_t place, std::uint64_t index) { return (std::uint64_t{place} + 1) << 32 | index; }
constexpr std::size_t place_of(CellName name) { return static_cast<std::size_t>((name >> 32) - 1); }
constexpr std::uint64_t index_of(CellName name) { return name & 0xffffffffU; }

// In the owner's segment; the cell's bytes are elsewhere, page-aligned.
struct alignas(64) CellHeader {
  std::atomic<CellName> next;
  std::uint64_t length;
  Envelope envelope;
};
static_assert(sizeof(CellHeader) == 64);

// Where this process has mapped everybody's cells.
class CellTable {
 public:
  struct Cells {
    CellHeader* headers = nullptr;
    std::byte* data = nullptr;
    std::uint64_t stride = 0;
  };
  explicit CellTable(std::vector<Cells> by_place) : by_place_(std::move(by_place)) {}
  CellHeader& header(CellName name) const { return by_place_[place_of(name)].headers[index_of(name)]; }
  std::byte* data(CellName name) const {
    const Cells& cells = by_place_[place_of(name)];
    return cells.data + index_of(name) * cells.stride;
  }

 private:
  std::vector<Cells> by_place_;
};

// In the reader's segment. Writers swap the tail; head is written by them only into an empty queue.
struct CellQueueShared {
  alignas(128) std::atomic<CellName> head;
  alignas(128) std::atomic<CellName> tail;
};

void put_cell(CellQueueShared& queue, const CellTable& table, CellName cell);

class CellQueueReader {
 public:
  CellQueueReader(CellQueueShared* queue, const CellTable* table) : queue_(queue), table_(table) {}
  // The oldest cell, or kNoCell. With nothing new, one load of a line that stays in the reader's cache.
  CellName take() {
    const CellName taken = take_first();
    if (taken == last_) last_ = kNoCell;
    return taken;
  }
  // Would take() give a cell now?
  bool ready() const {
    if (first_ == kNoCell) return queue_->head.load(std::memory_order_relaxed) != kNoCell;
    return table_->header(first_).next.load(std::memory_order_relaxed) != kNoCell ||
           queue_->tail.load(std::memory_order_relaxed) == first_;
  }
  // From now on has_gap() is about the cells whose put_cell() happened before this call. Acquire pairs with the exchange there: none of
  // them lies behind what is the tail now.
  void mark() { last_ = queue_->tail.load(std::memory_order_acquire); }
  // After take() gave nothing: does one of those lie behind a writer that stands between its two steps? Guard GAP of models/leaving.pml.
  bool has_gap() const { return last_ != kNoCell; }

 private:
  CellName take_first();
  CellQueueShared* queue_;
  const CellTable* table_;
  // The oldest cell once the reader has seen it (Nemesis: the shadow head): private, so that following the chain does not
  // touch the line that writers write.
  CellName first_ = kNoCell;
  CellName last_ = kNoCell;  // until take() gives it: what was the tail at mark()
};

}  // namespace ist
