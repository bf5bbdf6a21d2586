// Steps of a flow that is cut over ranks, and those of one rank by itself, which says whether they are right.
#ifndef LBM_RUN_HPP
#define LBM_RUN_HPP

#include <chrono>
#include <cstring>
#include <isthmus/halo.hpp>
#include <isthmus/isthmus.hpp>
#include <optional>
#include <string>
#include <vector>

#include "flow.hpp"

namespace lbm {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

template <class Found>
Found over_all(const isthmus::World& world, Found mine, const isthmus::Operation& op) {
  std::vector<Found> found(1);
  world.comm().allreduce(std::vector{mine}, found, op);
  return found[0];
}

template <class Lattice>
class Run {
 public:
  Run(const isthmus::World& world, const isthmus::HaloGrid& grid, const Setup& setup, isthmus::HaloWay way)
      : flow(Part(setup, grid.dims(), grid.coords()), setup),
        world_(world),
        grid_(grid),
        way_(way),
        fields_{flow.fields(0), flow.fields(1)},
        halo_(grid, fields_[0], {reach<Lattice>(), isthmus::HaloPacking::automatic, way}) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Flow<Lattice> flow;

  void advance(std::int64_t count) {
    world_.comm().barrier();
    const Stopwatch watch;
    const auto split = flow.part().split();
    for (std::int64_t n = 0; n < count; ++n) {
      halo_.set_fields(fields_[level()]);
      flow.wrap(level());
      flow.reflect(level());
      halo_.overlap(split, [&](const isthmus::HaloBox& box) { flow.sweep(level(), box); });
      ++steps_;
    }
    seconds_ += over_all(world_, watch.seconds(), isthmus::op::max);
  }
  std::size_t level() const { return static_cast<std::size_t>(steps_ % 2); }
  std::int64_t steps() const { return steps_; }
  double seconds() const { return seconds_; }  // of the slowest rank
  std::string text() const { return halo_.text(); }
  // Collective, where the exchange is one-sided.
  void end() {
    if (way_ == isthmus::HaloWay::one_sided) halo_.destroy();
  }

  Sums sums() const {
    const Sums mine = flow.sums(level());
    return {over_all(world_, mine.density, isthmus::op::sum), over_all(world_, mine.energy, isthmus::op::sum)};
  }
  // What all ranks together send to others in a step.
  std::int64_t bytes_of_a_step() const {
    std::int64_t bytes = 0;
    each_cell({{-1, -1, -1}, {1, 1, 1}}, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
      const Velocity to{static_cast<int>(i), static_cast<int>(j), static_cast<int>(k)};
      const int moves = static_cast<int>(i * i + j * j + k * k);
      if (moves == 0 || moves > reach<Lattice>()) return;
      const int rank = grid_.neighbour(to);
      if (rank == isthmus::proc_null || rank == world_.rank()) return;
      for (const Velocity& velocity : Lattice::kVelocities) bytes += crossing(velocity, to);
    });
    return over_all(world_, bytes, isthmus::op::sum);
  }

 private:
  std::int64_t crossing(const Velocity& velocity, const Velocity& to) const {
    const Part& part = flow.part();
    std::int64_t bytes = sizeof(float);
    for (std::size_t d = 0; d < 3; ++d) {
      if (to[d] == 0)
        bytes *= part.wrapped[d] ? part.length(d) : part.cells[d];
      else
        bytes *= !part.wrapped[d] && to[d] == velocity[d] ? 1 : 0;
    }
    return bytes;
  }

  const isthmus::World& world_;
  const isthmus::HaloGrid& grid_;
  const isthmus::HaloWay way_;
  std::array<std::vector<isthmus::HaloField>, 2> fields_;
  isthmus::Halo halo_;
  std::int64_t steps_ = 0;
  double seconds_ = 0;
};

// The whole box by one rank, without a library.
template <class Lattice>
class Alone {
 public:
  explicit Alone(const Setup& setup) : flow(Part(setup, {1, 1, 1}, {0, 0, 0}), setup) {}
  double advance(std::int64_t count) {
    const Stopwatch watch;
    for (std::int64_t n = 0; n < count; ++n) {
      const auto level = static_cast<std::size_t>(n % 2);
      flow.wrap(level);
      flow.reflect(level);
      flow.sweep(level, flow.part().inner());
    }
    return watch.seconds();
  }
  Flow<Lattice> flow;
};

struct Compared {
  bool done = false, same = true;
  double seconds = 0;  // of the one rank
};

// Rank 0 computes the whole box, and every rank compares its cells. It is not made of more than kMostCells, or more updates than kMost.
template <class Lattice, class StateOf>
Compared compare(const isthmus::World& world, const Setup& setup, const Run<Lattice>& run, const StateOf& state_of) {
  constexpr double kMostCells = 4e6, kMost = 4e8;
  Compared found;
  found.done = setup.all() <= kMostCells && setup.all() * static_cast<double>(run.steps()) <= kMost;
  if (!found.done) return found;
  std::optional<Alone<Lattice>> alone;
  if (world.rank() == 0) {
    alone.emplace(setup);
    alone->flow.start(state_of);
    found.seconds = alone->advance(run.steps());
  }
  const Part whole(setup, {1, 1, 1}, {0, 0, 0}), &part = run.flow.part();
  std::vector<float> population(static_cast<std::size_t>(whole.size()));
  for (std::size_t q = 0; q < Lattice::kCount; ++q) {
    if (alone) std::copy_n(alone->flow.population(run.level(), q), whole.size(), population.data());
    world.comm().bcast(population, 0);
    for (std::int64_t i = 1; i <= part.cells[0]; ++i)
      for (std::int64_t j = 1; j <= part.cells[1]; ++j) {
        const float* const there = population.data() + whole.at(part.first[0] + i, part.first[1] + j, part.first[2] + 1);
        const float* const here = run.flow.population(run.level(), q) + part.at(i, j, 1);
        if (std::memcmp(here, there, static_cast<std::size_t>(part.cells[2]) * sizeof(float)) != 0) found.same = false;
      }
  }
  found.same = over_all(world, found.same ? 1 : 0, isthmus::op::min) != 0;
  return found;
}

}  // namespace lbm
#endif
