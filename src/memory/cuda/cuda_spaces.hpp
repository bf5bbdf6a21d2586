// Symmetric memory of devices: what processes map of each other by descriptors (VMM), side by side in one reserved range, for kernels and
// for copies of this process's device.
//
// Who calls this : CudaKind owns one, and asks which device copies; face/heap through Spaces.
// Threads        : as spaces.hpp says; home_of() from any.
// Ownership      : a space owns its addresses and mappings; contexts, links and lending outlive it.
// Errors         : the driver's, with device and bytes; a link that cannot be believed names both ends.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <set>
#include <vector>

#include "memory/cuda/cuda_homes.hpp"
#include "memory/cuda/cuda_lending.hpp"
#include "memory/spaces.hpp"

namespace ist {

class CudaSpaces : public Spaces {
 public:
  CudaSpaces(const CudaApi& api, CudaContexts& contexts, CudaLinks& links, CudaLending& lending)
      : api_(api), contexts_(contexts), links_(links), lending_(lending) {}
  // The largest that any device asks for.
  Bytes page() const override { return mebibytes(2); }
  SpaceReach reach(int) override { return SpaceReach::device; }
  bool apart(int one, int other) override;
  bool words_apart(int one, int other) override;
  Result<std::unique_ptr<Space>> open(const SpaceShape& shape) override;

  // Access is given to one device of this process: the space's own, which therefore copies, whosever memory it is.
  // Null of any other memory.
  CudaContext* home_of(const Piece& piece) const {
    return piece.kind == KindId::cuda ? homes_.at(piece.object + piece.offset.value) : nullptr;
  }
  // The same for memory of another process that was opened otherwise, until as many are removed again.
  void add(const CudaHomes::Range& range) { homes_.add(range); }
  void remove(std::uint64_t start, std::uint64_t length) { homes_.remove(start, length); }
  // Do atomic operations get from one to the other?
  Status atomics_between(const CudaContext& home, const CudaLinks::Uuid& device, Rank rank) const;

 private:
  friend class CudaSpace;
  Result<bool> atomics_cross(CUdevice from, CUdevice to) const;
  Status check(CudaContext& context) const;
  const CudaApi& api_;
  CudaContexts& contexts_;
  CudaLinks& links_;
  CudaLending& lending_;
  CudaHomes homes_;
};

class CudaSpace : public Space {
 public:
  CudaSpace(CudaSpaces& spaces, CudaContext& home, CUdeviceptr base, const SpaceShape& shape)
      : spaces_(spaces), api_(spaces.api_), home_(home), base_(base), shape_(shape) {}
  ~CudaSpace() override;
  CudaSpace(const CudaSpace&) = delete;
  CudaSpace& operator=(const CudaSpace&) = delete;
  std::byte* base() const override { return reinterpret_cast<std::byte*>(base_); }
  SpaceCard card() override;
  Status meet(Rank rank, const SpaceCard& card) override;
  Status changes_words_of(Rank rank) const override;
  Status kernels_change_words_of(Rank rank) const override;
  bool shares_device_with(Rank rank) const override { return beside_.count(rank.value) != 0; }
  Result<FileDescriptor> make(Offset from, Bytes size) override;
  Status attach(Pe pe, Offset from, Bytes size, const FileDescriptor& descriptor) override;
  void take_back(Offset from, Bytes size) override;

 private:
  struct Mapping {
    CUdeviceptr start;
    Offset from;
    Bytes size;
  };
  std::string place() const { return " on cuda device " + std::to_string(home_.device); }
  Result<CUmemGenericAllocationHandle> create(Bytes size) const;
  Status map(Pe pe, Offset from, Bytes size, CUmemGenericAllocationHandle memory);
  Status zero(CUdeviceptr start, Bytes size) const;
  void unmap(const Mapping& mapping) const;
  CudaSpaces& spaces_;
  const CudaApi& api_;
  CudaContext& home_;
  const CUdeviceptr base_;
  const SpaceShape shape_;
  std::vector<Mapping> mappings_;
  // Why no atomic operation gets there, or is known to.
  struct Lack {
    Status why;
    bool is_known;
  };
  std::map<std::int32_t, Lack> lack_;  // by ranks
  std::set<std::int32_t> beside_;      // ranks whose part is on this device
  std::atomic<bool> ends_{false};
};

}  // namespace ist
