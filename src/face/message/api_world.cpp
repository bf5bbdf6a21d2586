// C calls about worlds.
#include <isthmus/heap.h>

#include "base/ranges.hpp"
#include "face/message/calls.hpp"
#include "face/message/errors.hpp"
#include "face/message/slots_trial.hpp"

namespace ist {
namespace {

int null_result(const char* call, const char* argument) {
  return report(IST_ERR_ARGUMENT, std::string{call} + ": " + argument + " is null; pass the address of a variable");
}

int create_by_launcher(const char* call, const char* settings, ist_world* world) {
  if (world == nullptr) return null_result(call, "world");
  *world = IST_WORLD_NULL;
  auto created = World::create(nullptr, settings == nullptr ? "" : settings);
  if (!created.ok()) return report(in_call(call, created.status()));
  auto handle = add_world(std::move(*created));
  if (!handle.ok()) return report(in_call(call, handle.status()));
  if (const Status tried = try_slots(*handle); !tried.ok()) return report(in_call(call, tried));
  *world = *handle;
  return IST_OK;
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_world_create(ist_world* world) try {
  return ist::create_by_launcher("ist_world_create", nullptr, world);
} catch (...) {
  return ist::report_exception("ist_world_create");
}

int ist_world_create_configured(const char* settings, ist_world* world) try {
  return ist::create_by_launcher("ist_world_create_configured", settings, world);
} catch (...) {
  return ist::report_exception("ist_world_create_configured");
}

int ist_world_destroy(ist_world* world) try {
  const ist::Range range("ist_world_destroy");
  if (world == nullptr) return ist::null_result("ist_world_destroy", "world");
  if (ist::is_parents_world(*world)) {
    *world = IST_WORLD_NULL;
    return IST_OK;
  }
  const auto found = ist::look_up(*world);
  if (!found.ok()) return ist::report(ist::in_call("ist_world_destroy", found.status()));
  const auto removed = ist::remove_world(*world);
  *world = IST_WORLD_NULL;
  const ist::Status ended = removed->end();
  return ended.ok() ? IST_OK : ist::report(ist::in_call("ist_world_destroy", ended));
} catch (...) {
  return ist::report_exception("ist_world_destroy");
}

int ist_world_leave(ist_world world) try {
  const ist::Range range("ist_world_leave");
  if (ist::is_parents_world(world)) return IST_OK;
  const auto found = ist::look_up(world);
  if (!found.ok()) return ist::report(ist::in_call("ist_world_leave", found.status()));
  const ist::Status ended = found->world->leave();
  return ended.ok() ? IST_OK : ist::report(ist::in_call("ist_world_leave", ended));
} catch (...) {
  return ist::report_exception("ist_world_leave");
}

int ist_world_comm(ist_world world, ist_comm* comm) try {
  if (comm == nullptr) return ist::null_result("ist_world_comm", "comm");
  *comm = IST_COMM_NULL;
  const auto found = ist::look_up(world);
  if (!found.ok()) return ist::report(ist::in_call("ist_world_comm", found.status()));
  *comm = ist::comm_handle(world, found->world->whole());
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_world_comm");
}

int ist_world_comm_self(ist_world world, ist_comm* comm) try {
  if (comm == nullptr) return ist::null_result("ist_world_comm_self", "comm");
  *comm = IST_COMM_NULL;
  const auto found = ist::look_up(world);
  if (!found.ok()) return ist::report(ist::in_call("ist_world_comm_self", found.status()));
  *comm = ist::comm_handle(world, found->world->self());
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_world_comm_self");
}
}
