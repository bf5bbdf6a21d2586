// Laplace's equation in two dimensions by Jacobi's method, as in the usual multi-GPU example: rows are cut over ranks and go round, the first
// and the last column stay sin(2 pi y / (ny - 1)), and the L2 norm of what has changed ends the iteration. Rows that neighbours need travel
// while the rows between are computed. Rank 0 also computes everything alone: what the speedup is of, and what every bit is compared with.
// Run: isthmus run -n 4 jacobi --nx 4096 --ny 4096
#include <cmath>
#include <numbers>
#include <optional>

#include "common/program.hpp"
#include "exchange.hpp"

namespace {

using example::Field;
using example::Part;
using example::Stencil;
using isthmus::Buffer;

struct Options {
  std::int64_t nx = 1024, ny = 1024;  // the outermost rows are the neighbours' on the other side
  int iterations = 100, nccheck = 1;
  double tolerance = 1e-8;
  std::string exchange = "all", spoil = "no";
  std::int64_t cut_rows() const { return ny - 2; }
  double cells() const { return static_cast<double>(nx - 2) * static_cast<double>(ny - 2); }
};

struct Solved {
  int iterations = 0;
  float norm = 0;
  double seconds = 0;  // of the slowest rank
};

void begin_again(const isthmus::World& world, const Options& options, const Field& field, const Part& part) {
  std::vector<float> row(static_cast<std::size_t>(options.nx));
  for (std::int64_t y = 0; y <= field.rows + 1; ++y) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(part.first + y) / static_cast<double>(options.ny - 1);
    row.front() = row.back() = static_cast<float>(std::sin(angle));
    for (int level = 0; level < 2; ++level) world.copy(field.row(level, y), Buffer::host(row.data()), field.row_bytes());
  }
}

// The result is in level iterations % 2.
Solved solve(const isthmus::Comm& comm, const Options& options, jacobi::Exchange& exchange, Stencil& stencil) {
  const Field& field = exchange.field();
  Solved solved;
  std::vector<float> mine(1), all(1);
  solved.seconds = example::slowest_seconds(comm, [&] {
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
      over = static_cast<double>(solved.norm) <= options.tolerance;
    }
    stencil.finish();
  });
  return solved;
}

// How many seconds the same bytes take where they are only copied.
double copy_seconds(const isthmus::Comm& comm, const Field& field, Stencil& stencil) {
  constexpr int times = 5;
  return example::slowest_seconds(comm,
                                  [&] {
                                    for (int n = 0; n < times; ++n) stencil.copy(field);
                                    stencil.finish();
                                  }) /
         times;
}

// All of it on one rank.
class Alone {
 public:
  Alone(const isthmus::World& world, const Options& options, Stencil& stencil)
      : world_(world),
        options_(options),
        stencil_(stencil),
        exchange_(jacobi::make_exchange_with_itself(world, stencil.kind(), options.cut_rows(), options.nx)) {
    begin_again(world_, options_, field(), {0, field().rows});
    copy_seconds_ = copy_seconds(world.self(), field(), stencil);
    again();
  }
  // Norms are sums in another order, so that a tolerance may end the two runs at different iterations.
  void run_to(int iterations) {
    if (solved_.iterations == iterations) return;
    options_.iterations = iterations;
    options_.tolerance = -1;
    again();
  }
  const Field& field() const { return exchange_->field(); }
  const Solved& solved() const { return solved_; }
  double copy_seconds_of_it() const { return copy_seconds_; }

 private:
  void again() {
    begin_again(world_, options_, field(), {0, field().rows});
    solved_ = solve(world_.self(), options_, *exchange_, stencil_);
  }
  const isthmus::World& world_;
  Options options_;
  Stencil& stencil_;
  std::unique_ptr<jacobi::Exchange> exchange_;
  Solved solved_;
  double copy_seconds_ = 0;
};

double gigapixels(const Options& options, const Solved& solved) {
  return options.cells() * solved.iterations / solved.seconds / 1e9;
}

std::string norm_of(const Options& options, const Solved& solved) {
  if (solved.iterations < options.nccheck) return "not asked for";
  char text[32];
  std::snprintf(text, sizeof text, "%.6e", static_cast<double>(solved.norm));
  return text;
}

// A line of the table; whether the result was right.
bool run_exchange(const isthmus::World& world, const Options& options, const std::string& name, Stencil& stencil,
                  std::optional<Alone>& alone, double alone_rate) {
  const isthmus::Comm comm = world.comm();
  const Part part = example::part_of(options.cut_rows(), comm.size(), comm.rank());
  const auto exchange = jacobi::make_exchange(name, world, comm, stencil.kind(), options.cut_rows(), options.nx);
  const Field& field = exchange->field();
  begin_again(world, options, field, part);
  const double copied = options.cells() / copy_seconds(comm, field, stencil) / 1e9;
  begin_again(world, options, field, part);
  const Solved solved = solve(comm, options, *exchange, stencil);
  const int level = solved.iterations % 2;
  if (options.spoil == "yes" && comm.rank() == comm.size() - 1) example::spoil(world, field, level);

  if (alone) alone->run_to(solved.iterations);
  const Field* const whole = alone ? &alone->field() : nullptr;
  bool right = example::same_bits(world, comm, field, level, whole, level, options.cut_rows());
  // The last norm, as a sum of floats in the order of the ranks.
  if (alone && std::abs(solved.norm - alone->solved().norm) > 1e-4F * alone->solved().norm) right = false;
  exchange->close();
  if (!alone) return right;
  const double rate = gigapixels(options, solved), speedup = rate / alone_rate;
  std::printf("%-15s %8.3f %8.2f %9.0f %% %11.0f %% %10d  %s%s\n", name.c_str(), rate, speedup, 100 * speedup / comm.size(),
              100 * rate / copied, solved.iterations, norm_of(options, solved).c_str(), right ? "" : "  WRONG");
  std::fflush(stdout);
  return right;
}

bool work(const isthmus::World& world, const Options& options) {
  const isthmus::Comm comm = world.comm();
  if (options.cut_rows() < comm.size())
    throw example::Mistake("--ny " + std::to_string(options.ny) + " leaves " + std::to_string(options.cut_rows()) +
                           " rows for " + std::to_string(comm.size()) + " ranks, and every rank needs one");
  const auto stencil = example::make_stencil(isthmus::Kind::host);
  std::optional<Alone> alone;
  double alone_rate = 1;
  if (comm.rank() == 0) {
    alone.emplace(world, options, *stencil);
    alone_rate = gigapixels(options, alone->solved());
    const double copied = options.cells() / alone->copy_seconds_of_it() / 1e9;
    std::printf("%lld x %lld cells, norm every %d iterations, host memory\n", static_cast<long long>(options.nx),
                static_cast<long long>(options.ny), options.nccheck);
    std::printf("one rank: %.3f Gpix/s, %.0f %% of a copy of the same bytes (%.3f Gpix/s); ranks: %d\n", alone_rate,
                100 * alone_rate / copied, copied, comm.size());
    std::printf("%-15s %8s %8s %11s %13s %10s  %s\n", "exchange", "Gpix/s", "speedup", "efficiency", "share of copy",
                "iterations", "norm");
  }
  bool right = true;
  for (const std::string& name : jacobi::exchange_names())
    if (options.exchange == "all" || options.exchange == name)
      right = run_exchange(world, options, name, *stencil, alone, alone_rate) && right;
  // What rank 0 finds beside the bits, the others do not know.
  right = example::sum(comm, right ? 0 : 1) == 0;
  if (comm.rank() == 0)
    std::puts(right ? "verified: the same bits as one rank" : "wrong: other bits, or another norm, than one rank");
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  example::Arguments arguments("jacobi", "Laplace's equation on nx x ny cells, cut by rows over the ranks.");
  arguments.number<std::int64_t>("--nx", options.nx, 3, 1 << 20, "columns");
  arguments.number<std::int64_t>("--ny", options.ny, 3, 1 << 20,
                                 "rows, of which the outermost two stand for the other side");
  arguments.number("--iterations", options.iterations, 1, 1000000000, "iterations at most");
  arguments.number("--nccheck", options.nccheck, 1, 1000000000, "iterations from one norm to the next");
  arguments.number("--tolerance", options.tolerance, 0.0, 1e30, "of the norm, at which the iteration ends");
  std::vector<std::string> names = jacobi::exchange_names();
  names.emplace_back("all");
  arguments.word("--exchange", options.exchange, names, "how rows come to the neighbours");
  arguments.word("--spoil", options.spoil, {"no", "yes"}, "");
  return example::run(arguments, argc, argv, [&](const isthmus::World& world) { return work(world, options); });
}
