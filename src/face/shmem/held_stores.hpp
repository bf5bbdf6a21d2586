// Stores of other threads into pages that are just being replaced wait until they have been, and then go to what is there.
//
// Who calls this : shared_variables.cpp, around every part that it moves.
// Threads        : one object at a time. Its thread gets no signals, and between hold() and what ends it does nothing but replace the
//                  pages: even a first call of some function may store among the program's variables.
// Ownership      : a handler of SIGSEGV, which stays: a thread may hear late of a store that was held. Faults that are none of ours go
//                  to the handler that was there before.
// Errors         : IST_ERR_SYSTEM, with nothing held.
//
// What a system call of another thread would write there fails with EFAULT instead of waiting, and a thread that blocks SIGSEGV ends.
#pragma once

#include <signal.h>

#include <span>

#include "base/status.hpp"
#include "face/shmem/executable.hpp"

namespace ist {

class HeldStores {
 public:
  explicit HeldStores(std::span<const VariableSegment> segments);
  ~HeldStores();
  HeldStores(const HeldStores&) = delete;
  HeldStores& operator=(const HeldStores&) = delete;
  // These pages can only be read from now on.
  Status hold(std::byte* begin, Bytes size);
  // Others, which can be written, have taken their place; or else the same are as they were, and errno, too.
  void replaced();
  void put_back();

 private:
  sigset_t blocked_before_{};
};

}  // namespace ist
