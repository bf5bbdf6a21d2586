#include "path/shm/cell_queue.hpp"

namespace ist {

void put_cell(CellQueueShared& queue, const CellTable& table, CellName cell) {
  // Guard CLEAR_NEXT: a cell comes with the link of its last journey.
  table.header(cell).next.store(kNoCell, std::memory_order_relaxed);
  // Guard SWAP: one exchange decides the order of all writers. Release: whoever swaps after us and writes our `next` does so
  // after the line above. Acquire: the same seen from us, and our store to `head` below comes after the reader has emptied
  // it.
  const CellName before = queue.tail.exchange(cell, std::memory_order_acq_rel);
  // Release in both: the reader that follows the link sees envelope, length and bytes of the cell, and its cleared link.
  if (before == kNoCell)
    queue.head.store(cell, std::memory_order_release);
  else
    table.header(before).next.store(cell, std::memory_order_release);
}

CellName CellQueueReader::take_first() {
  if (first_ == kNoCell) {
    first_ = queue_->head.load(std::memory_order_acquire);
    if (first_ == kNoCell) return kNoCell;
    // Guard EMPTY_HEAD: from here on `head` belongs to whoever next finds the queue empty. That writer has seen the tail
    // which the exchange below releases, so that its store to `head` is the later one.
    queue_->head.store(kNoCell, std::memory_order_relaxed);
  }
  const CellName taken = first_;
  CellName next = table_->header(taken).next.load(std::memory_order_acquire);
  if (next == kNoCell) {
    // Guard LAST: the cell may leave only if nobody will write its link any more: either it is still the tail, and then the
    // queue becomes empty in the same step, or the link has been written. Nemesis waits for the link here; the writer may be
    // dead or not running, so that we come back later instead.
    CellName expected = taken;
    if (queue_->tail.compare_exchange_strong(expected, kNoCell, std::memory_order_acq_rel, std::memory_order_relaxed)) {
      first_ = kNoCell;
      return taken;
    }
    next = table_->header(taken).next.load(std::memory_order_acquire);
    if (next == kNoCell) return kNoCell;
  }
  first_ = next;
  return taken;
}

}  // namespace ist
