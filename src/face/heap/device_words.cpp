#include "face/heap/device_words.hpp"

#include <cstring>
#include <thread>

namespace ist {

Status can_change_on_device(CollectiveHeap& heap, Pe pe) {
  if (heap.world().kinds().find(heap.memory().shape().kind)->word_changes() == nullptr)
    return {IST_ERR_UNSUPPORTED, "this device cannot change a word as a whole; use one in a heap of IST_KIND_HOST"};
  return heap.memory().space().changes_words_of(heap.rank_of(pe));
}

Result<std::uint64_t> change_on_device(CollectiveHeap& heap, const PlaceInHeap& place, Bytes size,
                                       const WordChange& change) {
  World& world = heap.world();
  const KindId id = heap.memory().shape().kind;
  MemoryKind& kind = *world.kinds().find(id);
  IST_TRY(can_change_on_device(heap, place.pe));
  const auto block = world.pool().take_locked(Bytes{sizeof(std::uint64_t)}, id);
  if (!block.ok()) return block.status();
  auto ticket = kind.word_changes()->change(change, heap.memory().piece(place.pe, place.offset, size),
                                            host_piece(block->data(), Bytes{sizeof(std::uint64_t)}));
  if (!ticket.ok()) return ticket.status();
  for (;;) {
    const auto over = kind.finished(*ticket);
    if (!over.ok()) return over.status();
    if (*over) break;
    {
      const std::lock_guard lock(world.engine().lock());
      world.engine().progress();
    }
    std::this_thread::yield();
  }
  std::uint64_t before = 0;
  std::memcpy(&before, block->data(), sizeof before);
  return before;
}

}  // namespace ist
