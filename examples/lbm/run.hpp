// Steps of a flow that is cut over ranks, and those of one rank by itself, which says whether they are right.
#ifndef LBM_RUN_HPP
#define LBM_RUN_HPP

#include <cmath>
#include <cstring>
#include <isthmus/halo.hpp>
#include <isthmus/isthmus.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/program.hpp"
#include "flow.hpp"
#include "report.hpp"

namespace lbm {

class Run {
 public:
  Run(const isthmus::World& world, const isthmus::HaloGrid& grid, const Setup& setup, isthmus::HaloWay way)
      : flow(Part(setup, grid.dims(), grid.coords()), setup),
        world_(world),
        way_(way),
        fields_{flow.fields(0), flow.fields(1)},
        halo_(grid, fields_[0], {reach<D3Q19>(), isthmus::HaloPacking::automatic, way}) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Fluid flow;

  void advance(std::int64_t count) {
    const auto split = flow.part().split();
    seconds_ += example::slowest_seconds(world_.comm(), [&] {
      for (std::int64_t n = 0; n < count; ++n, ++steps_) {
        halo_.set_fields(fields_[level()]);
        flow.wrap(level());
        flow.bounce_back(level());
        halo_.overlap(split, [&](const isthmus::HaloBox& box) { flow.sweep(level(), box); });
      }
    });
  }
  std::size_t level() const { return static_cast<std::size_t>(steps_ % 2); }
  std::int64_t steps() const { return steps_; }
  double seconds() const { return seconds_; }  // of the slowest rank
  std::string text() const { return halo_.text(); }
  const Fluid& mirrored() const { return flow; }
  // Another last bit of a cell, as checks have to notice.
  void spoil() {
    float& spoilt = flow.population(level(), 1)[flow.part().at(1, 1, 1)];
    spoilt = std::nextafter(spoilt, 2.0F);
  }
  void tell(Report& /*report*/) const {}
  // Collective, where the exchange is one-sided.
  void end() {
    if (way_ == isthmus::HaloWay::one_sided) halo_.destroy();
  }

  Sums sums() const {
    const Sums mine = flow.sums(level());
    return {example::sum(world_.comm(), mine.density), example::sum(world_.comm(), mine.energy)};
  }

 private:
  const isthmus::World& world_;
  const isthmus::HaloWay way_;
  std::array<std::vector<isthmus::HaloField>, 2> fields_;
  isthmus::Halo halo_;
  std::int64_t steps_ = 0;
  double seconds_ = 0;
};

// The whole box by one rank, without a library.
class Alone {
 public:
  explicit Alone(const Setup& setup) : flow(Part(setup, {1, 1, 1}, {0, 0, 0}), setup) {}
  double advance(std::int64_t count) {
    const example::Clock clock;
    for (std::int64_t n = 0; n < count; ++n) {
      const auto level = static_cast<std::size_t>(n % 2);
      flow.wrap(level);
      flow.bounce_back(level);
      flow.sweep(level, flow.part().inner());
    }
    return clock.seconds();
  }
  Fluid flow;
};

// Boxes of no more cells, and runs of no more updates, are repeated.
constexpr double kMostCells = 4e6;

// Rank 0 computes the whole box, and every rank compares its cells.
template <class StateOf>
Compared compare(const isthmus::World& world, const Setup& setup, const Fluid& flow, std::size_t level, std::int64_t steps,
                 const StateOf& state_of) {
  Compared found;
  found.done = true;
  std::optional<Alone> alone;
  if (world.rank() == 0) {
    alone.emplace(setup);
    alone->flow.start(state_of);
    found.seconds = alone->advance(steps);
  }
  const Part whole(setup, {1, 1, 1}, {0, 0, 0}), &part = flow.part();
  std::vector<float> population(static_cast<std::size_t>(whole.size()));
  for (std::size_t q = 0; q < Fluid::kCount; ++q) {
    if (alone) std::copy_n(alone->flow.population(level, q), whole.size(), population.data());
    world.comm().bcast(population, 0);
    for (std::int64_t i = 1; i <= part.cells[0]; ++i)
      for (std::int64_t j = 1; j <= part.cells[1]; ++j) {
        const float* const there = population.data() + whole.at(part.first[0] + i, part.first[1] + j, part.first[2] + 1);
        const float* const here = flow.population(level, q) + part.at(i, j, 1);
        if (std::memcmp(here, there, static_cast<std::size_t>(part.cells[2]) * sizeof(float)) != 0) found.same = false;
      }
  }
  found.same = example::sum(world.comm(), found.same ? 0 : 1) == 0;
  return found;
}

}  // namespace lbm
#endif
