// The list of paths of one world.
//
// Who calls this : face/message/world, once all ranks know each other.
// Threads        : one.
// Ownership      : the paths look at everything in the context, which outlives them.
// Errors         : returned by the path that could not be made.
#pragma once

#include <memory>
#include <vector>

#include "base/settings.hpp"
#include "boot/peers.hpp"
#include "memory/pinned_pool.hpp"
#include "path/path.hpp"

namespace ist {

struct PathContext {
  Boot& boot;
  Peers& peers;
  const Settings& settings;
  PinnedPool& pool;
  SharedHeap* heap = nullptr;
};

// Collective. The first path whose link() reaches a peer is the one to use.
Result<std::vector<std::unique_ptr<Path>>> make_paths(PathContext& context);

}  // namespace ist
