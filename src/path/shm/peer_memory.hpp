// A peer's own memory, read by the system call that copies from one process to another: one copy instead of two.
//
// Who calls this : shm_link; `isthmus info`.
// Threads        : the path's one thread.
// Ownership      : none; the peer may give its memory back at any time, and what is asked behind a read tells.
// Errors         : why the system does not let us, or could not; nothing of it is fatal: rings carry everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.hpp"

namespace ist {

class PeerMemory {
 public:
  // A word in the peer's memory whose value is known here: only a process that shows it is the right one.
  struct Proof {
    std::uint64_t address = 0;
    std::uint64_t value = 0;
  };
  // `process`: the peer's id as this process sees it; 0 or less: it sees none.
  static Result<PeerMemory> open(int process, const Proof& proof);
  // Does this system let a process read the memory of another one of the same user that is not its child? Tried with two
  // processes that are started for it.
  static Status possible();
  // Whether it is still what the peer offered is to be asked behind it. That the number is another process's by now is not found; it
  // takes an end of the peer that nobody has noticed yet, and all other numbers of processes given out meanwhile.
  Status read(std::span<std::byte> into, std::uint64_t address) const;
  // Several, at most kMostParts, by one call of the system. False: not all of it, and what was read may be anything.
  static constexpr std::size_t kMostParts = 4;
  struct Part {
    std::span<std::byte> into;
    std::uint64_t address = 0;
  };
  bool read(std::span<const Part> parts) const;

 private:
  explicit PeerMemory(int process) : process_(process) {}
  int process_;
};

}  // namespace ist
