// Laplace's equation in two dimensions by Jacobi's method, as in the usual multi-GPU example: rows are cut over ranks and go round, the first
// and the last column stay sin(2 pi y / (ny - 1)), and the L2 norm of what has changed ends the iteration. Rows that neighbours need travel
// while the rows between are computed. Every bit is compared with that of a serial loop, and the first norm with its formula. Rank 0 also computes
// everything alone, which the speedup is of.
// Run: isthmus run -n 4 jacobi --nx 4096 --ny 4096
#include <cmath>
#include <numbers>
#include <optional>

#include "common/program.hpp"
#include "common/serial.hpp"
#include "exchange.hpp"

namespace {

using example::Field;
using example::Part;
using example::Stencil;

struct Options {
  std::int64_t nx = 1024, ny = 1024;  // the outermost rows are the neighbours' on the other side
  int iterations = 100, nccheck = 1;
  double tolerance = 1e-8;
  std::string exchange = "all", spoil = "no";
  std::int64_t cut_rows() const { return ny - 2; }
  double start(std::int64_t x, std::int64_t y) const {
    if (x > 0 && x < nx - 1) return 0;
    return std::sin(2 * std::numbers::pi * static_cast<double>(y) / static_cast<double>(ny - 1));
  }
  // In the first iteration two columns change, by a quarter of the sine beside them, whose squares are (ny - 1) / 2 in sum.
  double first_norm() const { return 0.25 * std::sqrt(static_cast<double>(ny - 1)); }
  // Of cells that are updated.
  double gigapixels(double seconds) const {
    return static_cast<double>(nx - 2) * static_cast<double>(cut_rows()) / seconds / 1e9;
  }
};

struct Solved {
  int iterations = 0;
  float first_norm = 0, norm = 0;
  double seconds = 0;  // an iteration's, of the slowest rank
};

// From the start; the result is in level iterations % 2.
Solved solve(const isthmus::Comm& comm, const Options& options, jacobi::Exchange& exchange, Stencil& stencil) {
  const Field& field = exchange.field();
  example::fill(field, example::part_of(options.cut_rows(), comm.size(), comm.rank()).first,
                [&](auto x, auto y) { return static_cast<float>(options.start(x, y)); });
  Solved solved;
  std::vector<float> mine(1), all(1);
  const double seconds = example::slowest_seconds(comm, [&] {
    for (bool over = false; !over && solved.iterations < options.iterations; ++solved.iterations) {
      const int now = solved.iterations % 2;
      const bool check = (solved.iterations + 1) % options.nccheck == 0;
      exchange.start(now);
      stencil.sweep(field, now, 2, field.rows - 1, check);
      exchange.finish();
      stencil.sweep(field, now, 1, 1, check);
      if (field.rows > 1) stencil.sweep(field, now, field.rows, field.rows, check);
      if (!check) continue;
      mine[0] = stencil.change();
      comm.allreduce(mine, all, isthmus::op::sum);
      solved.norm = std::sqrt(all[0]);
      if (solved.iterations == 0) solved.first_norm = solved.norm;
      over = static_cast<double>(solved.norm) <= options.tolerance;
    }
  });
  solved.seconds = seconds / solved.iterations;
  return solved;
}

// Three runs, behind an exchange of each level that is not counted and whose first norm is known.
Solved measure(const isthmus::Comm& comm, const Options& options, jacobi::Exchange& exchange) {
  Stencil stencil(options.spoil == "factor" ? 0.26F : 0.25F);
  Options two = options;
  two.iterations = 2;
  two.nccheck = 1;
  two.tolerance = -1;
  const float first_norm = solve(comm, two, exchange, stencil).first_norm;
  Solved solved = example::median_of_three([&] { return solve(comm, options, exchange, stencil); });
  solved.first_norm = first_norm;
  return solved;
}

// The median of what all ranks at once take to only copy the same bytes, for 0.2 s or a hundred times.
double copy_seconds(const isthmus::World& world, const Options& options) {
  const example::OwnField own(world, example::part_of(options.cut_rows(), world.size(), world.rank()).count, options.nx);
  const Field& field = own.field();
  example::fill(field, 0, [](auto /*x*/, auto /*y*/) { return 0.0F; });
  std::vector<double> all;
  for (double sum = 0; sum < 0.2 && all.size() < 100; sum += all.back())
    all.push_back(example::slowest_seconds(
        world.comm(), [&] { std::copy_n(field.cells(0, 1), field.rows * field.columns, field.cells(1, 1)); }));
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
  return all[all.size() / 2];
}

// The serial loop, by rank 0.
class Known {
 public:
  explicit Known(const Options& options) : options_(options) {}
  const example::Serial& at(int iterations) {
    if (serial_ && serial_->steps() == iterations) return *serial_;
    serial_.emplace(options_.nx, options_.ny, true,
                    [&](auto x, auto y) { return static_cast<float>(options_.start(x, y)); });
    serial_->run_to(iterations - iterations % options_.nccheck);
    norm_ = std::sqrt(serial_->change());
    serial_->run_to(iterations);
    return *serial_;
  }
  // Sums of floats in the order of the ranks.
  bool says(const Solved& solved) const {
    const auto near = [](double found, double known) { return std::abs(found - known) <= 1e-4 * known; };
    return near(static_cast<double>(solved.first_norm), options_.first_norm()) &&
           (solved.iterations < options_.nccheck || near(static_cast<double>(solved.norm), norm_));
  }

 private:
  const Options& options_;
  std::optional<example::Serial> serial_;
  double norm_ = 0;
};

// What is wrong, if anything; of norms rank 0 alone knows.
const char* fault_of(const isthmus::Comm& comm, const Options& options, const Field& field, const Solved& solved,
                     Known* known) {
  const int level = solved.iterations % 2;
  if (options.spoil == "bit" && comm.rank() == comm.size() - 1) example::spoil(field, level);
  const bool same = example::same_bits(comm, field, level, known != nullptr ? &known->at(solved.iterations) : nullptr);
  if (known != nullptr && !known->says(solved)) return "  WRONG NORM";
  return same ? "" : "  WRONG BITS";
}

std::string norm_of(const Options& options, const Solved& solved) {
  if (solved.iterations < options.nccheck) return "not asked for";
  char text[32];
  std::snprintf(text, sizeof text, "%.6e", static_cast<double>(solved.norm));
  return text;
}

// Gpix/s of this rank alone.
double measure_alone(const isthmus::World& world, const Options& options, Known& known, std::string& fault) {
  const auto exchange = jacobi::make_exchange_with_itself(world, options.cut_rows(), options.nx);
  const Solved solved = measure(world.self(), options, *exchange);
  fault = fault_of(world.self(), options, exchange->field(), solved, &known);
  const double rate = options.gigapixels(solved.seconds);
  std::printf("one rank: %.3f Gpix/s, %d iterations%s\n", rate, solved.iterations, fault.c_str());
  std::printf("%-15s %8s %8s %11s %14s %10s  %s\n", "exchange", "Gpix/s", "speedup", "efficiency", "copy bandwidth",
              "iterations", "norm");
  return rate;
}

bool work(const isthmus::World& world, const Options& options) {
  const isthmus::Comm comm = world.comm();
  if (options.cut_rows() < comm.size())
    throw example::Mistake("--ny " + std::to_string(options.ny) + " leaves " + std::to_string(options.cut_rows()) +
                           " rows for " + std::to_string(comm.size()) + " ranks, and every rank needs one");
  const double copied = options.gigapixels(copy_seconds(world, options));
  const bool first = comm.rank() == 0;
  Known known(options);
  std::string faults;
  double alone = 1;
  if (first) {
    std::printf("%lld x %lld cells, norm every %d iterations, host memory; %d ranks copy %.3f Gpix/s\n",
                static_cast<long long>(options.nx), static_cast<long long>(options.ny), options.nccheck, comm.size(),
                copied);
    std::fflush(stdout);
    alone = measure_alone(world, options, known, faults);
  }
  for (const std::string& name : jacobi::exchange_names()) {
    if (options.exchange != "all" && options.exchange != name) continue;
    const auto exchange = jacobi::make_exchange(name, world, comm, options.cut_rows(), options.nx);
    const Solved solved = measure(comm, options, *exchange);
    const std::string fault = fault_of(comm, options, exchange->field(), solved, first ? &known : nullptr);
    exchange->close();
    faults += fault;
    if (!first) continue;
    const double rate = options.gigapixels(solved.seconds), speedup = rate / alone;
    std::printf("%-15s %8.3f %8.2f %9.0f %% %12.0f %% %10d  %s%s\n", name.c_str(), rate, speedup,
                100 * speedup / comm.size(), 100 * rate / copied, solved.iterations, norm_of(options, solved).c_str(),
                fault.c_str());
    std::fflush(stdout);
  }
  const bool right = example::sum(comm, faults.empty() ? 0 : 1) == 0;
  if (first)
    std::puts(right ? "verified: bits and norms of a serial loop" : "wrong: not the bits and norms of a serial loop");
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  example::Arguments arguments("jacobi", "Laplace's equation on nx x ny cells, cut by rows over the ranks.");
  arguments.number<std::int64_t>("--nx", options.nx, 4, 1 << 20, "columns");
  arguments.number<std::int64_t>("--ny", options.ny, 4, 1 << 20,
                                 "rows, of which the outermost two stand for the other side");
  arguments.number("--iterations", options.iterations, 1, 1000000000, "iterations at most");
  arguments.number("--nccheck", options.nccheck, 1, 1000000000, "iterations from one norm to the next");
  arguments.number("--tolerance", options.tolerance, 0.0, 1e30, "of the norm, at which the iteration ends");
  std::vector<std::string> names = jacobi::exchange_names();
  names.emplace_back("all");
  arguments.word("--exchange", options.exchange, names, "how rows come to the neighbours");
  arguments.word("--spoil", options.spoil, {"no", "bit", "factor"}, "");
  return example::run(arguments, argc, argv, [&](const isthmus::World& world) { return work(world, options); });
}
