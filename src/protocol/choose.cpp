#include "protocol/choose.hpp"

#include <limits>

namespace ist {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

double copy_once(const MessageShape& message, const MachineProfile& machine) {
  const auto bytes = static_cast<double>(message.bytes.value);
  return message.kind == KindId::host ? bytes * machine.host_copy_beta
                                      : machine.device_copy_alpha + bytes * machine.device_copy_beta;
}

}  // namespace

namespace price {

double slot(const MessageShape& message, const MachineProfile& machine) {
  // Devices cannot reach a slot: it is not page-locked and must not wait for a copy.
  if (message.kind != KindId::host || message.bytes > message.slot_limit) return kImpossible;
  return machine.slot_alpha + 2 * copy_once(message, machine);
}

double cell(const MessageShape& message, const MachineProfile& machine) {
  if (message.bytes > message.cell_limit) return kImpossible;
  return machine.cell_alpha + 2 * copy_once(message, machine);
}

double ring(const MessageShape& message, const MachineProfile& machine) {
  if (message.same_process) return kImpossible;
  // Both copies overlap: the bytes are paid once, the first slot's way in and the last one's way out besides.
  return machine.slot_alpha + machine.handshake_alpha + copy_once(message, machine) +
         (message.kind == KindId::host ? 0.0 : machine.device_copy_alpha);
}

double direct(const MessageShape& message, const MachineProfile& machine) {
  if (!message.same_process) return kImpossible;
  return machine.slot_alpha + machine.handshake_alpha + copy_once(message, machine);
}

}  // namespace price

ist_carrier choose(const MessageShape& message, const MachineProfile& machine) {
  // What fits is eager whatever the price of announcing it: a small message must not cost a handshake because the table is
  // off by some. (A device buffer whose kernel takes longer than the engine's patience is announced after all; MPI lets a
  // standard send wait for its receive.)
  const double by_slot = price::slot(message, machine);
  const double by_cell = price::cell(message, machine);
  if (by_slot < kImpossible || by_cell < kImpossible) return by_slot <= by_cell ? IST_CARRIER_SLOT : IST_CARRIER_CELL;
  return price::ring(message, machine) <= price::direct(message, machine) ? IST_CARRIER_RING : IST_CARRIER_DIRECT;
}

Bytes ring_fill(Bytes message, bool between_hosts, const Settings& settings) {
  if (between_hosts) return settings.ring_slot_host;
  constexpr Bytes kLeast = kibibytes(256);
  const Bytes half{message.value / 2};
  return smaller(half < kLeast ? kLeast : half, settings.ring_slot_device);
}

}  // namespace ist
