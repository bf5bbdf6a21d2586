// The C call that makes a world by an exchange of the program's own.
#include <isthmus/boot.h>

#include "boot/given_boot.hpp"
#include "boot/interrupt.hpp"
#include "face/message/errors.hpp"
#include "face/message/handles.hpp"
#include "face/message/slots_trial.hpp"

namespace ist {
namespace {

Status check(const std::string& call, const ist_boot_functions* functions) {
  if (functions == nullptr) return {IST_ERR_ARGUMENT, call + "functions is null; pass the address of a table"};
  if (functions->size < sizeof(ist_boot_functions))
    return {IST_ERR_ARGUMENT, call + "functions->size is " + std::to_string(functions->size) + ", but the table has " +
                                  std::to_string(sizeof(ist_boot_functions)) +
                                  " bytes; set it to sizeof(ist_boot_functions)"};
  if (functions->refusal != nullptr) return {IST_ERR_BOOT, functions->refusal};
  if (functions->all_gather == nullptr)
    return {IST_ERR_ARGUMENT, call + "functions->all_gather is null; it is how the ranks find each other"};
  if (functions->ranks < 1 || functions->rank < 0 || functions->rank >= functions->ranks)
    return {IST_ERR_ARGUMENT, call + "functions tells of rank " + std::to_string(functions->rank) + " of " +
                                  std::to_string(functions->ranks) + "; expected a rank from 0 on below their number"};
  return {};
}

// Either all ranks have a world in the end or none: the others are told of a failure here, whenever it happens; but where memory runs out in the very end
// (slots_trial.hpp), when they hear of it as of a rank that left.
Status create_with(const ist_boot_functions& functions, const char* settings, ist_world* world) {
  const auto exchange = std::make_shared<GivenExchange>(functions);
  auto made = World::create(make_given_boot(exchange), settings == nullptr ? "" : settings);
  const Status status = exchange->agree(made.status());
  exchange->close();
  IST_TRY(status);
  auto handle = add_world(std::move(*made));
  if (!handle.ok()) return handle.status();
  IST_TRY(try_slots(*handle));
  *world = *handle;
  return {};
}

int create_by_table(const std::string& call, const char* settings, const ist_boot_functions* functions, ist_world* world) {
  if (world == nullptr) return report(IST_ERR_ARGUMENT, call + ": world is null; pass the address of a variable");
  *world = IST_WORLD_NULL;
  const Status usable = check(call + ": ", functions);
  if (!usable.ok()) return report(usable);
  const Status made = create_with(*functions, settings, world);
  return made.ok() ? IST_OK : report(made);
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_world_create_with(const ist_boot_functions* functions, ist_world* world) try {
  return ist::create_by_table("ist_world_create_with", nullptr, functions, world);
} catch (...) {
  return ist::report_exception("ist_world_create_with");
}

void ist_interrupt_with(int (*asked)(void*), void* context) { ist::interrupt::set(asked, context); }

int ist_world_create_configured_with(const char* settings, const ist_boot_functions* functions, ist_world* world) try {
  return ist::create_by_table("ist_world_create_configured_with", settings, functions, world);
} catch (...) {
  return ist::report_exception("ist_world_create_configured_with");
}
}
