// Collective calls of Python's Comm: on buffers, each a request of the library, and on objects, in two steps.
//
// Who calls this : comm.cpp binds them.
// Threads        : the caller holds the GIL; one collective call at a time on a communicator.
// Ownership      : a call under way keeps its buffers, or the bytes of its objects.
// Errors         : TypeError and ValueError before anything is sent; the library's in the outcome.
#pragma once

#include "reducer.hpp"

namespace isthmus_python {

// isthmus.IN_PLACE
struct InPlace {};

void bind_in_place(nb::module_& module);
void bind_collectives(Bound<Comm>& comm);
void bind_object_collectives(Bound<Comm>& comm);
void bind_object_reductions(Bound<Comm>& comm);

}  // namespace isthmus_python
