// A barrier of words in memory that all PEs map: each writes the number of the barrier into a word of its own at every other PE, and
// waits for the words at itself. Nobody looks at memory of another PE, no word has two writers, and there is one hop.
//
// Who calls this : face/heap/collective_heap.cpp; tests/stress. Model: models/heap_barrier.pml.
// Threads        : one of each PE at a time.
// Ownership      : looks at the words, zero at first, which outlive it.
// Errors         : none: who waits asks arrived(), and finds out for himself why somebody does not come.
//
// Numbers grow and words are never reset, so that a PE that is already in the next barrier harms none that has not yet seen this one:
// a word then says more than is waited for (guard AT_LEAST). What a PE did before its check_in() is there for whoever saw all words: the
// store releases and the look acquires, once for each pair, since everybody waits for everybody (guards PUSH_LAST, EVERYBODY).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/units.hpp"

namespace ist {

class FlagBarrier {
 public:
  // A line for each, so that a word that comes takes nobody else's line away.
  static constexpr std::uint64_t kLine = 64;
  static constexpr Bytes size(int pes) { return Bytes{kLine * static_cast<std::uint64_t>(pes)}; }

  // The words at PE p begin p strides behind `base`.
  FlagBarrier(std::byte* base, Bytes stride, Pe pe, int pes) : base_(base), stride_(stride), pe_(pe), pes_(pes) {}

  void check_in() {
    ++number_;
    // Its own word last: nobody waits for that. The others beginning with the next PE, so that not all write at PE 0 first.
    for (int i = 1; i <= pes_; ++i) word(Pe{(pe_.value + i) % pes_}, pe_).store(number_, std::memory_order_release);
  }
  bool arrived(Pe other) const { return word(pe_, other).load(std::memory_order_acquire) >= number_; }
  // The first that has not come, from `from` on; pes: all have.
  int first_missing(int from = 0) const {
    while (from < pes_ && arrived(Pe{from})) ++from;
    return from;
  }

 private:
  std::atomic_ref<std::uint64_t> word(Pe at, Pe of) const {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(base_ + static_cast<std::uint64_t>(at.value) * stride_.value +
                                                             static_cast<std::uint64_t>(of.value) * kLine));
  }
  std::byte* base_;
  Bytes stride_;
  Pe pe_;
  int pes_;
  std::uint64_t number_ = 0;
};

}  // namespace ist
