// A lattice-Boltzmann mini-app, D3Q19 in single precision, cut over all ranks along up to three dimensions: Taylor-Green vortices and the
// lid-driven cavity. Over each face of a part travel the 5 populations that cross it, over each edge 1, in one exchange of 18 fields with
// halos of their own; the interior hides it unless rows are cut. Where the whole is small enough rank 0 also computes it alone, without a library, and every
// part has to be the same to the last bit.
// Run: isthmus run -n 4 lbm [tgv or cavity] [cells] [steps or Reynolds number] [--exchange messages or one-sided]; options.hpp has the rest
#include <cmath>
#include <cstdio>
#include <isthmus/halo.hpp>
#include <isthmus/isthmus.hpp>
#include <stdexcept>
#include <string>

#include "cases.hpp"
#include "options.hpp"
#include "run.hpp"

namespace {

using lbm::Cavity, lbm::Cells, lbm::Options, lbm::Setup, lbm::TaylorGreen;
using Run = lbm::Run<lbm::D3Q19>;

// What one case has found, by all ranks alike.
struct Verdict {
  bool right = true;
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
  return {off <= flow.tolerance() && rate <= flow.tolerance(),
          format("energy left %.6f, by the law %.6f, off by %.4f %%, its rate by %.4f %% (allowed: %.4g %%)", left, law,
                 100 * off, 100 * rate, 100 * flow.tolerance())};
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
    if (!std::isfinite(profile[0])) return {false, "the flow has burst"};
    before = profile;
  }
  if (!steady) return {options.steps > 0, "not steady, so that no profile was compared"};
  if (!cavity.has_table()) return {true, "steady; there is no table for this Reynolds number"};
  const double off = cavity.deviation(profile);
  return {off <= cavity.tolerance(),
          format("steady, profiles off Ghia's by at most %.4f (allowed: %.4f)", off, cavity.tolerance())};
}

void report(const Options& options, const Setup& setup, const isthmus::HaloGrid& grid, const Run& run,
            const Verdict& verdict, const lbm::Compared& compared, double lost, std::int64_t bytes) {
  const auto dims = grid.dims();
  const int ranks = dims[0] * dims[1] * dims[2];
  const double updates = setup.all() * static_cast<double>(run.steps());
  const auto cells = [&](std::size_t d) { return static_cast<long long>(setup.cells[d]); };
  std::printf("%s: %s, %lld x %lld x %lld cells, %lld steps, %d x %d x %d ranks, %s\n", verdict.right ? "verified" : "wrong",
              options.cavity ? "cavity" : "tgv", cells(0), cells(1), cells(2), static_cast<long long>(run.steps()), dims[0],
              dims[1], dims[2], options.way == isthmus::HaloWay::messages ? "messages" : "one-sided");
  std::printf("%s\n%.2e of the mass lost; %s\n", verdict.text.c_str(), lost,
              !compared.done  ? "too large for one rank alone"
              : compared.same ? "the same to the last bit as of one rank alone"
                              : "NOT THE SAME as of one rank alone");
  std::printf("%.4f GLUPS, %.3f s, %lld bytes between ranks in a step", updates / run.seconds() / 1e9, run.seconds(),
              static_cast<long long>(bytes));
  if (compared.done)
    std::printf(", one rank alone %.4f GLUPS, efficiency %.2f", updates / compared.seconds / 1e9,
                compared.seconds / run.seconds() / ranks);
  std::printf("\n%s", run.text().c_str());
}

template <class Case>
bool solve(const isthmus::World& world, const Case& given, const Options& options) {
  const Setup& setup = given.setup();
  const isthmus::HaloGrid grid(world.comm(), options.grid,
                               std::array<int, 3>{!setup.walls[0], !setup.walls[1], !setup.walls[2]});
  const auto state = [&](const Cells& cell) { return given.state(cell); };
  Run run(world, grid, setup, options.way);
  run.flow.start(state);
  const double mass = run.sums().density;
  Verdict verdict = go(world, given, run, options);
  const double lost = std::abs(run.sums().density - mass) / setup.all();
  const lbm::Compared compared = lbm::compare(world, setup, run, state);
  // Per cell: half a unit in the last place of 1, and as a drift 2e-10 a step, of which a third is found.
  const double round_off = 6e-8 + 2e-10 * static_cast<double>(run.steps());
  verdict.right = verdict.right && lost <= round_off && compared.same;
  const std::int64_t bytes = run.bytes_of_a_step();
  if (world.rank() == 0) report(options, setup, grid, run, verdict, compared, lost, bytes);
  run.end();
  return verdict.right;
}

}  // namespace

int main(int argc, char** argv) try {
  const isthmus::World world;
  try {
    const Options options = lbm::read_options(argc, argv, world.size());
    const bool right = options.cavity ? solve(world, Cavity(options.cells, options.reynolds), options)
                                      : solve(world, TaylorGreen(options.cells), options);
    return right ? 0 : 1;
  } catch (const std::invalid_argument& wrong) {
    if (world.rank() == 0) std::fprintf(stderr, "lbm: %s\n%s", wrong.what(), lbm::kUsage);
    return 2;
  }
} catch (const isthmus::Error& error) {
  std::fprintf(stderr, "lbm: %s: %s\n", error.name(), error.what());
  return 1;
}
