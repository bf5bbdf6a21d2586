// The list of kinds of one world, loaded or with the reason why not.
//
// Who calls this : face/ makes one per world; `isthmus info` makes one without a world.
// Threads        : any; read-only after load(), except for the note of which kinds have come into use.
// Ownership      : owns the kinds; tickets and pieces must not outlive it.
// Errors         : a kind that does not load is a line in missing(), not a failure.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/settings.hpp"
#include "memory/kind_options.hpp"
#include "memory/memory_kind.hpp"

namespace ist {

class Kinds {
 public:
  struct Missing {
    std::string name;
    std::string reason;
  };

  // Loads what `kinds` names ("all", or a comma-separated list such as "host,opencl"; host is always there).
  static Result<std::unique_ptr<Kinds>> load(const std::string& kinds, const KindOptions& options = {});
  // As the settings want them. `shared`: KindOptions.
  static Result<std::unique_ptr<Kinds>> load(const Settings& settings, Bytes shared = {});

  MemoryKind* find(KindId id) const;  // null if it did not load
  // By a number that a user gave, which may be any; or why there is none.
  Result<MemoryKind*> usable(std::uint32_t kind) const;
  MemoryKind& host() const { return *find(KindId::host); }
  const std::vector<std::unique_ptr<MemoryKind>>& all() const { return kinds_; }
  const std::vector<Missing>& missing() const { return missing_; }

  // Whose address is it? Host, if no driver claims it.
  Recognised recognise(const void* address) const;
  // Turns what the user named into a checked piece of `size` bytes, its kind and device known.
  Result<Piece> resolve(const ist_buffer& buffer, Bytes size) const;
  // The kind that copies between the two, or null if it takes two steps through host memory. Kinds alone do not always
  // decide (two OpenCL contexts share nothing): with pieces at hand, ask with the pieces.
  MemoryKind* copier(KindId to, KindId from) const;
  MemoryKind* copier(const Piece& to, const Piece& from) const;
  // Empty if the piece has no pending work.
  Result<Ticket> ready(const Piece& piece) const;
  // Streams::in_order() of its kind.
  Result<Ticket> in_order(const Piece& piece) const;
  bool goes_into_queue(const Piece& piece, const Ticket& ticket) const;

  // The most bytes that a worker copies of such a piece (workers.hpp); 0: none does. Of memory of that class on the device that was
  // allowed one.
  Bytes worker_limit(const Piece& piece) const;
  Bytes worker_limit(KindId kind, MemoryClass memory) const;

  // A kind is in use once a piece of it was resolved or copied. Memory is page-locked for kinds in use only: locking makes a
  // driver context, which a program that never touches that kind must not pay for.
  void mark_used(KindId id) const { used_.fetch_or(1U << static_cast<unsigned>(id), std::memory_order_relaxed); }
  bool used(KindId id) const { return (used_.load(std::memory_order_relaxed) >> static_cast<unsigned>(id) & 1U) != 0; }

  // What load() does with each kind of its list; tests add kinds of invented machines.
  void add(std::string_view name, Result<std::unique_ptr<MemoryKind>> made);

 private:
  Workers* workers(KindId kind) const;
  Status absent(std::uint32_t kind) const;
  // Null if the piece can have no pending work.
  Streams* streams(const Piece& piece) const;
  Result<Piece> resolve_auto(const ist_buffer& buffer, Bytes size) const;

  std::vector<std::unique_ptr<MemoryKind>> kinds_;
  std::array<MemoryKind*, 8> by_id_{};
  std::vector<Missing> missing_;
  mutable std::atomic<std::uint32_t> used_{0};  // one bit per KindId
};

}  // namespace ist
