// The operations of reductions: the library's by number, the user's by handle.
//
// Who calls this : api_collective.cpp.
// Threads        : any.
// Ownership      : of the process, not of a world: an operation may be used in all of them.
// Errors         : IST_ERR_HANDLE and IST_ERR_ARGUMENT with what was given and what would do.
#pragma once

#include <isthmus/collective.h>

#include "request/schedule.hpp"

namespace ist {

Result<ist_op> add_operator(ist_op_function function, void* user, bool commutative);
Status remove_operator(ist_op op);
// The operation on elements of that type.
Result<Combiner> combiner_of(ist_op op, ist_type type);

}  // namespace ist
