// Laplace's equation in two dimensions by Jacobi's method, as in the usual multi-GPU example: rows are cut over ranks and go round, the first
// and the last column stay sin(2 pi y / (ny - 1)), and the L2 norm of what has changed ends the iteration. Rows that neighbours need travel
// while the rows between are computed. Every bit is compared with that of a serial loop, and the first norm with its formula. Rank 0 also computes
// everything alone, which the speedup is of; beside each rate stands its share of what the same ranks reach where they only copy as many
// bytes, 8 for a point.
//
// In host memory (--device host) norms are looked at as soon as they are there. On GPUs (--device cuda), one for each rank, the processor
// looks at a norm while the next iteration runs already; where it ends the iteration, the next one's result, which is in the other level, is
// not looked at, so that iterations and result are the same. The ways there:
//
//   messages   rows to the neighbours first, in a stream of their own, and by ist_isend and ist_irecv while the rows between are computed
//   stream     the same by ist_sendrecv_on, and norms by ist_allreduce_on, in graphs where iterations are short: the processor waits for norms alone
//   one-sided  one launch for an iteration, which stores its outermost rows into the neighbours' halos, too, and flags behind them
//   kernel     one launch for all iterations, which looks at the norms itself
//
// Run: isthmus run -n 4 jacobi --nx 4096 --ny 4096
//      isthmus run -n 2 jacobi --device cuda --nx 16384 --ny 16384 --iterations 1000 --compare 10 --json jacobi.json
#include <cstdlib>

#include "common/json_file.hpp"
#include "common/program.hpp"
#include "known.hpp"
#include "report.hpp"

namespace {

using jacobi::Backend;
using jacobi::Known;
using jacobi::Problem;
using jacobi::Solved;
using jacobi::Way;

// Three runs, behind two iterations that are not counted and whose first norm is known.
Solved measure(const Problem& problem, Way& way) {
  Problem two = problem;
  two.iterations = 2;
  two.nccheck = 1;
  two.tolerance = -1;
  const float first_norm = way.solve(two).first_norm;
  Solved solved = example::median_of_three([&] { return way.solve(problem); });
  solved.first_norm = first_norm;
  return solved;
}

// A run of few iterations is compared with the serial loop, a long one's result with that of one rank alone.
Solved measure_and_compare(const isthmus::Comm& comm, const Problem& problem, Way& way, Known& known, bool alone,
                           std::string& fault) {
  Solved solved;
  const bool spoiled = problem.spoil == "bit";
  if (problem.compares_all()) {
    solved = measure(problem, way);
    fault = known.fault_of(comm, way, solved, spoiled);
    return solved;
  }
  Problem few = problem;
  few.iterations = problem.compare;
  solved = measure(problem, way);
  if (alone)
    known.keep_alone(way, solved);
  else
    fault = known.other_than_alone(comm, way, solved);
  Solved compared = way.solve(few);
  compared.first_norm = solved.first_norm;
  fault += known.fault_of(comm, way, compared, spoiled);
  return solved;
}

std::unique_ptr<Backend> backend_for(const isthmus::World& world, const Problem& problem) {
  const bool host = problem.device == "host";
  const auto& ways = host ? jacobi::host_ways() : jacobi::cuda_ways();
  if (problem.exchange != "all" && std::find(ways.begin(), ways.end(), problem.exchange) == ways.end()) {
    std::string names;
    for (const std::string& name : ways) names += (names.empty() ? "" : ", ") + name;
    throw example::Mistake("--exchange " + problem.exchange + " is none of --device " + problem.device + ", which has " +
                           names);
  }
  auto backend = host ? jacobi::make_host_backend(world, problem) : jacobi::make_cuda_backend(world, problem);
  if (problem.exchange == "all") return backend;
  const std::string refusal = backend->refusal(problem.exchange);
  if (!refusal.empty()) throw example::Mistake("--exchange " + problem.exchange + " cannot be here: " + refusal);
  return backend;
}

bool work(const isthmus::World& world, const Problem& problem) {
  const isthmus::Comm comm = world.comm();
  if (problem.cut_rows() < comm.size())
    throw example::Mistake("--ny " + std::to_string(problem.ny) + " leaves " + std::to_string(problem.cut_rows()) +
                           " rows for " + std::to_string(comm.size()) + " ranks, and every rank needs one");
  example::must_be_writable(comm, problem.json);
  const auto backend = backend_for(world, problem);
  const bool first = comm.rank() == 0;
  const double copied = backend->copy_seconds();
  Known known(problem);
  jacobi::Report report(problem, backend->text(), comm.size());
  std::string faults;
  if (first) {
    report.copies(copied, backend->copy_seconds_alone());
    const auto alone = backend->make_alone();
    report.alone(measure_and_compare(world.self(), problem, *alone, known, true, faults), faults);
    alone->close();
  }
  for (const std::string& name : backend->ways()) {
    if (problem.exchange != "all" && problem.exchange != name) continue;
    jacobi::Row row{name, {}, {}, backend->refusal(name)};
    if (row.refusal.empty()) {
      const auto way = backend->make(name);
      row.solved = measure_and_compare(comm, problem, *way, known, false, row.fault);
      way->close();
      faults += row.fault;
    }
    if (first) report.add(row);
  }
  const bool right = example::sum(comm, faults.empty() ? 0 : 1) == 0;
  if (first) {
    report.write_json(right);
    const std::string of =
        problem.compares_all() ? "" : " of " + std::to_string(problem.compare) + " iterations, and all of one rank alone";
    std::printf(
        right ? "verified: bits and norms of a serial loop%s\n" : "wrong: not the bits and norms of a serial loop%s\n",
        of.c_str());
  }
  return right;
}

void add_options(example::Arguments& arguments, Problem& problem) {
  arguments.number<std::int64_t>("--nx", problem.nx, 4, 1 << 20, "columns");
  arguments.number<std::int64_t>("--ny", problem.ny, 4, 1 << 20,
                                 "rows, of which the outermost two stand for the other side");
  arguments.number("--iterations", problem.iterations, 1, 1000000000, "iterations at most");
  arguments.number("--nccheck", problem.nccheck, 1, 1000000000, "iterations from one norm to the next");
  arguments.number("--tolerance", problem.tolerance, 0.0, 1e30, "of the norm, at which the iteration ends");
  arguments.word("--device", problem.device, {"host", "cuda"}, "where cells lie and are computed");
  std::vector<std::string> names = jacobi::host_ways();
  for (const std::string& name : jacobi::cuda_ways())
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  names.emplace_back("all");
  arguments.word("--exchange", problem.exchange, names, "how rows come to the neighbours, of those of the device");
  arguments.number("--compare", problem.compare, 0, 1000000000,
                   "iterations that are compared with a serial loop, which takes its time; 0: all. More are compared with "
                   "one rank alone");
  arguments.number("--batch", problem.batch, 0, 8, "of cuda: rows that a thread loads at once, 4 or 8; 0: the quicker");
  arguments.number("--height", problem.height, 0, 4096, "of cuda: rows of a tile; 0: the quickest");
  arguments.add("--json", "a file for the results", "none", [&](const std::string& path) { problem.json = path; });
  arguments.word("--spoil", problem.spoil, {"no", "bit", "factor"}, "");
}

}  // namespace

int main(int argc, char** argv) {
  // A kernel that is launched for the first time would wait for those that run, and they may wait for it.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  Problem problem;
  example::Arguments arguments("jacobi", "Laplace's equation on nx x ny cells, cut by rows over the ranks.");
  add_options(arguments, problem);
  return example::run(arguments, argc, argv, [&](const isthmus::World& world) { return work(world, problem); });
}
