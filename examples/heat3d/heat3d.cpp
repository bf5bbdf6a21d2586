// Heat in a periodic box that is cut over all ranks: a stencil of seven points, whose interior hides the exchange of halos. A wave is an
// eigenvector of such a stencil, so that every cell is known at every time, and compared at the end.
// Run: isthmus run -n 4 heat3d [cells in each direction] [steps]
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <isthmus/halo.hpp>
#include <isthmus/isthmus.hpp>
#include <numbers>
#include <vector>

namespace {

constexpr double kFlow = 0.1;  // of heat between two neighbours, in a step

// A rank's cells, with a layer of the neighbours' around them.
struct Part {
  std::array<std::int64_t, 3> first{}, cells{};  // of all; how many
  std::array<isthmus::HaloRange, 3> ranges{};
  std::size_t at(std::int64_t i, std::int64_t j, std::int64_t k) const {
    return static_cast<std::size_t>((i * ranges[1].total_length + j) * ranges[2].total_length + k);
  }
  std::size_t size() const { return at(ranges[0].total_length, 0, 0); }
};

Part part_of(const isthmus::HaloGrid& grid, std::int64_t all) {
  Part part;
  for (std::size_t d = 0; d < 3; ++d) {
    const std::int64_t ranks = grid.dims()[d], coord = grid.coords()[d];
    part.first[d] = all * coord / ranks;
    part.cells[d] = all * (coord + 1) / ranks - part.first[d];
    part.ranges[d] = {1, 1, 1, part.cells[d], part.cells[d] + 2};
  }
  return part;
}

template <class Cell>
void each_cell(const isthmus::HaloBox& box, const Cell& cell) {
  for (std::int64_t i = box.first[0]; i <= box.last[0]; ++i)
    for (std::int64_t j = box.first[1]; j <= box.last[1]; ++j)
      for (std::int64_t k = box.first[2]; k <= box.last[2]; ++k) cell(i, j, k);
}

void sweep(const Part& part, const isthmus::HaloBox& box, const std::vector<double>& from, std::vector<double>& to) {
  each_cell(box, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
    const double around = from[part.at(i - 1, j, k)] + from[part.at(i + 1, j, k)] + from[part.at(i, j - 1, k)] +
                          from[part.at(i, j + 1, k)] + from[part.at(i, j, k - 1)] + from[part.at(i, j, k + 1)];
    to[part.at(i, j, k)] = from[part.at(i, j, k)] + kFlow * (around - 6 * from[part.at(i, j, k)]);
  });
}

}  // namespace

int main(int argc, char** argv) try {
  const std::int64_t all = argc > 1 ? std::atoll(argv[1]) : 48;
  const int steps = argc > 2 ? std::atoi(argv[2]) : 100;
  const isthmus::World world;
  const isthmus::HaloGrid grid(world.comm(), std::array{0, 0, 0}, std::array{1, 1, 1});
  const Part part = part_of(grid, all);
  const double wave = 2 * std::numbers::pi / static_cast<double>(all);
  const auto start = [&](std::int64_t i, std::int64_t j, std::int64_t k) {
    const std::array<std::int64_t, 3> index{i, j, k};
    double value = 1;
    for (std::size_t d = 0; d < 3; ++d) value *= std::cos(wave * static_cast<double>(part.first[d] + index[d] - 1));
    return value;
  };
  const isthmus::HaloBox inner{{1, 1, 1}, {part.cells[0], part.cells[1], part.cells[2]}};

  std::array<std::vector<double>, 2> levels{std::vector<double>(part.size()), std::vector<double>(part.size())};
  each_cell(inner, [&](auto i, auto j, auto k) { levels[0][part.at(i, j, k)] = start(i, j, k); });
  const std::array fields{isthmus::HaloField::of(levels[0], part.ranges), isthmus::HaloField::of(levels[1], part.ranges)};
  const isthmus::Halo halo(grid, std::span(&fields[0], 1), {1});  // the stencil reads faces alone
  for (int step = 0; step < steps; ++step) {
    const std::size_t now = static_cast<std::size_t>(step % 2);
    halo.set_fields(std::span(&fields[now], 1));
    halo.overlap(part.ranges, [&](const isthmus::HaloBox& box) { sweep(part, box, levels[now], levels[1 - now]); });
  }

  const double shrunk = std::pow(1 + 6 * kFlow * (std::cos(wave) - 1), steps);
  double worst = 0;
  each_cell(inner, [&](auto i, auto j, auto k) {
    const double found = levels[static_cast<std::size_t>(steps % 2)][part.at(i, j, k)];
    worst = std::max(worst, std::abs(found - shrunk * start(i, j, k)));
  });
  std::vector<double> of_all(1);
  world.comm().allreduce(std::vector{worst}, of_all, isthmus::op::max);
  const bool right = of_all[0] < 1e-12 * steps;
  if (world.rank() == 0)
    std::printf("%s: %lld cells, %d steps, %d ranks, off by at most %.1e\n%s", right ? "verified" : "wrong",
                static_cast<long long>(all * all * all), steps, world.size(), of_all[0], halo.text().c_str());
  return right ? 0 : 1;
} catch (const isthmus::Error& error) {
  std::fprintf(stderr, "%s: %s\n", error.name(), error.what());
  return 1;
}
