// Symmetric globals: the program's global and static variables, in a host heap of their own, so that every PE reaches every other's.
//
// Who calls this : face/shmem, at start and end, and where it is given an address.
// Threads        : create() and end() one at a time; the rest any.
// Ownership      : owns the heap; the variables are the program's, and private memory again with what was in them when it ends or goes.
// Errors         : of collective calls: the same at every PE.
//
// An address of a variable becomes one in the heap, with which the heap's calls do what is wanted: ist_heap_put(globals.heap(),
// globals.in_heap(&x), ...). Both are addresses of the same memory. Where PEs run different programs nothing is symmetric, and why()
// says so; that is no error. Variables of shared libraries, those of single threads, and constants never are.
#pragma once

#include <isthmus/heap.h>

#include <array>
#include <memory>
#include <span>
#include <string>

#include "base/status.hpp"
#include "face/shmem/executable.hpp"

namespace ist {

class SymmetricGlobals {
 public:
  struct Segment {
    std::byte* begin = nullptr;   // the first variable
    Bytes bytes;                  // to the end of the last one
    std::byte* memory = nullptr;  // where `begin` is in the own part of the heap
  };
  // Collective. PE 0 says why() in the log, once.
  static Result<std::unique_ptr<SymmetricGlobals>> create(ist_comm comm);
  // Without waiting for anybody.
  ~SymmetricGlobals();
  SymmetricGlobals(const SymmetricGlobals&) = delete;
  SymmetricGlobals& operator=(const SymmetricGlobals&) = delete;
  // Collective, and the last call: what other PEs have done to the variables is in them.
  Status end();

  bool symmetric() const { return why_.empty(); }
  const std::string& why() const { return why_; }
  // Null where there are no variables, or none that are symmetric.
  ist_heap heap() const { return heap_; }
  // From PE p's copy to that of p + 1, in this process.
  Bytes stride() const { return Bytes{view_.stride}; }
  std::span<const Segment> segments() const { return std::span{segments_}.first(count_); }

  // That variable in the own part of the heap; null: none, or not `bytes` of it.
  void* in_heap(const void* address, std::uint64_t bytes = 1) const {
    for (std::size_t i = 0; i < count_; ++i) {
      const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - segments_[i].begin);
      if (offset < segments_[i].bytes.value && bytes <= segments_[i].bytes.value - offset) [[likely]]
        return segments_[i].memory + offset;
    }
    return nullptr;
  }
  // That PE's copy, as this process reaches it, the own one where it is; null as above, and for a PE that there is none.
  void* at_peer(const void* address, int pe) const {
    void* const own = in_heap(address);
    if (own == nullptr || pe < 0 || pe >= view_.pes) return nullptr;
    if (pe == view_.pe) return const_cast<void*>(address);
    return static_cast<std::byte*>(own) + (pe - view_.pe) * static_cast<std::ptrdiff_t>(view_.stride);
  }

 private:
  SymmetricGlobals();
  Status open(ist_comm comm);
  Status share(const Executable& program, ist_comm comm, int pes);

  const int owner_;  // process: a forked child's copy must not end
  ist_heap heap_ = IST_HEAP_NULL;
  ist_team_view view_{};
  std::array<Segment, ExecutableCard::kMostSegments> segments_{};
  std::size_t count_ = 0;
  std::string why_;
};

}  // namespace ist
