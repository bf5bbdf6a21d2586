// What reductions combine with in Python: the library's operations, and functions of Python's.
//
// Who calls this : collective.cpp; module.cpp binds the class.
// Threads        : the caller holds the GIL. A function runs in whatever thread is inside the library, which takes the GIL for
//                  it, while the library's own lock is held: so nobody waits for that lock with the GIL.
// Ownership      : a reduction under way keeps its function, its buffers, and what the function raised.
// Errors         : what a function raises is raised where its rank waits; the other ranks get an Error that names that rank.
#pragma once

#include <isthmus/collective.h>

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "comm.hpp"

namespace isthmus_python {

// Python's Operation: one of the library's, or a function.
struct Reducer {
  ist_op op = IST_OP_NULL;
  std::string name;
  nb::object function = {};
  bool commutative = true;
};

// A reduction of the library, on a communicator.
using Reduction = std::function<int(ist_op, ist_comm, ist_request*)>;
// Of elements like `like`'s, from and into those two.
std::shared_ptr<Operation> start_with_function(const std::shared_ptr<Channels>& on, std::array<Region, 2> regions,
                                               const Region& like, const Reducer& op, const Reduction& call);

// Raises where the library's operation would not give elements of that sort.
void require_reducible(const Region& like, const Reducer& op);

void bind_reducers(nb::module_& module);

}  // namespace isthmus_python
