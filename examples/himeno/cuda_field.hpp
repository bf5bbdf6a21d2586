// A part's arrays on a device: coefficients, two levels of p, what is swept when, and the comparison with other arrays.
//
// Who calls this : cuda_run.cpp and the ways to exchange.
// Threads        : one; the device that was current when it was made.
// Ownership      : Field owns its coefficients; levels are shared with whoever made them.
// Errors         : std::runtime_error.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "common/cuda.hpp"
#include "cuda_kernels.hpp"
#include "part.hpp"

namespace himeno {

inline constexpr std::int64_t kLead = 8;  // elements in front of a row's first cell: 32 bytes, as memory is fetched

using Levels = std::array<std::shared_ptr<float[]>, 2>;
inline Levels device_levels(const Part& part) {
  return {example::cuda::memory<float>(part.size()), example::cuda::memory<float>(part.size())};
}

// Of a part, as the kernels take it.
Box box_of(const isthmus::HaloBox& box);
Shape shape_of(const Part& part);
Work whole_work(const Part& part);
// What has no neighbour's cells around it, and the rest.
Work interior_work(const Part& part);
Work border_work(const Part& part);

// The coefficients, which no way to exchange changes.
class Coefficient {
 public:
  Coefficient(const Part& part, float b);
  const Coefficients& get() const { return pointers_; }

 private:
  std::vector<std::shared_ptr<float[]>> arrays_;
  Coefficients pointers_{};
};

class Field {
 public:
  Field(const Part& part, std::shared_ptr<const Coefficient> with, Levels levels);
  // The values of the beginning in both levels, halos among them. Enqueued.
  void start(const example::cuda::Stream& stream) const;
  // From level `from` to the other one; *gosa gets its sum added. Enqueued.
  void sweep(const example::cuda::Stream& stream, const Work& work, int from, double* gosa) const;
  float* level(int number) const { return levels_[static_cast<std::size_t>(number)].get(); }
  const Part& part() const { return part_; }
  const Coefficients& with() const { return with_->get(); }
  // How many own cells have not the bits of the whole box's. Waits.
  std::uint64_t unlike(int level, const Field& whole, int whole_level) const;
  std::vector<float> copy(int level) const;  // waits

 private:
  Part part_;
  std::shared_ptr<const Coefficient> with_;
  Levels levels_;
};

}  // namespace himeno
