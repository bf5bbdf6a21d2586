// What comes is combined with what is here, element by element, while it comes: its bytes are read once, where they arrive.
//
// Who calls this : collective/ writes it down; the engine and the ring's receiver run it on what comes.
// Threads        : under the world's lock.
// Ownership      : views; both vectors stay until all has come.
// Errors         : none; what it is given is applicable (memory/reduction.hpp).
#pragma once

#include "memory/reduction.hpp"

namespace ist {

// to = came (op) here, or here (op) came. On the processor.
struct Fold {
  Reduction reduction = Reduction::sum;
  ist_type type = IST_BYTE;
  std::byte* to = nullptr;
  const std::byte* here = nullptr;  // as long as what comes; may be `to` itself, and overlaps it in no other way
  Bytes size;
  bool came_left = true;

  // Whole elements?
  bool takes(std::uint64_t from, std::uint64_t bytes) const;
  // What belongs at `from`. `came` may lie where the result goes, where it is the right operand.
  void operator()(std::uint64_t from, const std::byte* came, std::uint64_t bytes) const;
};

}  // namespace ist
