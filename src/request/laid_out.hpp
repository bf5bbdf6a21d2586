// The bytes of a message that do not lie in one piece: a block in which they are brought together, and from where to where.
//
// Who calls this : face/ makes it; the engine keeps it with its operation.
// Threads        : one at a time.
// Ownership      : owns the block; shares the form. The user's memory is a view.
// Errors         : none of its own.
#pragma once

#include <algorithm>
#include <utility>

#include "memory/packing.hpp"
#include "memory/pinned_pool.hpp"
#include "memory/scratch_pool.hpp"

namespace ist {

struct LaidOut {
  PackWork work;  // `packed` is the block, as long as the message may be
  PinnedPool::Block host;
  ScratchPool::Block device;
  Ticket ready;   // of what was pending on the memory
  Ticket packed;  // of a kernel that still packs when the message is over
};

}  // namespace ist
