// Layouts by handle: those of basic types by number, the user's by a number that is never used twice.
//
// Who calls this : api_layout.cpp, api_pack.cpp, layout_calls.cpp.
// Threads        : any; one short lock around the table.
// Ownership      : of the process, not of a world; what is found is shared.
// Errors         : IST_ERR_HANDLE and IST_ERR_ARGUMENT with what was given and what would do.
#pragma once

#include <isthmus/layout.h>

#include <string>

#include "layout/shape.hpp"

namespace ist {

struct NamedLayout {
  SharedLayout layout;
  std::string made_by;             // "vector(count 8, block_length 1, stride 10) of IST_DOUBLE"
  std::shared_ptr<Shapes> shapes;  // null: not committed
};

Result<NamedLayout> layout_of(ist_layout handle);
ist_layout add_layout(NamedLayout layout);
Status commit_layout(ist_layout handle);
Status remove_layout(ist_layout handle);
// Of that many; IST_ERR_ARGUMENT where the layout is not committed. `written`: bytes are written by it, so that none may be there twice.
Result<SharedShape> shape_of(std::int64_t count, ist_layout handle, bool written);

}  // namespace ist
