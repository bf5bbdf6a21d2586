// What the driver knows of an address, asked in one call (60 ns for device memory, 100 ns for pageable: H100, driver 13.0).
//
// Who calls this : cuda_kind.cpp.
// Threads        : any.
// Ownership      : none.
// Errors         : an address nobody knows is an answer (known == false); check_cuda_piece explains what is wrong with a
// piece.
#pragma once

#include <array>
#include <mutex>

#include "memory/cuda/cuda_api.hpp"
#include "memory/memory_kind.hpp"

namespace ist {

struct PointerFacts {
  CUresult result = CUDA_SUCCESS;  // of the question; where it failed nothing below is known
  bool known = false;
  bool on_host = false;         // page-locked host memory
  int device = -1;              // ordinal
  CUcontext context = nullptr;  // none for VMM and pool memory
  std::uint64_t buffer_id = 0;  // of the allocation, never used again
  std::uint64_t start = 0;      // of the allocation; of the reserved range, for VMM memory
  std::uint64_t size = 0;
  std::uint64_t mapping_start = 0;  // of the one mapping in it
  std::uint64_t mapping_size = 0;
  CUmemoryPool pool = nullptr;  // that it comes from
  MemoryClass memory_class = MemoryClass::pageable;
};

PointerFacts ask_driver(const CudaApi& api, std::uint64_t address);

// What was learned of pieces when they were checked, so that of one operation's the driver is not asked again (0.16 to 0.3 us each time,
// two H100, 2026-11-24). A piece that outlives its operation must not bring it along: its memory may be freed, and other memory lie there.
class KeptFacts {
 public:
  explicit KeptFacts(const CudaApi& api) : api_(api) {}
  // Marks the piece. Of many that are kept the oldest are forgotten.
  void keep(Piece& piece, const PointerFacts& facts);
  // Of its first byte: kept, or else asked.
  PointerFacts of(const Piece& piece) const;

 private:
  struct Entry {
    std::uint32_t name = 0;
    std::uint64_t address = 0;
    PointerFacts facts;
  };
  const CudaApi& api_;
  mutable std::mutex mutex_;
  std::uint32_t names_ = 0;
  std::array<Entry, 128> entries_;  // by name
};

// Refuses a piece that is not wholly inside one allocation of device or managed memory, and fills in its device.
// `found`: where what the driver
// said of its first byte goes, too.
Status check_cuda_piece(const CudaApi& api, Piece& piece, PointerFacts* found = nullptr);

// "4096 bytes at 0x7f0000000000 + 8 (cuda)"
std::string describe_piece(const Piece& piece);

}  // namespace ist
