// The Himeno benchmark: Poisson's equation in three dimensions by Jacobi's method, with 19 points and coefficients of each cell, written from
// its formulas. The box is cut over all ranks; the interior hides the exchange of halos, faces and edges.
//
// On the host (--device host) halos come by messages, or one-sided as a kernel that stays does it: each rank stores its border into the neighbours'
// halos in a symmetric heap, and waits for nothing but their flags. Up to size S every rank also computes the whole box by itself, and its own
// cells have to be the same to the last bit.
//
// On GPUs (--device cuda, one for each rank) three ways to exchange are compared by --exchange all: "messages", which the processor sends in each
// iteration; "stream", halos and sums that CUDA streams exchange by themselves, many iterations in one graph; both of them in one sweep and with
// the border first, whose way the interior hides (--overlap both, yes or no); and "kernel", one kernel for all iterations, which stores its
// border straight into the neighbours' halos and waits for nothing but their flags, or keeps the coefficients in the multiprocessors as well,
// where there are few enough ("kernel, coefficients kept"). Every way makes one sum over all cells in each iteration.
// Every rank also computes the whole box by itself on its GPU, and where that takes seconds at most on its processor: cells are the same
// to the last bit, and sums within 1e-6. MFLOPS are medians of three runs; efficiency is beside that one rank.
// Run: isthmus run -n 4 himeno [XS, S, M, L, XL or cells such as 16x128x128, or several with commas between] [iterations] [b, of which 0 is the benchmark's and leaves edges unused]
//      isthmus run -n 2 himeno S 1000 --device cuda --exchange all --json himeno.json
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <isthmus/halo.hpp>
#include <isthmus/isthmus.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/json_file.hpp"
#include "common/program.hpp"
#include "host.hpp"
#include "host_one_sided.hpp"
#include "options.hpp"

namespace {

using example::Mistake, himeno::Himeno, himeno::Options, himeno::Part, himeno::Size;

// Of one way.
struct Found {
  const char* name;
  double gosa = 0;     // of the last iteration, of all ranks
  double seconds = 0;  // of the slowest rank
  bool right = true;
};

Found by_messages(const isthmus::HaloGrid& grid, Himeno& himeno, int iterations, std::string& text) {
  const auto& ranges = himeno.part().ranges;
  const auto field = [&](float* level) { return isthmus::HaloField::of<float>(isthmus::Buffer::host(level), ranges); };
  const std::array fields{field(himeno.p[0]), field(himeno.p[1])};
  const isthmus::Halo halo(grid, std::span(&fields[0], 1), {2});  // faces and edges
  text = halo.text();
  const isthmus::Comm comm = grid.comm();
  std::vector<double> mine(1), sum(1);
  const double seconds = example::slowest_seconds(comm, [&] {
    for (int n = 0; n < iterations; ++n) {
      const auto now = static_cast<std::size_t>(n % 2);
      halo.set_fields(std::span(&fields[now], 1));
      mine[0] = 0;
      halo.overlap(ranges, [&](const isthmus::HaloBox& box) { mine[0] += himeno.sweep(now, box); });
      comm.allreduce(mine, sum, isthmus::op::sum);
    }
  });
  return {"messages", sum[0], seconds};
}
Found one_sided(const isthmus::HaloGrid& grid, himeno::OneSided& way, int iterations) {
  Found found{"one-sided"};
  found.seconds = example::slowest_seconds(grid.comm(), [&] { found.gosa = way.go(iterations); });
  return found;
}

void spoil_bit(Himeno& himeno, int iterations) {
  const isthmus::HaloBox box = himeno.part().inner();
  float& spoilt =
      himeno.p[static_cast<std::size_t>(iterations % 2)][himeno.part().at(box.last[0], box.last[1], box.last[2])];
  spoilt = std::nextafter(spoilt, 2.0F);
}

// The whole box by this rank alone, where that does not take long: with it, and with what is published, every way is compared.
class Oracle {
 public:
  Oracle(const Size& size, const Options& options) : size_(size), options_(options), b_(static_cast<float>(options.b)) {
    if (size.all() > himeno::kSizes[1].all()) return;
    whole_ = std::make_unique<Himeno>(Part(size, {1, 1, 1}, {0, 0, 0}), b_);
    gosa_ = whole_->go_alone(options.iterations);
  }
  // All ranks say the same.
  bool confirms(const isthmus::World& world, const Himeno& cut, const Found& found) const {
    bool right = himeno::as_published(size_, options_.iterations, b_, found.gosa);
    const auto level = static_cast<std::size_t>(options_.iterations % 2);
    if (whole_)
      right =
          himeno::same_bits(cut.part(), cut.p[level], *whole_, level) && himeno::close_to(found.gosa, gosa_, 1e-6) && right;
    return example::largest(world.comm(), right ? 0 : 1) == 0;
  }

 private:
  const Size& size_;
  const Options& options_;
  float b_;
  std::unique_ptr<Himeno> whole_;
  double gosa_ = 0;
};

void print(const Size& size, const Options& options, const std::vector<int>& dims, const std::vector<Found>& ways,
           const std::string& text) {
  const bool right = std::all_of(ways.begin(), ways.end(), [](const Found& way) { return way.right; });
  std::printf("%s: size %s, %d iterations, %d x %d x %d ranks, gosa %.6e\n", right ? "verified" : "wrong", size.name.c_str(),
              options.iterations, dims[0], dims[1], dims[2], ways.back().gosa);
  for (const Found& way : ways)
    std::printf("%-10s %12.0f MFLOPS%s\n", way.name, size.flop(options.iterations) / way.seconds / 1e6,
                way.right ? "" : ", WRONG");
  std::fputs(text.c_str(), stdout);
}

bool run_host(const isthmus::World& world, const isthmus::HaloGrid& grid, const Size& size, const Options& options) {
  const Oracle oracle(size, options);
  std::vector<Found> ways;
  std::string text;
  const auto judged = [&](Found found, Himeno& himeno) {
    if (options.spoil == "bit" && world.rank() == world.size() - 1) spoil_bit(himeno, options.iterations);
    found.right = oracle.confirms(world, himeno, found);
    ways.push_back(found);
  };
  const auto wanted = [&](const char* name) { return options.exchange == "all" || options.exchange == name; };
  if (wanted("messages")) {
    Himeno himeno(Part(size, grid.dims(), grid.coords()), static_cast<float>(options.b));
    const Found found = by_messages(grid, himeno, options.iterations, text);
    judged(found, himeno);
  }
  if (wanted("one-sided")) {
    himeno::OneSided way(grid, size, static_cast<float>(options.b));
    const Found found = one_sided(grid, way, options.iterations);
    judged(found, way.himeno());
    way.destroy();
  }
  if (world.rank() == 0) print(size, options, grid.dims(), ways, text);
  return std::all_of(ways.begin(), ways.end(), [](const Found& way) { return way.right; });
}

// So many numbers with an x between them; empty where it is something else.
std::vector<std::int64_t> numbers_of(std::string_view text) {
  std::vector<std::int64_t> numbers;
  const char *at = text.data(), *const end = at + text.size();
  for (;; ++at) {
    std::int64_t number = 0;
    const auto [behind, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < 0 || number > 65536) return {};
    numbers.push_back(number);
    at = behind;
    if (at == end) return numbers;
    if (*at != 'x') return {};
  }
}

Size size_of(const std::string& name) {
  for (const Size& size : himeno::kSizes)
    if (name == size.name) return size;
  Size made{name, {}};
  const std::vector<std::int64_t> cells = numbers_of(name);
  if (cells.size() != 3)
    throw Mistake("size is " + name + "; sizes are XS, S, M, L and XL, or cells along i, j and k, such as 16x128x128");
  std::copy(cells.begin(), cells.end(), made.cells.begin());
  if (*std::min_element(cells.begin(), cells.end()) < 3 || made.all() > himeno::kSizes[4].all())
    throw Mistake("size is " + name + ", and has to have 3 cells or more each way, and no more than XL has in all");
  return made;
}
std::vector<Size> sizes_of(const std::string& list) {
  std::vector<Size> sizes;
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = list.find(',', begin);
    sizes.push_back(size_of(list.substr(begin, end == std::string::npos ? end : end - begin)));
  }
  return sizes;
}

std::array<int, 3> grid_of(const std::string& text) {
  const std::vector<std::int64_t> ranks = numbers_of(text);
  if (ranks.size() != 3) throw Mistake("--grid is \"" + text + "\", and has to be AxBxC, such as 2x1x1, where 0 is chosen");
  std::array<int, 3> made{};
  std::transform(ranks.begin(), ranks.end(), made.begin(), [](std::int64_t count) { return static_cast<int>(count); });
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
  const bool is_of_cuda = options.exchange == "stream" || options.exchange == "kernel";
  for (const auto& [name, given, usual] :
       {std::array{"--exchange", options.exchange.c_str(), is_of_cuda ? preset.exchange.c_str() : options.exchange.c_str()},
        {"--overlap", options.overlap.c_str(), preset.overlap.c_str()},
        {"--check", options.check.c_str(), preset.check.c_str()},
        {"--json", options.json.c_str(), preset.json.c_str()}})
    if (std::string_view(given) != usual)
      throw Mistake(std::string(name) + ' ' + given + " is of --device cuda alone; give --device cuda or leave it out");
}

void must_have_cells(const isthmus::HaloGrid& grid, const Options& options) {
  const std::vector<int> dims = grid.dims();
  for (const Size& size : options.sizes)
    for (std::size_t d = 0; d < 3; ++d)
      if (size.cells[d] < dims[d])
        throw Mistake("size " + size.name + " has " + std::to_string(size.cells[d]) + " cells for " +
                      std::to_string(dims[d]) + " ranks beside each other; take larger sizes or another --grid");
}

bool solve(const isthmus::World& world, const Options& options) {
  must_fit(world, options);
  if (options.device == "host") must_be_of_host(options);
  if (options.device == "cuda" && options.exchange == "one-sided")
    throw Mistake("--exchange one-sided is of --device host alone; on cuda, --exchange kernel is the same in a kernel");
  example::must_be_writable(world.comm(), options.json);
  const isthmus::HaloGrid grid(world.comm(), options.grid, std::array{0, 0, 0});
  must_have_cells(grid, options);
  if (options.device == "host") {
    bool right = true;
    for (const Size& size : options.sizes) right = run_host(world, grid, size, options) && right;
    return right;
  }
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
  arguments.add("size", "XS, S, M, L, XL or cells such as 16x128x128; several with commas between", "XS",
                [&](const std::string& text) { options.sizes = sizes_of(text); });
  arguments.number("iterations", options.iterations, 1, 10000000, "from the start");
  arguments.number("b", options.b, -1.0, 1.0, "coefficients that are 0 in the benchmark, which leaves edges unused");
  arguments.word("--device", options.device, {"host", "cuda"}, "where the arrays are");
  arguments.word("--exchange", options.exchange, {"messages", "one-sided", "stream", "kernel", "all"},
                 "how halos come: on host messages and one-sided, on cuda the others");
  arguments.word("--overlap", options.overlap, {"both", "yes", "no"},
                 "messages and stream on cuda: the border first, hidden behind the interior");
  arguments.add("--grid", "ranks along i, j and k, of which 0 are chosen", "0x0x0",
                [&](const std::string& text) { options.grid = grid_of(text); });
  arguments.word("--check", options.check, {"yes", "no"}, "on cuda: compare with one rank that has the whole box");
  arguments.add("--json", "on cuda: a file for all figures", "", [&](const std::string& text) { options.json = text; });
  arguments.word("--spoil", options.spoil, {"no", "bit"}, "");
  return example::run(arguments, argc, argv, [&](const isthmus::World& world) { return solve(world, options); });
}
