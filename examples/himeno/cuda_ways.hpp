// Ways to bring a part's border to its neighbours while sweeps go on, and the sum over all cells in each iteration.
//
// Who calls this : cuda_run.cpp; cuda_ways.cpp has those that the processor drives, cuda_resident.cpp the one in a kernel.
// Threads        : one; collective: all ranks make the same calls.
// Ownership      : a way owns its streams and graphs; the heap of the one in a kernel goes with its world.
// Errors         : std::runtime_error, isthmus::Error.
#pragma once

#include <isthmus/isthmus.hpp>
#include <memory>
#include <string>

#include "cuda_field.hpp"

namespace himeno {

class Way {
 public:
  explicit Way(std::string name) : name_(std::move(name)) {}
  virtual ~Way() = default;
  Way(const Way&) = delete;
  Way& operator=(const Way&) = delete;
  const std::string& name() const { return name_; }
  // The beginning in both levels, when that is done.
  void start() {
    field().start(stream_);
    stream_.wait();
  }
  // So many iterations, when they are done; the last one's sum over all ranks. The first call takes longer, and one with another number may.
  virtual double go(int iterations) = 0;
  virtual const Field& field() const = 0;
  // The result's.
  virtual int level() const = 0;

 protected:
  example::cuda::Stream stream_;

 private:
  std::string name_;
};

// The processor starts each sweep and each message. `overlapped`: the border first, whose way the interior hides.
std::unique_ptr<Way> by_messages(const isthmus::HaloGrid& grid, const Field& field, bool overlapped);
// Many iterations are one graph, in which streams exchange by themselves.
std::unique_ptr<Way> by_streams(const isthmus::HaloGrid& grid, const Field& field, bool overlapped);
// One kernel does all iterations. Parts are alike, and every rank has a GPU of its own.
// `keeps`: coefficients stay in the multiprocessors over all iterations; null where there are too many.
std::unique_ptr<Way> by_kernel(const isthmus::HaloGrid& grid, const Part& part, std::shared_ptr<const Coefficient> with,
                               bool keeps);

}  // namespace himeno
