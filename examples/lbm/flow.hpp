// The populations of a part, as structure of arrays in two levels that take turns. What stands in a level is what has collided; a step pulls it.
#ifndef LBM_FLOW_HPP
#define LBM_FLOW_HPP

#include <array>
#include <cstdint>
#include <isthmus/halo.hpp>
#include <vector>

#include "begin.hpp"
#include "collide.hpp"
#include "common/program.hpp"
#include "part.hpp"

namespace lbm {

struct Sums {
  double density = 0;  // beyond 1
  double energy = 0;   // velocities squared
};

template <class Lattice>
class Flow {
 public:
  static constexpr std::size_t kCount = Lattice::kCount;

  Flow(const Part& part, const Setup& setup)
      : part_(part), tau_(setup.tau), omega_(static_cast<float>(1 / setup.tau)), lid_(static_cast<float>(setup.lid)) {
    for (auto& level : levels_) level = example::zeros<float>(static_cast<std::int64_t>(kCount) * part.size());
  }
  const Part& part() const { return part_; }
  float* population(std::size_t level, std::size_t q) {
    return levels_[level].data() + static_cast<std::ptrdiff_t>(q) * part_.size();
  }
  const float* population(std::size_t level, std::size_t q) const {
    return levels_[level].data() + static_cast<std::ptrdiff_t>(q) * part_.size();
  }
  // All that move, each with its own halo.
  std::vector<isthmus::HaloField> fields(std::size_t level) {
    std::vector<isthmus::HaloField> made;
    for (std::size_t q = 1; q < kCount; ++q)
      made.push_back(
          isthmus::HaloField::of<float>(isthmus::Buffer::host(population(level, q)), part_.ranges(Lattice::kVelocities[q])));
    return made;
  }

  // state_of: State of a cell of the whole box. Level 0.
  template <class StateOf>
  void start(const StateOf& state_of) {
    each_cell(part_.inner(), [&](std::int64_t i, std::int64_t j, std::int64_t k) {
      const State state = state_of(Cells{part_.first[0] + i - 1, part_.first[1] + j - 1, part_.first[2] + k - 1});
      begin_cell<Lattice>(state, tau_, [&](std::size_t q, float value) { population(0, q)[part_.at(i, j, k)] = value; });
    });
  }

  // Half-way bounce-back, into the layer beyond the walls, where the next sweep looks for what comes from there; from the rank's own cells
  // alone. What would come from two walls comes from the lid: dimension 1 is last.
  void bounce_back(std::size_t level) {
    for (const std::size_t d : {0U, 2U, 1U})
      for (const int side : {-1, 1})
        if (part_.at_wall(d, side))
          for (std::size_t q = 1; q < kCount; ++q)
            if (Lattice::kVelocities[q][d] == -side) bounce_back(level, q, d, side);
  }
  // Ahead of bounce_back, which writes over corners.
  void wrap(std::size_t level) {
    for (std::size_t q = 1; q < kCount; ++q)
      for (std::size_t d = 0; d < 3; ++d) {
        if (!part_.wrapped[d] || Lattice::kVelocities[q][d] == 0) continue;
        if (Lattice::kVelocities[q][d] > 0)
          copy_plane(population(level, q), d, part_.cells[d], 0);
        else
          copy_plane(population(level, q), d, 1, part_.cells[d] + 1);
      }
  }
  // From a level to the other one.
  void sweep(std::size_t level, const isthmus::HaloBox& box) {
    std::array<const float*, kCount> from{};
    std::array<float*, kCount> to{};
    for (std::int64_t i = box.first[0]; i <= box.last[0]; ++i)
      for (std::int64_t j = box.first[1]; j <= box.last[1]; ++j)
        for (std::int64_t k = box.first[2]; k <= box.last[2]; k += kStretch) {
          for (std::size_t q = 0; q < kCount; ++q) {
            from[q] = population(level, q) + part_.at(i, j, k) - part_.offset(Lattice::kVelocities[q]);
            to[q] = population(1 - level, q) + part_.at(i, j, k);
          }
          collide<Lattice>(from, to, omega_, std::min(kStretch, box.last[2] - k + 1),
                           std::make_index_sequence<kCount / 2>{});
        }
  }

  std::array<double, 3> velocity(std::size_t level, std::ptrdiff_t at) const {
    std::array<double, 3> sum{};
    double rho = 1;
    for (std::size_t q = 0; q < kCount; ++q) {
      const double value = population(level, q)[at];
      rho += value;
      for (std::size_t d = 0; d < 3; ++d) sum[d] += Lattice::kVelocities[q][d] * value;
    }
    for (double& each : sum) each /= rho;
    return sum;
  }
  Sums sums(std::size_t level) const {
    Sums all;
    each_cell(part_.inner(), [&](std::int64_t i, std::int64_t j, std::int64_t k) {
      const std::ptrdiff_t at = part_.at(i, j, k);
      for (std::size_t q = 0; q < kCount; ++q) all.density += population(level, q)[at];
      for (const double u : velocity(level, at)) all.energy += u * u;
    });
    return all;
  }

 private:
  void bounce_back(std::size_t level, std::size_t q, std::size_t d, int side) {
    isthmus::HaloBox plane = part_.inner();
    plane.first[d] = plane.last[d] = side < 0 ? 1 : part_.cells[d];
    const Velocity& velocity = Lattice::kVelocities[q];
    const bool is_lid = d == 1 && side > 0;
    const float pushed = is_lid ? 6 * static_cast<float>(Lattice::weight(q)) * static_cast<float>(velocity[2]) * lid_ : 0.0F;
    const float* const from = population(level, opposite(q));
    float* const to = population(level, q) - part_.offset(velocity);
    each_cell(plane, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
      to[part_.at(i, j, k)] = from[part_.at(i, j, k)] + pushed;
    });
  }
  void copy_plane(float* field, std::size_t d, std::int64_t from, std::int64_t to) {
    isthmus::HaloBox plane{{0, 0, 0}, {part_.length(0) - 1, part_.length(1) - 1, part_.length(2) - 1}};
    plane.last[d] = 0;
    const float* const source = field + from * part_.stride(d);
    float* const target = field + to * part_.stride(d);
    each_cell(plane, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
      target[part_.at(i, j, k)] = source[part_.at(i, j, k)];
    });
  }

  Part part_;
  double tau_;
  float omega_, lid_;
  std::array<std::vector<float>, 2> levels_;
};

using Fluid = Flow<D3Q19>;

}  // namespace lbm
#endif
