// A crew of a single thread, for kernels that are played on the processor.
//
// Who calls this : fake_places.hpp, meeting_protocol_test.cpp.
// Threads        : one.
// Ownership      : plain data.
// Errors         : none.
#pragma once

#include <cstdint>

namespace fake {

struct Crew {
  unsigned thread = 0;
  unsigned threads = 1;
  unsigned block = 0;
  unsigned blocks = 1;
  void barrier() const {}
  void sync() const {}
  bool any(bool mine) const { return mine; }
  std::uint64_t first(std::uint64_t value) const { return value; }
};

}  // namespace fake
