// What is known of the right result: a serial loop's bits and norms, and those of one rank alone.
//
// Who calls this : jacobi.cpp, on all ranks; rank 0 alone computes the serial loop.
// Threads        : one.
// Ownership      : owns the serial field, and a copy of the result of one rank alone.
// Errors         : std::runtime_error where there is not so much memory.
#pragma once

#include <optional>

#include "common/serial.hpp"
#include "way.hpp"

namespace jacobi {

class Known {
 public:
  explicit Known(const Problem& problem) : problem_(problem) {}
  // Collective over comm, of what the way has solved last, that many iterations from the start; what is wrong, if anything, and of norms
  // rank 0 alone knows. `spoiled`: as the tests want it.
  const char* fault_of(const isthmus::Comm& comm, Way& way, const Solved& solved, bool spoiled);
  // The result of one rank alone, which long runs are compared with. Rank 0 alone calls this.
  void keep_alone(Way& way, const Solved& solved);
  // Collective. As fault_of, but compared with that.
  const char* other_than_alone(const isthmus::Comm& comm, Way& way, const Solved& solved) const;

 private:
  const example::Serial& at(int iterations);
  bool says(const Solved& solved) const;

  const Problem& problem_;
  std::optional<example::Serial> serial_;
  double norm_ = 0;  // the serial loop's
  std::vector<float> alone_;
  Solved of_alone_;
};

}  // namespace jacobi
