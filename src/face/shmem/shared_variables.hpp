// The variables of this process's program on memory that other processes map too, and off it again; nothing of them moves or changes.
//
// Who calls this : globals.cpp; tests.
// Threads        : one at a time. What other threads store into variables waits while its 64 KiB go over (held_stores.hpp).
// Ownership      : the memory is the caller's, who may unmap his own mapping of it: that of the variables is another one.
// Errors         : IST_ERR_SYSTEM, and then nothing is shared.
//
// A child that fork() makes has variables of its own, as ever, with what was in them at the time: shared memory alone would have it
// store into its parent's. So fork() costs a copy of them, though not of pages that nobody has touched. Children of vfork() and
// posix_spawn() have all of their parent's memory anyway, until they execute another program.
#pragma once

#include <span>

#include "base/status.hpp"
#include "face/shmem/executable.hpp"

namespace ist {

// `memory`: shared, zero, and as long as all segments, which come to lie there one behind another.
Status share_variables(std::span<const VariableSegment> segments, std::byte* memory);
// In a forked child they are already.
Status make_variables_private();
bool variables_are_shared();

}  // namespace ist
