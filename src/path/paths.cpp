#include "path/paths.hpp"

#include "path/self/self_path.hpp"
#include "path/shm/shm_path.hpp"
#include "path/surroundings.hpp"

namespace ist {
namespace {

Surroundings surroundings_of(PathContext& context) {
  Peers& peers = context.peers;
  PinnedPool& pool = context.pool;
  Surroundings around;
  around.rank = peers.rank();
  around.local = peers.local();
  around.oversubscribed = peers.oversubscribed();
  around.settings = context.settings;
  around.send_descriptor = [&peers](Rank to, std::uint32_t purpose, int descriptor) {
    return peers.send_descriptor(to, purpose, descriptor);
  };
  around.try_send_descriptor = [&peers](Rank to, std::uint32_t purpose, int descriptor) {
    return peers.try_send_descriptor(to, purpose, descriptor);
  };
  around.take_descriptor = [&peers](Rank from, std::uint32_t purpose, double seconds) {
    return peers.take_descriptor(from, purpose, seconds);
  };
  around.process_of = [&peers](Rank peer) { return peers.process(peer); };
  around.heap = context.heap;
  around.lock = [&pool](void* address, Bytes size) { return pool.lock(address, size); };
  around.unlock = [&pool](void* address) { pool.unlock(address); };
  return around;
}

template <class Made>
Status add(std::vector<std::unique_ptr<Path>>& paths, Result<std::unique_ptr<Made>> made) {
  if (!made.ok()) return made.status();
  paths.push_back(std::move(made).value());
  return {};
}

}  // namespace

Result<std::vector<std::unique_ptr<Path>>> make_paths(PathContext& context) {
  std::vector<std::unique_ptr<Path>> paths;
  IST_TRY(add(paths, SelfPath::create(surroundings_of(context))));
  IST_TRY(add(paths, ShmPath::connect(surroundings_of(context))));
  return paths;
}

}  // namespace ist
