#include "memory/worker_blocks.hpp"

#include <map>
#include <mutex>

namespace ist {
namespace {

struct OfAllWorlds {
  std::mutex mutex;
  std::map<int, WorkerBlocks> on;
};
// Never destroyed: a world may end behind everything else.
OfAllWorlds& of_all_worlds() {
  static auto* const all = new OfAllWorlds;
  return *all;
}

}  // namespace

void worker_comes(int device, const WorkerBlock& block) {
  OfAllWorlds& all = of_all_worlds();
  const std::lock_guard lock(all.mutex);
  WorkerBlocks& there = all.on[device];
  ++there.blocks;
  there.each = block;
}

void worker_goes(int device) {
  OfAllWorlds& all = of_all_worlds();
  const std::lock_guard lock(all.mutex);
  --all.on[device].blocks;
}

WorkerBlocks workers_on(int device) {
  OfAllWorlds& all = of_all_worlds();
  const std::lock_guard lock(all.mutex);
  const auto found = all.on.find(device);
  return found == all.on.end() ? WorkerBlocks{} : found->second;
}

}  // namespace ist
