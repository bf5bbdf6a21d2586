// Steps of a flow that is cut over ranks, each with a device, and those of one device by itself, which says whether they are right.
//
// Who calls this : lbm.cpp.
// Threads        : one.
// Ownership      : a CudaRun owns its device memory; end() is collective, and ahead of the destructor.
// Errors         : example::Mistake on all ranks alike where the devices do not allow what is asked for; else as cuda_exchange.hpp.
#pragma once

#include <optional>
#include <string>

#include "common/cuda_device.hpp"
#include "cuda_exchange.hpp"
#include "report.hpp"
#include "run.hpp"

namespace lbm {

class CudaRun {
 public:
  // exchange: messages, one-sided or graph. padding: elements between populations.
  CudaRun(const isthmus::World& world, const isthmus::HaloGrid& grid, const Setup& setup, const Vortices& vortices,
          const std::string& exchange, int padding);
  void advance(std::int64_t count);
  std::size_t level() const { return static_cast<std::size_t>(steps_ % 2); }
  std::int64_t steps() const { return steps_; }
  double seconds() const { return seconds_; }  // of the slowest rank
  std::string text() const { return steps_of_->text(); }
  Sums sums() const;
  // Own cells of this level, in host memory; at the next call it is another level's or step's.
  const Fluid& mirrored();
  void spoil() { flow().spoil(level()); }
  void end() { steps_of_->end(); }
  // Of devices: whether the whole box, on rank 0's device alone, has the same bits, and how long that takes.
  void tell(Report& report) const;

 private:
  CudaFlow& flow() const { return steps_of_->flow(); }
  cudaStream_t stream() const { return steps_of_->lanes().front(); }
  void compare_alone(Report& report) const;

  const isthmus::World& world_;
  example::cuda::Device device_;
  Cut cut_;
  Vortices vortices_;
  std::unique_ptr<CudaSteps> steps_of_;
  std::optional<Fluid> mirror_;
  std::int64_t steps_ = 0;
  double seconds_ = 0, copy_rate_ = 0;  // bytes a second, of this rank's device
};

}  // namespace lbm
