// The Himeno benchmark: Poisson's equation in three dimensions by Jacobi's method, with 19 points and coefficients of each cell, written from
// its formulas. The box is cut over all ranks; the interior hides the exchange of halos, faces and edges.
//
// On the host (--device host) up to size S every rank also computes the whole box by itself, and its own cells have to be the same to the last bit.
//
// On GPUs (--device cuda, one for each rank) three ways to exchange are compared by --exchange all: "messages", which the processor sends in each
// iteration; "stream", halos and sums that CUDA streams exchange by themselves, many iterations in one graph; both of them in one sweep and with
// the border first, whose way the interior hides (--overlap both, yes or no); and "kernel", one kernel for all iterations, which stores its
// border straight into the neighbours' halos and waits for nothing but their flags, or keeps the coefficients in the multiprocessors as well,
// where there are few enough ("kernel, coefficients kept"). Every way makes one sum over all cells in each iteration.
// Every rank also computes the whole box by itself on its GPU, and where that takes seconds at most on its processor: cells are the same
// to the last bit, and sums within 1e-6. MFLOPS are medians of three runs; efficiency is beside that one rank.
// Run: isthmus run -n 4 himeno [XS, S, M, L or XL] [iterations] [b, of which 0 is the benchmark's and leaves edges unused]
//      isthmus run -n 2 himeno S 1000 --device cuda --exchange all --json himeno.json
#include <charconv>
#include <cstdio>
#include <isthmus/halo.hpp>
#include <isthmus/isthmus.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "common/json_file.hpp"
#include "common/program.hpp"
#include "host.hpp"
#include "options.hpp"

namespace {

using example::Mistake, himeno::Himeno, himeno::Options, himeno::Part;

struct Found {
  double gosa = 0;     // of the last iteration, of all ranks
  double seconds = 0;  // of the slowest rank
};

Found run(const isthmus::World& world, const isthmus::HaloGrid& grid, Himeno& himeno, int iterations, std::string& text) {
  const auto& ranges = himeno.part().ranges;
  const std::array fields{isthmus::HaloField::of(himeno.p[0], ranges), isthmus::HaloField::of(himeno.p[1], ranges)};
  const isthmus::Halo halo(grid, std::span(&fields[0], 1), {2});  // faces and edges
  text = halo.text();
  std::vector<double> mine(1), sum(1);
  const double seconds = example::slowest_seconds(world.comm(), [&] {
    for (int n = 0; n < iterations; ++n) {
      const auto now = static_cast<std::size_t>(n % 2);
      halo.set_fields(std::span(&fields[now], 1));
      mine[0] = 0;
      halo.overlap(ranges, [&](const isthmus::HaloBox& box) { mine[0] += himeno.sweep(now, box); });
      world.comm().allreduce(mine, sum, isthmus::op::sum);
    }
  });
  return {sum[0], seconds};
}

// With the one-rank run and with what is published, where there is such a thing. All ranks say the same.
bool verify(const isthmus::World& world, const Himeno& cut, const Options& options, const Found& found) {
  const auto b = static_cast<float>(options.b);
  bool right = himeno::as_published(options.size, options.iterations, b, found.gosa);
  if (options.size.cells[0] <= 64) {
    Himeno whole(Part(options.size, {1, 1, 1}, {0, 0, 0}), b);
    const double gosa = whole.go_alone(options.iterations);
    const auto level = static_cast<std::size_t>(options.iterations % 2);
    right = himeno::same_bits(cut.part(), cut.p[level], whole, level) && himeno::close_to(found.gosa, gosa, 1e-6) && right;
  }
  return example::largest(world.comm(), right ? 0 : 1) == 0;
}

bool run_host(const isthmus::World& world, const isthmus::HaloGrid& grid, const Options& options) {
  Himeno himeno(Part(options.size, grid.dims(), grid.coords()), static_cast<float>(options.b));
  std::string text;
  const Found found = run(world, grid, himeno, options.iterations, text);
  if (options.spoil == "bit" && world.rank() == world.size() - 1) {
    const isthmus::HaloBox box = himeno.part().inner();
    float& spoilt =
        himeno.p[static_cast<std::size_t>(options.iterations % 2)][himeno.part().at(box.last[0], box.last[1], box.last[2])];
    spoilt = std::nextafter(spoilt, 2.0F);
  }
  const bool right = verify(world, himeno, options, found);
  if (world.rank() == 0)
    std::printf("%s: size %s, %d iterations, %d x %d x %d ranks, gosa %.6e, %.0f MFLOPS\n%s", right ? "verified" : "wrong",
                options.size.name, options.iterations, grid.dims()[0], grid.dims()[1], grid.dims()[2], found.gosa,
                options.size.flop(options.iterations) / found.seconds / 1e6, text.c_str());
  return right;
}

himeno::Size size_of(const std::string& name) {
  const auto& sizes = himeno::kSizes;
  const auto size = std::find_if(sizes.begin(), sizes.end(), [&](const himeno::Size& each) { return name == each.name; });
  if (size == sizes.end()) throw Mistake("size is " + name + "; sizes are XS, S, M, L and XL");
  return *size;
}

std::array<int, 3> grid_of(const std::string& text) {
  std::array<int, 3> made{};
  const char *at = text.data(), *const end = at + text.size();
  bool right = true;
  for (std::size_t d = 0; d < 3 && right; ++d) {
    const auto [behind, error] = std::from_chars(at, end, made[d]);
    right =
        error == std::errc() && made[d] >= 0 && made[d] <= 65536 && (d < 2 ? behind < end && *behind == 'x' : behind == end);
    at = behind + 1;
  }
  if (!right) throw Mistake("--grid is \"" + text + "\", and has to be AxBxC, such as 2x1x1, where 0 is chosen");
  return made;
}

void must_fit(const isthmus::World& world, const Options& options) {
  std::int64_t product = 1;
  bool chosen = false;
  for (const int ranks : options.grid) product *= std::max(ranks, 1), chosen = chosen || ranks == 0;
  if (chosen ? world.size() % product != 0 : product != world.size())
    throw Mistake("--grid is of " + std::to_string(product) + " ranks, and " + std::to_string(world.size()) +
                  " are running");
}

// What the processor's form would leave undone.
void must_be_of_host(const Options& options) {
  const Options preset;
  for (const auto& [name, given, usual] : {std::array{"--exchange", options.exchange.c_str(), preset.exchange.c_str()},
                                           {"--overlap", options.overlap.c_str(), preset.overlap.c_str()},
                                           {"--check", options.check.c_str(), preset.check.c_str()},
                                           {"--json", options.json.c_str(), preset.json.c_str()}})
    if (std::string_view(given) != usual)
      throw Mistake(std::string(name) + ' ' + given + " is of --device cuda alone; give --device cuda or leave it out");
}

bool solve(const isthmus::World& world, const Options& options) {
  must_fit(world, options);
  if (options.device == "host") must_be_of_host(options);
  example::must_be_writable(world.comm(), options.json);
  const isthmus::HaloGrid grid(world.comm(), options.grid, std::array{0, 0, 0});
  if (options.device == "host") return run_host(world, grid, options);
#ifdef HIMENO_CUDA
  return himeno::run_cuda(world, grid, options);
#else
  throw Mistake("--device cuda cannot be used here: the program was built without CUDA");
#endif
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  example::Arguments arguments("himeno", "The Himeno benchmark: 19 points in three dimensions, on processors or GPUs.");
  arguments.add("size", "XS, S, M, L or XL", "XS", [&](const std::string& text) { options.size = size_of(text); });
  arguments.number("iterations", options.iterations, 1, 10000000, "from the start");
  arguments.number("b", options.b, -1.0, 1.0, "coefficients that are 0 in the benchmark, which leaves edges unused");
  arguments.word("--device", options.device, {"host", "cuda"}, "where the arrays are");
  arguments.word("--exchange", options.exchange, {"messages", "stream", "kernel", "all"}, "on cuda: how halos come");
  arguments.word("--overlap", options.overlap, {"both", "yes", "no"},
                 "messages and stream on cuda: the border first, hidden behind the interior");
  arguments.add("--grid", "ranks along i, j and k, of which 0 are chosen", "0x0x0",
                [&](const std::string& text) { options.grid = grid_of(text); });
  arguments.word("--check", options.check, {"yes", "no"}, "on cuda: compare with one rank that has the whole box");
  arguments.add("--json", "on cuda: a file for all figures", "", [&](const std::string& text) { options.json = text; });
  arguments.word("--spoil", options.spoil, {"no", "bit"}, "");
  return example::run(arguments, argc, argv, [&](const isthmus::World& world) { return solve(world, options); });
}
