// The Himeno benchmark on the processor: a part's arrays, its sweeps, and the comparison with a rank that has the whole box.
//
// Who calls this : himeno.cpp, and the CUDA program for the serial oracle.
// Threads        : one.
// Ownership      : Himeno owns its arrays, but for levels that it is given.
// Errors         : std::bad_alloc.
#pragma once

#include <algorithm>
#include <cstring>

#include "formula.hpp"
#include "part.hpp"

namespace himeno {

class Himeno {
 public:
  // levels: both of p, of the part's size; null: its own.
  Himeno(const Part& part, float b_value, const std::array<float*, 2>& levels = {}) : p(levels), part_(part) {
    for (std::size_t level = 0; level < 2; ++level) {
      if (p[level] == nullptr) own_[level].resize(part.size()), p[level] = own_[level].data();
      std::fill_n(p[level], part.size(), 0.0F);
    }
    for (auto* const ones : {&a_[0], &a_[1], &a_[2], &c_[0], &c_[1], &c_[2], &bnd_}) ones->assign(part.size(), 1.0F);
    a_[3].assign(part.size(), 1.0F / 6.0F);
    for (auto& b : b_) b.assign(part.size(), b_value);
    wrk1_.assign(part.size(), 0.0F);
    const auto square = [](std::int64_t number) { return static_cast<float>(number * number); };
    const isthmus::HaloBox box = part.inner();
    for (std::int64_t i = box.first[0]; i <= box.last[0]; ++i)
      for (std::int64_t j = box.first[1]; j <= box.last[1]; ++j)
        for (std::int64_t k = box.first[2]; k <= box.last[2]; ++k)
          for (float* const level : p)
            level[part.at(i, j, k)] = square(part.first[0] + i - box.first[0]) / square(part.all[0] - 1);
  }
  // From one level to the other; the sum of the squares of what has changed.
  double sweep(std::size_t from, const isthmus::HaloBox& given) {
    const isthmus::HaloBox box = part_.changing(given);
    double gosa = 0;
    for (std::int64_t i = box.first[0]; i <= box.last[0]; ++i)
      for (std::int64_t j = box.first[1]; j <= box.last[1]; ++j)
        for (std::int64_t k = box.first[2]; k <= box.last[2]; ++k) gosa += step(p[from], p[1 - from], part_.at(i, j, k));
    return gosa;
  }
  // So many iterations of a part that is the whole box; the last one's sum.
  double go_alone(std::int64_t iterations) {
    double gosa = 0;
    for (std::int64_t n = 0; n < iterations; ++n) gosa = sweep(static_cast<std::size_t>(n % 2), part_.inner());
    return gosa;
  }
  const Part& part() const { return part_; }
  Himeno(const Himeno&) = delete;
  Himeno& operator=(const Himeno&) = delete;

  std::array<float*, 2> p;  // two levels, which take turns

 private:
  double step(const float* from, float* to, std::size_t at) const {
    const std::ptrdiff_t row = part_.ranges[2].total_length, plane = part_.ranges[1].total_length * row;
    const float* const here = from + at;
    const Cell<float> cell{a_[0][at], a_[1][at], a_[2][at], a_[3][at], b_[0][at], b_[1][at],
                           b_[2][at], c_[0][at], c_[1][at], c_[2][at], bnd_[at],  wrk1_[at]};
    const float ss = change_of(cell, [&](int i, int j, int k) { return here[i * plane + j * row + k]; });
    to[at] = changed(*here, ss);
    return static_cast<double>(ss * ss);
  }

  Part part_;
  std::array<std::vector<float>, 2> own_;
  std::array<std::vector<float>, 4> a_;
  std::array<std::vector<float>, 3> b_, c_;
  std::vector<float> bnd_, wrk1_;
};

// A rank's cells, `p` in its part's order, in the box that was computed alone.
inline bool same_bits(const Part& part, const float* p, const Himeno& whole, std::size_t level) {
  const Part& all = whole.part();
  const isthmus::HaloBox box = part.inner(), begin = all.inner();
  for (std::int64_t i = 0; i < part.cells[0]; ++i)
    for (std::int64_t j = 0; j < part.cells[1]; ++j) {
      const float* const there = &whole.p[level][all.at(part.first[0] + i + begin.first[0],
                                                        part.first[1] + j + begin.first[1], part.first[2] + begin.first[2])];
      if (std::memcmp(&p[part.at(i + box.first[0], j + box.first[1], box.first[2])], there,
                      static_cast<std::size_t>(part.cells[2]) * sizeof(float)) != 0)
        return false;
    }
  return true;
}

}  // namespace himeno
