#include "memory/refused_rows.hpp"

#include <string>
#include <thread>

#include "base/log.hpp"

namespace ist {
namespace {

void wait_for(Ticket& ticket) {
  for (;;) {
    const auto over = ticket.empty() ? Result<bool>{true} : ticket.kind()->finished(ticket);
    if (!over.ok() || *over) return;
    std::this_thread::yield();
  }
}

Result<Ticket> through(MemoryKind& kind, const PackWork& work, const Piece& block, const Ticket& after) {
  Packing& packing = *kind.packing();
  PackWork inside = work.in(block);
  inside.rows = false;
  auto first = work.unpacks ? kind.copy(block, work.packed, after) : packing.pack_bytes(inside, after);
  if (!first.ok()) return first;
  auto second = work.unpacks ? packing.pack_bytes(inside, *first) : kind.copy(work.packed, block, *first);
  if (!second.ok()) wait_for(*first);
  return second;
}

}  // namespace

const char* RefusedRows::why() {
  if (!refused_) return nullptr;
  let_go_of_blocks();
  return "the driver refused copies of rows to or from the host before";
}

void RefusedRows::let_go_of_blocks() {
  const std::lock_guard lock(mutex_);
  std::erase_if(blocks_, [](Block& block) {
    const auto over = block.used.kind()->finished(block.used);
    if (over.ok() && !*over) return false;
    block.memory.release_later();
    return true;
  });
}

void RefusedRows::clear() {
  for (const Block& block : blocks_) block.memory.release_later();
  blocks_.clear();
}

// A copy of nothing behind the last step is over when the block is free.
void RefusedRows::keep(MemoryKind& kind, const Piece& memory, const PackWork& work, Ticket& last) {
  auto used = kind.copy(work.packed.part(Offset{}, Bytes{}), memory.part(Offset{}, Bytes{}), last);
  if (!used.ok() || used->empty()) {
    wait_for(last);
    return kind.release_later(memory);
  }
  const std::lock_guard lock(mutex_);
  blocks_.push_back({Allocated{kind, memory}, std::move(*used)});
}

Result<Ticket> RefusedRows::by_block(MemoryKind& kind, const PackWork& work, const Ticket& after) {
  if (work.memory.kind != kind.id() || work.packed.kind != KindId::host || kind.packing() == nullptr)
    return Status{IST_ERR_ARGUMENT, "a block for " + std::to_string(work.to - work.from) +
                                        " bytes of rows was asked for, which are not of " + std::string{kind.name()} +
                                        " memory, or whose packed bytes are not the host's"};
  let_go_of_blocks();
  auto made = kind.allocate_beside(work.memory, work.packed.size);
  if (!made.ok()) return made.status();
  Piece block = made->part(Offset{}, work.packed.size);
  block.ready = true;  // whatever queue it came with
  auto moved = through(kind, work, block, after);
  if (moved.ok())
    keep(kind, *made, work, *moved);
  else
    kind.release_later(*made);
  return moved;
}

Result<Ticket> RefusedRows::instead(MemoryKind& kind, const PackWork& work, const Ticket& after, const Status& refused) {
  const bool of_host = work.memory.kind == KindId::host;
  auto moved = of_host ? Result<Ticket>{refused} : by_block(kind, work, after);
  if (!of_host && !moved.ok()) return refused;
  refused_ = true;
  log::once(log::Level::info, "rows of the host",
            "layouts go between " + std::string{kind.name()} +
                " devices and the host by blocks and kernels, and not in rows: " + refused.text());
  return moved;
}

}  // namespace ist
