// C calls about worlds and communicators.
#include "face/message/errors.hpp"
#include "face/message/handles.hpp"

namespace ist {
namespace {

int null_result(const char* call, const char* argument) {
  return report(IST_ERR_ARGUMENT, std::string{call} + ": " + argument + " is null; pass the address of a variable");
}

// Runs `get` on the communicator's world and stores what it says.
template <class Get>
int answer(const char* call, ist_comm comm, int* result, Get get) {
  if (result == nullptr) return null_result(call, "the result");
  const auto found = look_up(comm);
  if (!found.ok()) return report(found.status());
  *result = get(*found->world);
  return IST_OK;
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_world_create(ist_world* world) try {
  if (world == nullptr) return ist::null_result("ist_world_create", "world");
  *world = IST_WORLD_NULL;
  auto created = ist::World::create();
  if (!created.ok()) return ist::report(created.status());
  auto handle = ist::add_world(std::move(*created));
  if (!handle.ok()) return ist::report(handle.status());
  *world = *handle;
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_world_create");
}

int ist_world_destroy(ist_world* world) try {
  if (world == nullptr) return ist::null_result("ist_world_destroy", "world");
  const auto found = ist::look_up(*world);
  if (!found.ok()) return ist::report(found.status());
  ist::remove_world(*world).reset();
  *world = IST_WORLD_NULL;
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_world_destroy");
}

int ist_world_comm(ist_world world, ist_comm* comm) try {
  if (comm == nullptr) return ist::null_result("ist_world_comm", "comm");
  *comm = IST_COMM_NULL;
  const auto found = ist::look_up(world);
  if (!found.ok()) return ist::report(found.status());
  *comm = ist::world_comm(world);
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_world_comm");
}

int ist_comm_rank(ist_comm comm, int* rank) try {
  return ist::answer("ist_comm_rank", comm, rank, [](ist::World& world) { return world.engine().rank().value; });
} catch (...) {
  return ist::report_exception("ist_comm_rank");
}

int ist_comm_size(ist_comm comm, int* size) try {
  return ist::answer("ist_comm_size", comm, size, [](ist::World& world) { return world.engine().size(); });
} catch (...) {
  return ist::report_exception("ist_comm_size");
}

int ist_comm_local_rank(ist_comm comm, int* rank) try {
  return ist::answer("ist_comm_local_rank", comm, rank, [](ist::World& world) {
    int before = 0;
    for (const ist::Rank other : world.peers().local()) before += other < world.peers().rank() ? 1 : 0;
    return before;
  });
} catch (...) {
  return ist::report_exception("ist_comm_local_rank");
}

int ist_comm_local_size(ist_comm comm, int* size) try {
  return ist::answer("ist_comm_local_size", comm, size,
                     [](ist::World& world) { return static_cast<int>(world.peers().local().size()); });
} catch (...) {
  return ist::report_exception("ist_comm_local_size");
}
}
