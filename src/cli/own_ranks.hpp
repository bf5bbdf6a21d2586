// A command that starts ranks of its own: it becomes `isthmus run` with itself.
//
// Who calls this : bench and model.
// Threads        : one.
// Ownership      : none.
// Errors         : a Failure if this program cannot be started again.
#pragma once

#include <string>
#include <vector>

namespace ist::cli {

// Is this process one of several already?
bool inside_a_world();
// Becomes `isthmus run -n N isthmus ARGUMENTS`; returns only by throwing.
[[noreturn]] void become_ranks(int ranks, const std::vector<std::string>& arguments);

}  // namespace ist::cli
