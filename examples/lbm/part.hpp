// The box of cells, and a rank's part of it, with a layer around for populations that come in. Dimension 2 is contiguous.
#ifndef LBM_PART_HPP
#define LBM_PART_HPP

#include <algorithm>
#include <array>
#include <cstdint>
#include <isthmus/halo.hpp>
#include <vector>

#include "lattice.hpp"

namespace lbm {

using Cells = std::array<std::int64_t, 3>;

struct Setup {
  Cells cells{};
  std::array<bool, 3> walls{};  // on both sides; periodic otherwise
  double tau = 1;
  double lid = 0;  // velocity along dimension 2 of the wall at the far side of dimension 1
  double viscosity() const { return (tau - 0.5) / 3; }
  double all() const { return static_cast<double>(cells[0] * cells[1] * cells[2]); }
};

struct Part {
  Cells all{}, first{}, cells{};
  std::array<bool, 3> walls{}, wrapped{};  // wrapped: periodic and not cut, so that the rank fills the layer by itself

  Part(const Setup& setup, const std::vector<int>& ranks, const std::vector<int>& coords)
      : all(setup.cells), walls(setup.walls) {
    for (std::size_t d = 0; d < 3; ++d) {
      first[d] = all[d] * coords[d] / ranks[d];
      cells[d] = all[d] * (coords[d] + 1) / ranks[d] - first[d];
      wrapped[d] = !walls[d] && ranks[d] == 1;
    }
  }
  std::int64_t length(std::size_t dimension) const { return cells[dimension] + 2; }
  std::ptrdiff_t stride(std::size_t dimension) const {
    return dimension == 2 ? 1 : length(2) * (dimension == 0 ? length(1) : 1);
  }
  std::ptrdiff_t at(std::int64_t i, std::int64_t j, std::int64_t k) const { return (i * length(1) + j) * length(2) + k; }
  std::ptrdiff_t size() const { return at(length(0), 0, 0); }
  std::ptrdiff_t offset(const Velocity& velocity) const {
    return velocity[0] * stride(0) + velocity[1] * stride(1) + velocity[2];
  }
  isthmus::HaloBox inner() const { return {{1, 1, 1}, {cells[0], cells[1], cells[2]}}; }
  bool at_wall(std::size_t dimension, int side) const {
    return walls[dimension] && (side < 0 ? first[dimension] == 0 : first[dimension] + cells[dimension] == all[dimension]);
  }

  // A population is pulled from where it comes from, so that its halo is on that side alone: over each face go those that cross it, 5 of
  // D3Q19, and over each edge the one that does. The layer of a wrapped dimension goes along, as the rank's own.
  std::array<isthmus::HaloRange, 3> ranges(const Velocity& velocity) const {
    std::array<isthmus::HaloRange, 3> made{};
    for (std::size_t d = 0; d < 3; ++d) {
      if (wrapped[d])
        made[d] = {0, 0, 0, length(d) - 1, length(d)};
      else
        made[d] = {velocity[d] > 0, velocity[d] < 0, 1, cells[d], length(d)};
    }
    return made;
  }
  // For the cut into interior and border: what needs no neighbour is interior. Rows stay whole, since pieces of a few cells cost as much as the
  // row: where the contiguous dimension is cut, all cells are border, and nothing hides the exchange.
  std::array<isthmus::HaloRange, 3> split() const {
    const Cells widths{1, 1, cells[2]};
    const auto width = [&](std::size_t d, int side) { return wrapped[d] || at_wall(d, side) ? 0 : widths[d]; };
    std::array<isthmus::HaloRange, 3> made{};
    for (std::size_t d = 0; d < 3; ++d) made[d] = {width(d, -1), width(d, 1), 1, cells[d], length(d)};
    return made;
  }
};

template <class Do>
void each_cell(const isthmus::HaloBox& box, const Do& act) {
  for (std::int64_t i = box.first[0]; i <= box.last[0]; ++i)
    for (std::int64_t j = box.first[1]; j <= box.last[1]; ++j)
      for (std::int64_t k = box.first[2]; k <= box.last[2]; ++k) act(i, j, k);
}

}  // namespace lbm
#endif
