// Kinds whose devices change a word of memory at once and as a whole, for whoever else changes it, on whichever device.
//
// Who calls this : face/heap, for words of symmetric heaps on devices. Who implements it: cuda/.
// Threads        : any.
// Ownership      : none; the pieces are views.
// Errors         : returned by change(), as by MemoryKind::copy().
#pragma once

#include <cstdint>

#include "memory/memory_kind.hpp"

namespace ist {

struct WordChange {
  // store: needs no atomic operation that crosses the link; what was there is not told
  enum class What : std::uint32_t { fetch, set, add, swap, bitwise_and, bitwise_or, bitwise_xor, compare_swap, store };
  What what = What::fetch;
  std::uint64_t operand = 0;   // of a word of 4 bytes the lower half
  std::uint64_t expected = 0;  // compare_swap: what the word has to be
};

class WordChanges {
 public:
  virtual ~WordChanges() = default;
  // Loads what it takes on that device, which may wait for all that runs there. What is wrong change() tells.
  virtual void load_words(int device) = 0;
  // Starts it on the device of `word`, which has 4 or 8 bytes at a multiple of its size; what was there comes to `before`, 8 bytes
  // page-locked for this kind at a multiple of 8. Ordered as a whole: what the device saw and did before is before it, and what follows
  // is behind. Where it returns an error nothing touches the pieces any more.
  virtual Result<Ticket> change(const WordChange& change, const Piece& word, const Piece& before) = 0;
  // The same for whoever does not ask what was there, behind a copy of this kind that is under way (`after`), in its order: who finds the
  // word changed finds the bytes. An empty ticket: it cannot be put there, and nothing was started; the copy has to be waited for first.
  virtual Result<Ticket> change_behind(const WordChange& change, const Piece& word, const Ticket& after) = 0;
  // Would that device's changes of words in host memory be atomic with those of processors, as the driver says? For people: nothing is
  // built on it.
  virtual bool reaches_processors_words(int) const { return false; }
};

}  // namespace ist
