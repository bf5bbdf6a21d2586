// What packs one work: a kernel, and what it is told.
//
// Who calls this : cuda_packing.cpp, cuda_box_packing.cpp.
// Threads        : a value.
// Ownership      : none; run lists stay as long as their form and some time on.
// Errors         : none.
#pragma once

#include "memory/cuda/cuda_memory.hpp"
#include "memory/cuda/pack_protocol.hpp"

namespace ist {

struct CudaKind::Packer {
  CUfunction kernel = nullptr;
  unsigned blocks = 1;
  packing::Work work;
};

struct CudaKind::Relayer {
  CUfunction kernel = nullptr;
  unsigned blocks = 1;
  packing::Relay work;
};

struct CudaKind::PackLaunch {
  CUfunction kernel = nullptr;
  unsigned blocks = 1;
  void* told = nullptr;  // a Work or a Relay
};

}  // namespace ist
