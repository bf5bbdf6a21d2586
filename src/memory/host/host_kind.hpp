// Memory of this process, copied by the processor.
//
// Who calls this : kinds.cpp makes it; used through MemoryKind.
// Threads        : any.
// Ownership      : remembers what allocate() gave, and frees only that.
// Errors         : returned; copies never fail. They are done when copy() returns, and its ticket is empty, but for long ones where
//                  use_helpers() has named some: those begin together, and finished() helps.
#pragma once

#include <mutex>
#include <set>

#include "memory/host/copy_crew.hpp"
#include "memory/host/host_space.hpp"
#include "memory/host/shared_heap.hpp"
#include "memory/memory_kind.hpp"

namespace ist {

class HostKind final : public MemoryKind, public Arithmetic {
 public:
  // So much of what is allocated may lie where other ranks of the host copy it from; what is short does not.
  explicit HostKind(Bytes shared = Bytes{});
  ~HostKind() override;
  KindId id() const override { return KindId::host; }
  std::string_view name() const override { return "host"; }
  const std::vector<DeviceInfo>& devices() const override { return devices_; }
  bool copies(KindId to, KindId from) const override { return to == KindId::host && from == KindId::host; }
  std::optional<Recognised> recognise(const void* address) override;
  Status check(Piece& piece) override;
  Result<Piece> allocate(int device, Bytes size) override;
  Status release(const Piece& piece) override;
  Result<Ticket> copy(const Piece& to, const Piece& from, const Ticket& after) override;
  Result<bool> finished(Ticket& ticket) override;
  void drop(std::uint64_t id) override { crew_.drop(id); }
  void use_helpers(int helpers) override { crew_.set_helpers(helpers); }
  Arithmetic* arithmetic() override { return this; }
  SharedHeap* shared_heap() override { return &heap_; }
  Spaces* spaces() override { return &spaces_; }
  Status can(Reduction reduction, ist_type type, int device) override;
  Result<Ticket> combine(Reduction reduction, ist_type type, const Piece& into, const Piece& with,
                         const Ticket& after) override;

 private:
  std::vector<DeviceInfo> devices_;
  std::mutex mutex_;
  std::set<std::uint64_t> allocated_;  // not in the heap
  SharedHeap heap_;
  HostSpaces spaces_;
  CopyCrew crew_;
};

}  // namespace ist
