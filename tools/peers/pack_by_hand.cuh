// Kernels that pack by hand, which the library's are measured by.
//
// Who calls this : pack_kernels.cu, pack_ways.cu.
// Threads        : any grid; one word a thread, in a loop.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <cstddef>

// Words per block and stride in words are powers of two or not, as they are.
template <class Word>
__global__ void pack_by_hand(Word* __restrict__ packed, const Word* __restrict__ memory, unsigned words, unsigned block,
                             unsigned stride) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x)
    packed[i] = memory[static_cast<std::size_t>(i / block) * stride + i % block];
}
__global__ void pack_list_by_hand(double* __restrict__ packed, const double* __restrict__ memory,
                                  const int* __restrict__ places, unsigned words) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x)
    packed[i] = memory[places[i]];
}
