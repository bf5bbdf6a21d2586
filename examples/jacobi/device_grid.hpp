// One rank's cells on its GPU, and what the GPU does best with them.
//
// Who calls this : cuda.cpp and the ways in CUDA; pixels.
// Threads        : one; the device that is current.
// Ownership      : a DeviceGrid owns its memory, or looks at that of a heap.
// Errors         : std::runtime_error with the driver's words.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "common/cuda.hpp"
#include "common/stencil.hpp"
#include "kernels.hpp"
#include "problem.hpp"

namespace jacobi {

class DeviceGrid {
 public:
  // With memory of its own, or in somebody else's levels.
  DeviceGrid(const Problem& problem, example::Part part);
  DeviceGrid(const Problem& problem, example::Part part, std::array<float*, 2> levels);
  const Cells& cells() const { return cells_; }
  float* row(int level, int y) const { return cells_.levels[level] + y * cells_.pitch; }
  // Both levels as they are at the start.
  void fill(const example::cuda::Stream& stream) const;
  // That level's rows in host memory, until the next call.
  example::Field download(int level);
  // Of one iteration, from the level before it, counted from 1 on. Where sums is null nothing is added up; otherwise it has kRing of them.
  Sweep sweep(int iteration, const Tiling& tiling, float factor, float* sums, bool adds) const;

 private:
  std::shared_ptr<float[]> memory_, edges_;
  std::vector<float> host_;
  Cells cells_;
};

// The quickest of those that the problem allows, by trial.
Tiling tiling_for(const Problem& problem, const DeviceGrid& grid, const example::cuda::Stream& stream);
// Copies one level's rows into the other's, by the driver, or by a kernel.
void copy_rows(const DeviceGrid& grid, bool by_driver, const example::cuda::Stream& stream);

}  // namespace jacobi
