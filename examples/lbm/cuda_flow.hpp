// The populations of a rank's part in device memory, in two levels that take turns, and what kernels do to them.
//
// Who calls this : cuda_run.cpp and the exchanges.
// Threads        : one; the device that was current when it was made.
// Ownership      : the levels are the caller's, each of cut.populations() floats at a multiple of 128 bytes.
// Errors         : std::runtime_error, with the driver's words.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/cuda.hpp"
#include "cut.hpp"
#include "flow.hpp"
#include "kernels.hpp"

namespace lbm {

// A stream for the border and what crosses, which goes first, and one for the rest. Of each step the border begins when the rest of the step
// before has ended, and the other way round.
class Lanes {
 public:
  Lanes();
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;
  cudaStream_t front() const { return front_; }
  cudaStream_t back() const { return back_; }
  // What is given to each from here on is behind what front_given() and back_given() told of last.
  void meet() const;
  void front_given() const { example::cuda::check(cudaEventRecord(of_front_, front_), "cudaEventRecord"); }
  void back_given() const { example::cuda::check(cudaEventRecord(of_back_, back_), "cudaEventRecord"); }
  // The one goes on behind all that the other was given.
  void fork() const;
  void join() const;
  void wait() const;

 private:
  cudaStream_t front_ = nullptr, back_ = nullptr;
  cudaEvent_t of_front_ = nullptr, of_back_ = nullptr;
};

class CudaFlow {
 public:
  CudaFlow(const Cut& cut, const Vortices& vortices, const std::array<float*, 2>& levels);
  const Cut& cut() const { return cut_; }
  float* level(std::size_t n) const { return levels_[n]; }

  // Level 0 with its halos; the other one is zero.
  void begin(cudaStream_t stream) const;
  // From a level to the other one.
  void sweep_all(std::size_t from, cudaStream_t stream) const { sweep(of(from), whole(), tile_, stream); }
  void sweep_inner(std::size_t from, cudaStream_t stream) const { sweep(of(from), cut_.inner, tile_, stream); }
  void sweep_border(std::size_t from, cudaStream_t stream) const { lbm::sweep_border(of(from), cut_.border, stream); }
  void sweep_border(std::size_t from, const Crossing& crossing, const Waits& waits, cudaStream_t stream) const {
    lbm::sweep_border(of(from), cut_.border, crossing, waits, stream);
  }
  // Takes the tile that is quickest here; what is in the other level's own cells is lost.
  void tune(cudaStream_t stream);
  std::string tile() const;

  // These wait for what they ask for.
  Sums sums(std::size_t level, cudaStream_t stream) const;
  std::vector<std::uint64_t> prints(std::size_t level, cudaStream_t stream) const;
  void download(std::size_t level, Fluid& to, cudaStream_t stream) const;
  // Another last bit of a cell, as checks have to notice.
  void spoil(std::size_t level) const;

 private:
  Sweep of(std::size_t from) const;
  Box whole() const { return {{0, 0, 0}, {cut_.shape.cells[0], cut_.shape.cells[1], cut_.shape.cells[2]}}; }
  Start start() const;

  Cut cut_;
  std::array<float*, 2> levels_;
  Tile tile_;
  Vortices vortices_;
  std::shared_ptr<Angle[]> x_, y_;
  std::shared_ptr<double[]> across_;
};

// Bytes a second that are read and written, the best of the driver's copy and a kernel's; of so many floats.
double copy_rate(const float* from, float* to, std::int64_t count, cudaStream_t stream);
// Of what `action` puts into the stream, once.
template <class Action>
double seconds_of(cudaStream_t stream, int times, const Action& action) {
  example::cuda::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  const example::Clock clock;
  for (int n = 0; n < times; ++n) action();
  example::cuda::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return clock.seconds() / times;
}

}  // namespace lbm
