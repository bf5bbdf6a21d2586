// Where every thread of this process is, for whoever has waited in vain.
//
// Who calls this : watch.cpp.
// Threads        : one; the others are interrupted by a signal, and go on.
// Ownership      : none.
// Errors         : a thread that does not answer is named as such.
#pragma once

namespace soak {

// To stderr: each thread's calls, the innermost first, by the names that the modules have for them.
void print_stacks();

}  // namespace soak
