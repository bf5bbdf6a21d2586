// How the rows beside a rank's own come from its neighbours, in four ways, or from itself.
//
// Who calls this : jacobi.cpp.
// Threads        : one.
// Ownership      : an Exchange owns the memory of its field, which one of the ways has to choose.
// Errors         : isthmus::Error.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/stencil.hpp"

namespace jacobi {

class Exchange {
 public:
  virtual ~Exchange() = default;
  const example::Field& field() const { return field_; }
  // The first and the last row of this level leave; they and the neighbours' rows stay as they are until finish() has returned.
  virtual void start(int level) = 0;
  virtual void finish() = 0;
  // Collective, when nothing more is exchanged.
  virtual void close() {}

 protected:
  example::Field field_;
};

// messages       persistent requests, from the rows into the neighbours' rows
// halo           the library's halo exchange, by messages
// halo-one-sided the same by puts with flags behind them
// put            the rows lie in a symmetric heap, and are put into the neighbours' rows
const std::vector<std::string>& exchange_names();
// Collective. Of `all_rows`, which are cut over the ranks of comm and go round.
std::unique_ptr<Exchange> make_exchange(const std::string& name, const isthmus::World& world, const isthmus::Comm& comm,
                                        std::int64_t all_rows, std::int64_t columns);
// For a rank that has all rows: they are copied.
std::unique_ptr<Exchange> make_exchange_with_itself(const isthmus::World& world, std::int64_t rows, std::int64_t columns);

}  // namespace jacobi
