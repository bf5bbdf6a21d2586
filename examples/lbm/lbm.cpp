// A lattice-Boltzmann mini-app, D3Q19 in single precision, cut over all ranks along up to three dimensions: Taylor-Green vortices and the
// lid-driven cavity. Over each face of a part travel the 5 populations that cross it, over each edge 1; the interior hides that unless rows are
// cut. Where the whole is small enough rank 0 also computes it alone, without a library, and every part has to be the same to the last bit.
//
// --device host: one exchange of 18 fields with halos of their own, by messages or one-sided.
// --device cuda: a kernel streams and collides, 19 populations read and 19 written; another one does the border ahead of the rest. By messages
// it is packed, sent and received by the host. One-sided, the border's kernel waits for the neighbours' flags, stores what crosses straight into
// their halos and sets its flags there; that needs a GPU for each rank. graph: isthmus::Halo in the stream, two steps in a CUDA graph. Kernels are
// compiled without contraction, so that the bits are the host's; rank 0's device also computes the whole alone, whose bits are compared
// by a checksum of each population and layer, and whose time gives speedup and efficiency. A copy of the same run is the roofline.
// Run: isthmus run -n 4 lbm --flow cavity --cells 64
//      isthmus run -n 2 lbm --device cuda --exchange one-sided --cells 512 --steps 200 --json lbm.json
#include <cmath>
#include <cstdio>
#include <isthmus/halo.hpp>
#include <isthmus/isthmus.hpp>
#include <string>

#include "cases.hpp"
#include "common/json_file.hpp"
#include "common/program.hpp"
#include "report.hpp"
#include "run.hpp"
#ifdef LBM_CUDA
#include "cuda_run.hpp"
#endif

namespace {

using example::Mistake;
using lbm::Cavity, lbm::Cells, lbm::Report, lbm::Run, lbm::Setup, lbm::TaylorGreen;

struct Options {
  std::string flow = "tgv", exchange = "messages", device = "host", json, spoil = "no";
  std::int64_t cells = 64, steps = 0;
  int padding = 0;
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

// A cavity has few layers along z, which are not cut unless that is asked for. On devices rows and then columns stay whole.
std::array<int, 3> grid_for(const isthmus::World& world, const Options& options) {
  std::array<int, 3> grid = options.grid;
  if (grid == std::array<int, 3>{}) {
    const bool is_cavity = options.flow == "cavity";
    if (is_cavity) grid[0] = 1;
    if (options.device == "cuda" && world.size() <= options.cells) grid = {is_cavity ? 1 : 0, is_cavity ? 0 : 1, 1};
  }
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

template <class AnyRun>
Verdict go(const isthmus::World& /*world*/, const TaylorGreen& flow, AnyRun& run, const Options& options) {
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
template <class AnyRun>
Verdict go(const isthmus::World& world, const Cavity& cavity, AnyRun& run, const Options& options) {
  constexpr std::int64_t kMostTurns = 300;
  std::vector<double> profile(static_cast<std::size_t>(2 * cavity.setup().cells[1])), before = profile;
  bool steady = false;
  if (options.steps > 0) run.advance(options.steps);
  for (std::int64_t turn = 0; options.steps == 0 && !steady && turn < kMostTurns; ++turn) {
    run.advance(cavity.turn());
    world.comm().allreduce(cavity.profile(run.mirrored(), run.level()), profile, isthmus::op::sum);
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

// As many updates as are repeated on the host.
double most_updates(const Options& options) { return options.device == "host" ? 4e8 : 5e7; }

template <class Case, class AnyRun>
bool solve(const isthmus::World& world, const Case& given, const Options& options, const isthmus::HaloGrid& grid,
           AnyRun& run) {
  const Setup& setup = given.setup();
  const double mass = run.sums().density;
  const Verdict verdict = go(world, given, run, options);
  Report report;
  report.lost = std::abs(run.sums().density - mass) / setup.all();
  if (options.spoil == "bit" && world.rank() == world.size() - 1) run.spoil();
  const bool small =
      setup.all() <= lbm::kMostCells && setup.all() * static_cast<double>(run.steps()) <= most_updates(options);
  if (small)
    report.host = lbm::compare(world, setup, run.mirrored(), run.level(), run.steps(),
                               [&](const Cells& cell) { return given.state(cell); });
  run.tell(report);
  // Per cell: half a unit in the last place of 1, and as a drift 2e-10 a step, of which a third is found.
  const double round_off = 6e-8 + 2e-10 * static_cast<double>(run.steps());
  const bool right = verdict.right && report.lost <= round_off && report.host.same && report.alone.same;
  report.verdict = !right ? "wrong" : verdict.known ? "verified" : "computed";
  report.text = verdict.text;
  report.flow = options.flow;
  report.exchange = options.exchange;
  report.cells = setup.cells;
  report.steps = run.steps();
  report.seconds = run.seconds();
  report.halos = run.text();
  const auto dims = grid.dims();
  std::copy_n(dims.begin(), 3, report.ranks.begin());
  if (world.rank() == 0) print(report);
  run.end();
  if (world.rank() == 0 && !options.json.empty()) write_json(report, options.json);
  return right;
}

template <class Case>
bool solve(const isthmus::World& world, const Case& given, const Options& options) {
  const Setup& setup = given.setup();
  const isthmus::HaloGrid grid(world.comm(), grid_for(world, options),
                               std::array<int, 3>{!setup.walls[0], !setup.walls[1], !setup.walls[2]});
  if (options.device == "cuda") {
#ifdef LBM_CUDA
    lbm::CudaRun run(world, grid, setup, given.vortices(), options.exchange, options.padding);
    return solve(world, given, options, grid, run);
#else
    throw Mistake("--device cuda cannot be used here: this lbm was built without CUDA; configure with -DISTHMUS_CUDA=ON");
#endif
  }
  if (options.exchange == "graph") throw Mistake("--exchange graph is of --device cuda alone");
  Run run(world, grid, setup, options.exchange == "messages" ? isthmus::HaloWay::messages : isthmus::HaloWay::one_sided);
  run.flow.start([&](const Cells& cell) { return given.state(cell); });
  return solve(world, given, options, grid, run);
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
  arguments.word("--exchange", options.exchange, {"messages", "one-sided", "graph"}, "how halos come; graph: with cuda");
  arguments.word("--device", options.device, {"host", "cuda"}, "where cells are");
  arguments.number("--padding", options.padding, 0, 1 << 20, "of cuda: elements between populations, a multiple of 32");
  arguments.add("--json", "all figures into this file", "none", [&](const std::string& text) { options.json = text; });
  arguments.add("--grid", "ranks along z, y and x, of which 0 are chosen", "0x0x0",
                [&](const std::string& text) { options.grid = grid_of(text); });
  arguments.word("--spoil", options.spoil, {"no", "bit"}, "");
  return example::run(arguments, argc, argv, [&](const isthmus::World& world) {
    example::must_be_writable(world.comm(), options.json);
    return options.flow == "cavity" ? solve(world, Cavity(options.cells, options.reynolds), options)
                                    : solve(world, TaylorGreen(options.cells), options);
  });
}
