// How many bytes a count of a basic type is.
//
// Who calls this : face/.
// Threads        : pure functions.
// Ownership      : none.
// Errors         : IST_ERR_ARGUMENT for a negative count or unknown type, IST_ERR_OVERFLOW where the product does not fit.
#pragma once

#include <isthmus/isthmus.h>

#include "base/status.hpp"
#include "base/units.hpp"
#include "memory/element.hpp"

namespace ist {

Result<Bytes> extent(std::int64_t count, ist_type type);

}  // namespace ist
