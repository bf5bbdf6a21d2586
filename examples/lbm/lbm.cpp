// A lattice-Boltzmann mini-app, D3Q19 in single precision, cut over all ranks along up to three dimensions: Taylor-Green vortices and the
// lid-driven cavity. Over each face of a part travel the 5 populations that cross it, over each edge 1, in one exchange of 18 fields with
// halos of their own; the interior hides it unless rows are cut. Where the whole is small enough rank 0 also computes it alone, without a library, and every
// part has to be the same to the last bit.
// Run: isthmus run -n 4 lbm --flow cavity --cells 64
#include <cmath>
#include <cstdio>
#include <isthmus/halo.hpp>
#include <isthmus/isthmus.hpp>
#include <string>

#include "cases.hpp"
#include "common/program.hpp"
#include "run.hpp"

namespace {

using example::Mistake;
using lbm::Cavity, lbm::Cells, lbm::Run, lbm::Setup, lbm::TaylorGreen;

struct Options {
  std::string flow = "tgv", exchange = "messages", spoil = "no";
  std::int64_t cells = 64, steps = 0;
  double reynolds = 100;
  std::array<int, 3> grid{};
};

std::array<int, 3> grid_of(const std::string& text) {
  std::array<int, 3> made{};
  char behind = 0;
  const int found = std::sscanf(text.c_str(), "%5dx%5dx%5d%c", &made[0], &made[1], &made[2], &behind);
  if (found != 3 || *std::min_element(made.begin(), made.end()) < 0)
    throw Mistake("--grid is \"" + text + "\", and has to be AxBxC, such as 1x2x2, where 0 is chosen");
  return made;
}

// A cavity has few layers along z, which are not cut unless that is asked for.
std::array<int, 3> grid_for(const isthmus::World& world, const Options& options) {
  std::array<int, 3> grid = options.grid;
  if (options.flow == "cavity" && grid == std::array<int, 3>{}) grid[0] = 1;
  std::int64_t product = 1;
  for (const int ranks : grid) product *= std::max(ranks, 1);
  const bool chosen = std::find(grid.begin(), grid.end(), 0) != grid.end();
  if (chosen ? world.size() % product != 0 : product != world.size())
    throw Mistake("--grid is of " + std::to_string(product) + " ranks, and " + std::to_string(world.size()) +
                  " are running");
  return grid;
}

// What one case has found, by all ranks alike.
struct Verdict {
  bool right = true;
  bool known = true;  // from elsewhere
  std::string text;
};

std::string format(const char* form, auto... values) {
  std::string text(200, '\0');
  text.resize(static_cast<std::size_t>(std::snprintf(text.data(), text.size(), form, values...)));
  return text;
}

Verdict go(const isthmus::World& /*world*/, const TaylorGreen& flow, Run& run, const Options& options) {
  const double before = run.sums().energy;
  run.advance(options.steps > 0 ? options.steps : flow.usual_steps());
  const double left = run.sums().energy / before, law = flow.energy_left(run.steps());
  const double off = std::abs(left / law - 1), rate = std::abs(std::log(left) / std::log(law) - 1);
  const double allowed = flow.tolerance(run.steps());
  return {off <= allowed && rate <= allowed, true,
          format("energy left %.6f, by the law %.6f, off by %.4f %%, its rate by %.4f %% (allowed: %.4g %%)", left, law,
                 100 * off, 100 * rate, 100 * allowed)};
}

// Until the profile moves by less than a ten-thousandth of the lid's velocity while the lid goes its length.
Verdict go(const isthmus::World& world, const Cavity& cavity, Run& run, const Options& options) {
  constexpr std::int64_t kMostTurns = 300;
  std::vector<double> profile(static_cast<std::size_t>(2 * cavity.setup().cells[1])), before = profile;
  bool steady = false;
  if (options.steps > 0) run.advance(options.steps);
  for (std::int64_t turn = 0; options.steps == 0 && !steady && turn < kMostTurns; ++turn) {
    run.advance(cavity.turn());
    world.comm().allreduce(cavity.profile(run.flow, run.level()), profile, isthmus::op::sum);
    steady = true;
    for (std::size_t n = 0; n < profile.size(); ++n) steady = steady && std::abs(profile[n] - before[n]) < 1e-4;
    if (!std::isfinite(profile[0])) return {false, false, "the flow has diverged"};
    before = profile;
  }
  if (!steady) return {options.steps > 0, false, "not steady, so that no profile was compared"};
  if (!cavity.has_table()) return {true, false, "steady; there is no table for this Reynolds number"};
  const double off = cavity.deviation(profile);
  return {off <= cavity.tolerance(), true,
          format("steady, profiles off Ghia's by at most %.4f (allowed: %.4f)", off, cavity.tolerance())};
}

void report(const Options& options, const Setup& setup, const isthmus::HaloGrid& grid, const Run& run,
            const Verdict& verdict, const lbm::Compared& compared, double lost) {
  const auto dims = grid.dims();
  const int ranks = dims[0] * dims[1] * dims[2];
  const double updates = setup.all() * static_cast<double>(run.steps());
  const auto cells = [&](std::size_t d) { return static_cast<long long>(setup.cells[d]); };
  std::printf("%s: %s, %lld x %lld x %lld cells, %lld steps, %d x %d x %d ranks, %s\n",
              !verdict.right  ? "wrong"
              : verdict.known ? "verified"
                              : "computed",
              options.flow.c_str(), cells(0), cells(1), cells(2), static_cast<long long>(run.steps()), dims[0], dims[1],
              dims[2], options.exchange.c_str());
  std::printf("%s\n%.2e of the mass lost; %s\n", verdict.text.c_str(), lost,
              !compared.done  ? "too many updates to repeat by one rank"
              : compared.same ? "the same to the last bit as of one rank alone"
                              : "NOT THE SAME as of one rank alone");
  std::printf("%.4f GLUPS, %.3f s", updates / run.seconds() / 1e9, run.seconds());
  if (compared.done)
    std::printf(", one rank alone %.4f GLUPS, efficiency %.2f", updates / compared.seconds / 1e9,
                compared.seconds / run.seconds() / ranks);
  std::printf("\n%s", run.text().c_str());
}

template <class Case>
bool solve(const isthmus::World& world, const Case& given, const Options& options) {
  const Setup& setup = given.setup();
  const isthmus::HaloGrid grid(world.comm(), grid_for(world, options),
                               std::array<int, 3>{!setup.walls[0], !setup.walls[1], !setup.walls[2]});
  const auto state = [&](const Cells& cell) { return given.state(cell); };
  Run run(world, grid, setup, options.exchange == "messages" ? isthmus::HaloWay::messages : isthmus::HaloWay::one_sided);
  run.flow.start(state);
  const double mass = run.sums().density;
  Verdict verdict = go(world, given, run, options);
  const double lost = std::abs(run.sums().density - mass) / setup.all();
  if (options.spoil == "bit" && world.rank() == world.size() - 1) {
    float& spoilt = run.flow.population(run.level(), 1)[run.flow.part().at(1, 1, 1)];
    spoilt = std::nextafter(spoilt, 2.0F);
  }
  const lbm::Compared compared = lbm::compare(world, setup, run, state);
  // Per cell: half a unit in the last place of 1, and as a drift 2e-10 a step, of which a third is found.
  const double round_off = 6e-8 + 2e-10 * static_cast<double>(run.steps());
  verdict.right = verdict.right && lost <= round_off && compared.same;
  if (world.rank() == 0) report(options, setup, grid, run, verdict, compared, lost);
  run.end();
  return verdict.right;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  example::Arguments arguments("lbm",
                               "Lattice Boltzmann (D3Q19): vortices in a periodic cube, or a cavity under a moving lid.");
  arguments.word("--flow", options.flow, {"tgv", "cavity"}, "vortices or the cavity");
  arguments.number<std::int64_t>("--cells", options.cells, 8, 1024, "each way");
  arguments.number<std::int64_t>("--steps", options.steps, 0, 1000000000,
                                 "0: the vortices' usual ones; until a cavity is steady");
  arguments.number("--reynolds", options.reynolds, 1.0, 10000.0, "of the cavity, compared with tables at 100 and 400");
  arguments.word("--exchange", options.exchange, {"messages", "one-sided"}, "how halos come");
  arguments.add("--grid", "ranks along z, y and x, of which 0 are chosen", "0x0x0",
                [&](const std::string& text) { options.grid = grid_of(text); });
  arguments.word("--spoil", options.spoil, {"no", "bit"}, "");
  return example::run(arguments, argc, argv, [&](const isthmus::World& world) {
    return options.flow == "cavity" ? solve(world, Cavity(options.cells, options.reynolds), options)
                                    : solve(world, TaylorGreen(options.cells), options);
  });
}
