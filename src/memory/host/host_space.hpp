// Symmetric host memory: files without a name, mapped side by side in one reserved range of addresses.
//
// Who calls this : HostKind, for face/heap.
// Threads        : as spaces.hpp says.
// Ownership      : owns the range; the memory goes when the last process that maps it lets go.
// Errors         : IST_ERR_MEMORY where there are no addresses or not as much memory, IST_ERR_SYSTEM where the system refuses.
#pragma once

#include "memory/spaces.hpp"

namespace ist {

class HostSpace : public Space {
 public:
  static constexpr std::uint64_t kPage = 4096;
  // Parts whose stride is a multiple of a power of two begin at multiples of it, up to this: what is aligned in one part is so in all,
  // and in every process.
  static constexpr std::uint64_t kMostAligned = std::uint64_t{1} << 30U;
  static Result<std::unique_ptr<Space>> open(const SpaceShape& shape);
  ~HostSpace() override;
  HostSpace(const HostSpace&) = delete;
  HostSpace& operator=(const HostSpace&) = delete;
  std::byte* base() const override { return base_; }
  Result<FileDescriptor> make(Offset from, Bytes size) override;
  Status attach(Pe pe, Offset from, Bytes size, const FileDescriptor& descriptor) override;
  void take_back(Offset from, Bytes size) override;

 private:
  HostSpace(std::byte* base, const SpaceShape& shape) : base_(base), shape_(shape) {}
  std::byte* at(Pe pe, Offset from) const {
    return base_ + static_cast<std::uint64_t>(pe.value) * shape_.stride.value + from.value;
  }
  Bytes whole() const { return Bytes{shape_.stride.value * static_cast<std::uint64_t>(shape_.pes)}; }
  std::byte* base_;
  SpaceShape shape_;
};

class HostSpaces : public Spaces {
 public:
  Bytes page() const override { return Bytes{HostSpace::kPage}; }
  SpaceReach reach(int) override { return SpaceReach::processor; }
  Result<std::unique_ptr<Space>> open(const SpaceShape& shape) override { return HostSpace::open(shape); }
};

}  // namespace ist
