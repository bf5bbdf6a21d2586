// Steps of a part on a device, and three ways to bring what crosses to the neighbours meanwhile.
//
// Who calls this : cuda_run.cpp.
// Threads        : one; the device that was current when it was made.
// Ownership      : an exchange owns the memory of the flow, and its streams.
// Errors         : isthmus::Error; std::runtime_error with the driver's words, or with who has not come in time.
#pragma once

#include <isthmus/halo.hpp>
#include <isthmus/isthmus.hpp>
#include <memory>
#include <string>

#include "cuda_flow.hpp"

namespace lbm {

class CudaSteps {
 public:
  virtual ~CudaSteps() = default;
  // Steps `first` to first + count - 1, whose results are there when it returns. Step n reads level n % 2. All ranks take as many; what a
  // neighbour stores may come until it returns there.
  virtual void advance(std::int64_t first, std::int64_t count) = 0;
  // Collective; ahead of the destructor, and no more steps behind it.
  virtual void end() {}
  virtual std::string text() const = 0;
  CudaFlow& flow() { return *flow_; }
  const CudaFlow& flow() const { return *flow_; }
  const Lanes& lanes() const { return lanes_; }

 protected:
  // Own memory for both levels.
  void allocate(const Cut& cut, const Vortices& vortices);

  std::shared_ptr<float[]> memory_;
  std::unique_ptr<CudaFlow> flow_;
  Lanes lanes_;
};

// No neighbours: a launch for each step.
std::unique_ptr<CudaSteps> steps_alone(const Cut& cut, const Vortices& vortices);
// Packed behind the border, sent and received by the host, unpacked ahead of the next border.
std::unique_ptr<CudaSteps> steps_by_messages(const isthmus::HaloGrid& grid, const Cut& cut, const Vortices& vortices);
// The border's kernel stores into the neighbours' halos, in a symmetric heap on that device.
std::unique_ptr<CudaSteps> steps_one_sided(const isthmus::HaloGrid& grid, const Cut& cut, const Vortices& vortices,
                                           int device);
// isthmus::Halo in the stream, two steps in a graph.
std::unique_ptr<CudaSteps> steps_in_graph(const isthmus::HaloGrid& grid, const Cut& cut, const Vortices& vortices);

}  // namespace lbm
