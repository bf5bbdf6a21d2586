// The name of an operation under way.
//
// Who calls this : request/ gives them out; face/ and collective/ keep them.
// Threads        : values.
// Ownership      : none: one whose operation has been taken names nothing any more, and never another one.
// Errors         : none.
#pragma once

#include <cstdint>

namespace ist {

// Index and generation: 20 and 44 bits. The lower 32 bits travel in envelopes.
struct OperationId {
  std::uint64_t value = 0;
  std::uint32_t index() const { return static_cast<std::uint32_t>(value & 0xfffff); }
  std::uint32_t wire() const { return static_cast<std::uint32_t>(value); }
};

}  // namespace ist
