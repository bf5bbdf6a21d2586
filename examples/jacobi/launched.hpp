// Ways on GPUs whose iterations the processor launches, one behind the other, while the one before runs.
//
// Who calls this : cuda.cpp; implemented by launched.cpp, cuda_messages.cpp, cuda_stream.cpp and cuda_one_sided.cpp.
// Threads        : one; the device that was current when they were made.
// Ownership      : each owns its field, but for heaps, which close() destroys.
// Errors         : isthmus::Error, std::runtime_error.
#pragma once

#include <memory>

#include "device_grid.hpp"
#include "way.hpp"

namespace jacobi {

struct Ring {
  int up, down;
  explicit Ring(const isthmus::Comm& comm)
      : up((comm.rank() + comm.size() - 1) % comm.size()), down((comm.rank() + 1) % comm.size()) {}
};

// What a kernel stores for the processor: a stamp above, a sum below.
class Mailbox {
 public:
  Mailbox();
  std::uint64_t* word() const { return memory_.get(); }
  std::uint64_t* failure() const { return memory_.get() + 1; }
  // Until that stamp is there; ends where a kernel has given up, the stream has failed, or nothing came for a minute.
  float await(std::uint32_t stamp, const example::cuda::Stream& stream) const;
  void must_be_fine() const;

 private:
  std::shared_ptr<std::uint64_t[]> memory_;
};

class Launched : public Way {
 public:
  Solved solve(const Problem& problem) final;
  example::Field result(int level) final { return grid_->download(level); }

 protected:
  Launched(isthmus::Comm comm, const Tiling& tiling, float factor);
  // Counted from 1 on in each run. Its neighbours' rows of the iteration before are there, or waited for by what is launched.
  virtual void launch(int iteration, bool checks, bool checked_before) = 0;
  // The squares of what it has changed, of all ranks. `last`: nothing is launched behind it.
  virtual float change_of(int iteration, bool last) = 0;
  virtual void wait() = 0;

  Sweep sweep(int iteration, bool adds) const { return grid_->sweep(iteration, tiling_, factor_, sums_.get(), adds); }
  float* sum_of(int iteration) const { return sums_.get() + iteration % kRing; }

  isthmus::Comm comm_;
  Tiling tiling_;
  float factor_;
  std::unique_ptr<DeviceGrid> grid_;
  // Of the outermost rows, or of all there is.
  example::cuda::Stream stream_;
  std::shared_ptr<float[]> sums_;
};

// What each way needs to be made.
struct Needs {
  isthmus::Comm comm;
  const Problem& problem;
  Tiling tiling;
  int device;
};
std::unique_ptr<Way> make_messages(const Needs& needs);
std::unique_ptr<Way> make_stream(const Needs& needs);
std::unique_ptr<Way> make_one_sided(const Needs& needs);
std::unique_ptr<Way> make_kernel(const Needs& needs);

}  // namespace jacobi
