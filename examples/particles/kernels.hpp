// The kernels of a step, as functions that launch them.
//
// Who calls this : cuda.cpp; implemented by kernels.cu, and for a test by the processor (particles_played.cpp).
// Threads        : one; the device that is current.
// Ownership      : none.
// Errors         : std::runtime_error of a launch.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "machine.hpp"

namespace particles {

// Parts of the box in each dimension, and which one is the rank's own.
struct Cut {
  int parts[3];
  int own;
};

struct Leaver {
  std::int32_t which;  // in ascending order
  std::int32_t part;   // where it is now
};

// How those that leave are found, in the same order at every run: each block of particles counts its own, one block adds the counts up, and
// then each block knows where its own begin in the list.
struct Search {
  std::int32_t* part;    // of each particle, where it leaves, or kStays
  std::int32_t* before;  // of each block of particles: how many leave from those before it
  std::int64_t* found;   // how many leave; in host memory
  Leaver* list;          // the first `limit` of them; in host memory
  std::int64_t limit;
};
inline constexpr std::int32_t kStays = -1;

#ifdef PARTICLES_PLAYED  // by a test, whose processor has few
inline constexpr int kThreads = 64, kScanThreads = 64;
#else
inline constexpr int kThreads = 256, kScanThreads = 1024;
#endif
constexpr std::int64_t blocks_of(std::int64_t count) { return (count + kThreads - 1) / kThreads; }

// Moves all, and finds those that leave; count > 0.
void launch_move(const Span& particles, const Cut& cut, const Search& search, cudaStream_t stream);
// Lists what launch_move has found.
void launch_list(std::int64_t count, const Search& search, cudaStream_t stream);
// `fills` in device memory; count > 0.
void launch_fill(const Span& particles, const Fill* fills, std::int64_t count, cudaStream_t stream);

}  // namespace particles
