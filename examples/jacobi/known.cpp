#include "known.hpp"

#include <cstdlib>

#include "common/program.hpp"

namespace jacobi {
namespace {

// Sums of floats in the order of the ranks.
bool near(double found, double known) { return std::abs(found - known) <= 1e-4 * known; }

}  // namespace

const example::Serial& Known::at(int iterations) {
  if (serial_ && serial_->steps() == iterations) return *serial_;
  serial_.emplace(problem_.nx, problem_.ny, true, [&](auto x, auto y) { return static_cast<float>(problem_.start(x, y)); });
  serial_->run_to(iterations - iterations % problem_.nccheck);
  norm_ = std::sqrt(serial_->change());
  serial_->run_to(iterations);
  return *serial_;
}

bool Known::says(const Solved& solved) const {
  return near(static_cast<double>(solved.first_norm), problem_.first_norm()) &&
         (solved.iterations < problem_.nccheck || near(static_cast<double>(solved.norm), norm_));
}

const char* Known::fault_of(const isthmus::Comm& comm, Way& way, const Solved& solved, bool spoiled) {
  const int level = solved.iterations % 2;
  const example::Field found = way.result(level);
  if (spoiled && comm.rank() == comm.size() - 1) example::spoil(found, level);
  const bool first = comm.rank() == 0;
  const bool same = example::same_bits(comm, found, level, first ? &at(solved.iterations) : nullptr);
  if (first && !says(solved)) return "  WRONG NORM";
  return same ? "" : "  WRONG BITS";
}

void Known::keep_alone(Way& way, const Solved& solved) {
  const int level = solved.iterations % 2;
  const example::Field found = way.result(level);
  alone_.assign(found.cells(level, 0), found.cells(level, found.rows + 2));
  of_alone_ = solved;
}

const char* Known::other_than_alone(const isthmus::Comm& comm, Way& way, const Solved& solved) const {
  const int level = solved.iterations % 2;
  const example::Field found = way.result(level);
  int ended = of_alone_.iterations;
  comm.bcast(std::span(&ended, 1), 0);
  // By its own norm, which is the same sum in another order: one look at it sooner or later.
  if (std::abs(ended - solved.iterations) > problem_.nccheck) return "  NOT THE ITERATIONS OF ONE ALONE";
  if (ended != solved.iterations) return "";
  // Read alone.
  auto* const cells = const_cast<float*>(alone_.data());
  const example::Field whole{{cells, cells}, problem_.cut_rows(), problem_.nx};
  const bool same = example::same_bits(comm, found, level, comm.rank() == 0 ? &whole : nullptr);
  if (comm.rank() == 0 && solved.iterations >= problem_.nccheck &&
      !near(static_cast<double>(solved.norm), static_cast<double>(of_alone_.norm)))
    return "  NOT THE NORM OF ONE ALONE";
  return same ? "" : "  NOT THE BITS OF ONE ALONE";
}

}  // namespace jacobi
