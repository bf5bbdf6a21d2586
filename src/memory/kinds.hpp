// The list of kinds of one world, loaded or with the reason why not.
//
// Who calls this : face/ makes one per world; `isthmus info` makes one without a world.
// Threads        : read-only after load(); the kinds themselves take calls from any thread.
// Ownership      : owns the kinds; tickets and pieces must not outlive it.
// Errors         : a kind that does not load is a line in missing(), not a failure.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/settings.hpp"
#include "memory/memory_kind.hpp"

namespace ist {

class Kinds {
 public:
  struct Missing {
    std::string name;
    std::string reason;
  };

  // Loads what `kinds` names ("all", or a comma-separated list such as "host,opencl"; host is always there).
  static Result<std::unique_ptr<Kinds>> load(const std::string& kinds);

  MemoryKind* find(KindId id) const;  // null if it did not load
  MemoryKind& host() const { return *find(KindId::host); }
  const std::vector<std::unique_ptr<MemoryKind>>& all() const { return kinds_; }
  const std::vector<Missing>& missing() const { return missing_; }

  // Whose address is it? Host, if no driver claims it.
  Recognised recognise(const void* address) const;
  // Turns what the user named into a checked piece of `size` bytes, its kind and device known.
  Result<Piece> resolve(const ist_buffer& buffer, Bytes size) const;
  // The kind that copies between the two, or null if it takes two steps through host memory.
  MemoryKind* copier(KindId to, KindId from) const;
  // Empty if the piece has no pending work.
  Result<Ticket> ready(const Piece& piece) const;
  // Copies start to end, staged where it must be, and waits for it. For set-up and tests, not for the message path.
  Status copy_and_wait(const Piece& to, const Piece& from) const;

 private:
  std::vector<std::unique_ptr<MemoryKind>> kinds_;
  std::array<MemoryKind*, 8> by_id_{};
  std::vector<Missing> missing_;
};

}  // namespace ist
