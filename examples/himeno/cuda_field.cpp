#include "cuda_field.hpp"

namespace himeno {
namespace {

using example::cuda::check;

Box changing_box(const Part& part, const isthmus::HaloBox& box) { return box_of(part.changing(box)); }

}  // namespace

Box box_of(const isthmus::HaloBox& box) {
  Box made{};
  for (std::size_t d = 0; d < 3; ++d)
    made.first[d] = static_cast<int>(box.first[d]), made.last[d] = static_cast<int>(box.last[d]);
  return made;
}
Shape shape_of(const Part& part) {
  const auto row = static_cast<int>(part.ranges[2].total_length);
  return {row, row * static_cast<int>(part.ranges[1].total_length)};
}
Work whole_work(const Part& part) {
  Work work;
  work.add(changing_box(part, part.inner()));
  return work;
}
Work interior_work(const Part& part) {
  Work work;
  work.add(changing_box(part, isthmus::halo_split(part.ranges).interior));
  return work;
}
Work border_work(const Part& part) {
  Work work;
  for (const isthmus::HaloBox& box : isthmus::halo_split(part.ranges).border) work.add(changing_box(part, box));
  return work;
}

Coefficient::Coefficient(const Part& part, float b) {
  float* places[kCoefficients];
  for (float*& place : places) {
    arrays_.push_back(example::cuda::memory<float>(part.size()));
    place = arrays_.back().get();
  }
  fill_coefficients(nullptr, static_cast<std::int64_t>(part.size()), places, b);
  check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  for (int n = 0; n < kCoefficients; ++n) pointers_.of[n] = places[n];
}

Field::Field(const Part& part, std::shared_ptr<const Coefficient> with, Levels levels)
    : part_(part), with_(std::move(with)), levels_(std::move(levels)) {}

void Field::start(const example::cuda::Stream& stream) const {
  Extent extent{};
  for (std::size_t d = 0; d < 3; ++d) {
    extent.all[d] = part_.all[d];
    extent.first[d] = part_.first[d] - part_.ranges[d].begin;
    extent.total[d] = part_.ranges[d].total_length;
  }
  fill_levels(stream.get(), extent, level(0), level(1));
}

void Field::sweep(const example::cuda::Stream& stream, const Work& work, int from, double* gosa) const {
  himeno::sweep(stream.get(), shape_of(part_), with_->get(), level(from), level(1 - from), work, gosa);
}

std::uint64_t Field::unlike(int level, const Field& whole, int whole_level) const {
  const auto count = example::cuda::memory<unsigned long long>(1);
  check(cudaMemset(count.get(), 0, sizeof(unsigned long long)), "cudaMemset");
  Compared of{this->level(level),       shape_of(part_),       box_of(part_.inner()),
              whole.level(whole_level), shape_of(whole.part_), {}};
  for (std::size_t d = 0; d < 3; ++d)
    of.shift[d] = static_cast<int>(part_.first[d] - part_.ranges[d].begin + whole.part_.ranges[d].begin);
  compare(nullptr, of, count.get());
  unsigned long long found = 0;
  check(cudaMemcpy(&found, count.get(), sizeof found, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return found;
}

std::vector<float> Field::copy(int level) const {
  std::vector<float> copied(part_.size());
  check(cudaMemcpy(copied.data(), this->level(level), copied.size() * sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy");
  return copied;
}

}  // namespace himeno
