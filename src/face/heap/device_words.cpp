#include "face/heap/device_words.hpp"

#include <cstring>

#include "request/wait.hpp"

namespace ist {

Status can_change_words(const World& world, KindId kind) {
  if (world.kinds().find(kind)->word_changes() != nullptr) return {};
  return {IST_ERR_UNSUPPORTED, "this device cannot change a word as a whole; use one in memory of IST_KIND_HOST"};
}

Result<std::uint64_t> change_on_device(World& world, const Piece& word, const WordChange& change) {
  MemoryKind& kind = *world.kinds().find(word.kind);
  const auto block = world.pool().take_locked(Bytes{sizeof(std::uint64_t)}, word.kind);
  if (!block.ok()) return block.status();
  auto ticket = kind.word_changes()->change(change, word, host_piece(block->data(), Bytes{sizeof(std::uint64_t)}));
  if (!ticket.ok()) return ticket.status();
  IST_TRY(wait_for_ticket(world.engine(), *ticket));
  std::uint64_t before = 0;
  std::memcpy(&before, block->data(), sizeof before);
  return before;
}

}  // namespace ist
