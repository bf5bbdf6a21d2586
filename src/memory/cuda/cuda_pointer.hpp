// What the driver knows of an address, asked in one call (60 ns for device memory, 100 ns for pageable: H100, driver 13.0).
//
// Who calls this : cuda_kind.cpp.
// Threads        : any.
// Ownership      : none.
// Errors         : an address nobody knows is an answer (known == false); check_cuda_piece explains what is wrong with a
// piece.
#pragma once

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

// Refuses a piece that is not wholly inside one allocation of device or managed memory, and fills in its device.
Status check_cuda_piece(const CudaApi& api, Piece& piece);

// "4096 bytes at 0x7f0000000000 + 8 (cuda)"
std::string describe_piece(const Piece& piece);

}  // namespace ist
