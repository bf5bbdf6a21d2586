// Which bytes of a symmetric heap are free: the same on every PE, because it follows from the calls alone.
//
// Who calls this : symmetric_heap.hpp, with what all PEs have agreed on; tests/unit.
// Threads        : one at a time.
// Ownership      : of numbers; it never touches the memory.
// Errors         : IST_ERR_MEMORY with what was asked for, what is free and the largest block; IST_ERR_ARGUMENT for an offset where
//                  nothing was allocated.
//
// Best fit, the first of equals: a heap that lives long keeps its large blocks, and neighbours join when they are freed.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "base/status.hpp"
#include "base/units.hpp"

namespace ist {

class OffsetAllocator {
 public:
  // What is allocated begins where a line of memory does, and nothing else lies in its lines: PEs write what is theirs there.
  static constexpr std::uint64_t kLine = 64;

  // Between the two, whole lines.
  OffsetAllocator(Offset begin, Offset end);
  // At least `size` bytes, 0 is taken for 1, at a multiple of `alignment`, a power of two.
  Result<Offset> allocate(Bytes size, std::uint64_t alignment = kLine);
  // What it gave is free again; and how many bytes, whole lines, that were.
  Result<Bytes> release(Offset offset);
  // There is more behind the end; `apart`: nothing lies on both sides of the old one.
  void grow(Offset end, bool apart = false);

  Bytes free() const { return free_bytes_; }
  Bytes largest() const;
  // So many bytes were allocated there; 0: nothing begins there.
  Bytes size_at(Offset offset) const;

 private:
  void add_free(std::uint64_t begin, std::uint64_t length);
  std::map<std::uint64_t, std::uint64_t> free_;  // offset and length; no two touch
  std::map<std::uint64_t, std::uint64_t> used_;
  std::set<std::uint64_t> seams_;  // where free blocks do not join
  std::uint64_t end_;
  Bytes free_bytes_;
};

}  // namespace ist
