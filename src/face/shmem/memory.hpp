// What was allocated of the symmetric heaps, and is no longer there once they are gone.
//
// Who calls this : world.cpp, when it gives its heaps back.
// Threads        : one, as nobody allocates any more.
// Ownership      : none.
// Errors         : none.
#pragma once

namespace ist::shmem {

void forget_sizes();

}  // namespace ist::shmem
