// A way to solve the problem by some ranks, and the kind of memory that it is solved in.
//
// Who calls this : jacobi.cpp; implemented by host.cpp and cuda.cpp.
// Threads        : one.
// Ownership      : a Way owns its field, of which result() is a view.
// Errors         : isthmus::Error, std::runtime_error; Mistake where arguments and devices do not go together.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/stencil.hpp"
#include "problem.hpp"

namespace jacobi {

class Way {
 public:
  virtual ~Way() = default;
  // Collective: from the start; the result is in level iterations % 2. Where a norm ends it, this is the iteration that had that norm.
  virtual Solved solve(const Problem& problem) = 0;
  // That level in host memory, until the next call.
  virtual example::Field result(int level) = 0;
  // Collective, when nothing more is solved.
  virtual void close() {}
};

class Backend {
 public:
  virtual ~Backend() = default;
  // For people: where cells lie, and what was chosen for them.
  virtual std::string text() const = 0;
  virtual const std::vector<std::string>& ways() const = 0;
  // Why this way cannot be gone here, the same on all ranks; empty where it can.
  virtual std::string refusal(const std::string& /*way*/) const { return {}; }
  // Collective. What all ranks at once take to only copy the bytes of their cells.
  virtual double copy_seconds() = 0;
  // Collective.
  virtual std::unique_ptr<Way> make(const std::string& way) = 0;
  // For a rank that has all rows, and what it takes to copy all of them by itself.
  virtual std::unique_ptr<Way> make_alone() = 0;
  virtual double copy_seconds_alone() = 0;
};

const std::vector<std::string>& host_ways();
const std::vector<std::string>& cuda_ways();
std::unique_ptr<Backend> make_host_backend(const isthmus::World& world, const Problem& problem);
// Collective; all ranks get the same Mistake where one has no such device, or the program none of this kind.
std::unique_ptr<Backend> make_cuda_backend(const isthmus::World& world, const Problem& problem);

}  // namespace jacobi
