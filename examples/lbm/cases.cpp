#include "cases.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <string>

#include "common/program.hpp"

namespace lbm {
namespace {

constexpr double kLid = 0.1;

// Places and velocities of the tables; what the paper has misprinted is left out.
struct Known {
  double at, of_100, of_400;
};
constexpr double kMisprint = 9;
constexpr Known kAlongY[] = {{.9766, .84123, .75837},   {.9688, .78871, .68439},   {.9609, .73722, .61756},
                             {.9531, .68717, .55892},   {.8516, .23151, .29093},   {.7344, .00332, .16256},
                             {.6172, -.13641, .02135},  {.5, -.20581, -.11477},    {.4531, -.21090, -.17119},
                             {.2813, -.15662, -.32726}, {.1719, -.10150, -.24299}, {.1016, -.06434, -.14612},
                             {.0703, -.04775, -.10338}, {.0625, -.04192, -.09266}, {.0547, -.03717, -.08186}};
constexpr Known kAlongX[] = {{.9688, -.05906, -.12146}, {.9609, -.07391, -.15663},   {.9531, -.08864, -.19254},
                             {.9453, -.10313, -.22847}, {.9063, -.16914, kMisprint}, {.8594, -.22445, -.44993},
                             {.8047, -.24533, -.38598}, {.5, .05454, .05186},        {.2344, .17527, .30174},
                             {.2266, .17507, .30203},   {.1563, .16077, .28124},     {.0938, .12317, .22965},
                             {.0781, .10890, .20920},   {.0703, .10091, .19713},     {.0625, .09233, .18360}};

// Linear between the middles of cells; walls are half a cell beyond the last ones.
double between(std::span<const double> cells, double low, double high, double at) {
  const auto count = static_cast<double>(cells.size());
  const double place = at * count - 0.5;
  if (place < 0) return low + (cells.front() - low) * (place + 0.5) * 2;
  if (place > count - 1) return cells.back() + (high - cells.back()) * (place - count + 1) * 2;
  const auto before = std::min(static_cast<std::size_t>(place), cells.size() - 2);
  const double part = place - static_cast<double>(before);
  return cells[before] * (1 - part) + cells[before + 1] * part;
}

}  // namespace

Angle angle_at(const Vortices& of, std::int64_t place) {
  const double angle = of.wave * (static_cast<double>(place) + 0.5);
  return {std::sin(angle), std::cos(angle), std::cos(2 * angle)};
}

double across_at(const Vortices& of, std::int64_t place) {
  return std::sin(of.wave * (static_cast<double>(place) + 0.5) + 0.3);
}

TaylorGreen::TaylorGreen(std::int64_t length)
    : vortices_{0.64 / static_cast<double>(length), 2 * std::numbers::pi / static_cast<double>(length)} {
  setup_.cells = {length, length, length};
  setup_.tau = 0.8;
}

State TaylorGreen::state(const Cells& cell) const {
  return vortex(vortices_, angle_at(vortices_, cell[2]), angle_at(vortices_, cell[1]), across_at(vortices_, cell[0]));
}

double TaylorGreen::energy_left(std::int64_t steps) const {
  return std::exp(-4 * setup_.viscosity() * vortices_.wave * vortices_.wave * static_cast<double>(steps));
}

std::int64_t TaylorGreen::usual_steps() const { return std::max<std::int64_t>(setup_.cells[0] * setup_.cells[0] / 40, 1); }

double TaylorGreen::tolerance(std::int64_t steps) const {
  const double ratio = 64 / static_cast<double>(setup_.cells[0]);
  const bool usual = steps == usual_steps() && setup_.cells[0] >= 12;
  return (usual ? 0.0005 : 0.005) * std::max(1.0, ratio * ratio);
}

Cavity::Cavity(std::int64_t cells, double reynolds) : reynolds_(reynolds) {
  setup_.cells = {4, cells, cells};
  setup_.walls = {false, true, true};
  setup_.lid = kLid;
  setup_.tau = 0.5 + 3 * kLid * static_cast<double>(cells) / reynolds;
  if (setup_.tau < 0.51)
    throw example::Mistake("Re is " + std::to_string(reynolds) + " and n " + std::to_string(cells) +
                           ", where this collision is not stable (tau is " + std::to_string(setup_.tau) +
                           "); take more cells, at least " + std::to_string(std::lround(reynolds / 30) + 1));
}

std::int64_t Cavity::turn() const { return std::lround(static_cast<double>(setup_.cells[1]) / kLid); }

std::vector<double> Cavity::profile(const Flow<D3Q19>& flow, std::size_t level) const {
  const auto cells = static_cast<std::size_t>(setup_.cells[1]);
  std::vector<double> found(2 * cells, 0.0);
  const Part& part = flow.part();
  if (part.first[0] != 0) return found;
  // The middle lies in a cell, or between two.
  for (const std::int64_t middle : {(setup_.cells[1] - 1) / 2, setup_.cells[1] / 2}) {
    const auto add = [&](std::size_t along, std::size_t across, std::size_t at) {
      const std::int64_t line = middle - part.first[across] + 1;
      if (line < 1 || line > part.cells[across]) return;
      for (std::int64_t n = 1; n <= part.cells[along]; ++n) {
        const double velocity = flow.velocity(level, part.at(1, along == 1 ? n : line, along == 1 ? line : n))[across];
        found[at + static_cast<std::size_t>(part.first[along] + n - 1)] += 0.5 * velocity / kLid;
      }
    };
    add(1, 2, 0);
    add(2, 1, cells);
  }
  return found;
}

double Cavity::deviation(const std::vector<double>& profile) const {
  const auto u = std::span(profile).first(profile.size() / 2), v = std::span(profile).last(profile.size() / 2);
  double worst = 0;
  const auto look = [&](const Known& known, std::span<const double> found, double far) {
    const double value = reynolds_ == 100 ? known.of_100 : known.of_400;
    const double off = std::abs(between(found, 0, far, known.at) - value);
    if (value != kMisprint) worst = std::max(worst, off);
  };
  for (const Known& known : kAlongY) look(known, u, 1);
  for (const Known& known : kAlongX) look(known, v, 0);
  return worst;
}

double Cavity::tolerance() const {
  const double ratio = 32 / static_cast<double>(setup_.cells[1]);
  return 0.02 * std::max(1.0, ratio * ratio * reynolds_ / 100);
}

}  // namespace lbm
