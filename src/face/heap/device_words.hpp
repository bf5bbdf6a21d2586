// Words of a heap or window on a device, which the device itself changes: a processor's change would not be atomic with those of kernels.
//
// Who calls this : one_sided_copies.hpp, one_sided_words.hpp.
// Threads        : any; the caller waits for its own.
// Ownership      : none.
// Errors         : IST_ERR_UNSUPPORTED where no atomic operation crosses the link to that PE; the device's.
#pragma once

#include "face/message/world.hpp"
#include "memory/word_changes.hpp"

namespace ist {

// Are there any that can?
Status can_change_words(const World& world, KindId kind);
// Why no word of that PE's part can be changed; ok where one can.
template <class Memory>
Status can_change_on_device(Memory& memory, Pe pe) {
  IST_TRY(can_change_words(memory.world(), memory.kind()));
  return memory.changes_words_of(pe);
}
// What was there. The word has 4 or 8 bytes, at a multiple of its size.
Result<std::uint64_t> change_on_device(World& world, const Piece& word, const WordChange& change);

}  // namespace ist
