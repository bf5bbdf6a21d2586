// A call of the CUDA runtime that has to go well, in a small program that measures by it.
//
// Who calls this : both_ways.cu, who_copies.cu, link_stores.cu, barrier_forms.cu, pack_kernels.cu, pack_ways.cu, nvshmem_in_kernel.cu.
// Threads        : any.
// Ownership      : none.
// Errors         : the program ends with status 1 and says which call failed, and why.
#pragma once

#include <cuda_runtime.h>
#include <errno.h>

#include <cstdio>
#include <cstdlib>

inline void must(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, cudaGetErrorString(result));
  std::exit(1);
}
