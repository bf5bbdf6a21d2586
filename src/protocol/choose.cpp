#include "protocol/choose.hpp"

#include <limits>

namespace ist {
namespace {

double copy_once(const MessageShape& message, const MachineProfile& machine) {
  const auto bytes = static_cast<double>(message.bytes.value);
  return message.kind == KindId::host ? bytes * machine.host_copy_beta
                                      : machine.device_copy_alpha + bytes * machine.device_copy_beta;
}

bool by_worker(const MessageShape& message) {
  return message.worker_limit > Bytes{} && message.bytes <= message.worker_limit;
}

// The prices. Each is written down once, for a Sum and for a Bill (base/price.hpp).

template <class Price>
void slot(const MessageShape& message, const MachineProfile& machine, Price& price) {
  price.add("a slot", machine.slot_alpha);
  price.add("copying in and out", 2 * copy_once(message, machine));
  if (message.kind != KindId::host)
    price.refuse("devices cannot reach a slot: it is not page-locked and must not wait for a copy");
  if (message.bytes > message.slot_limit) price.refuse("the message is longer than a slot");
}

template <class Price>
void cell(const MessageShape& message, const MachineProfile& machine, Price& price) {
  price.add("a cell", machine.cell_alpha);
  if (by_worker(message))
    price.add("copying in and out by workers",
              2 * (machine.worker_alpha + static_cast<double>(message.bytes.value) * machine.worker_beta));
  else
    price.add("copying in and out", 2 * copy_once(message, machine));
  if (message.bytes > message.cell_limit) price.refuse("the message is longer than the eager limit");
}

template <class Price>
void ring(const MessageShape& message, const MachineProfile& machine, Price& price) {
  // Both copies overlap: the bytes are paid once, the first slot's way in and the last one's way out besides.
  price.add("telling of the message", machine.slot_alpha);
  price.add("announcing and clearing", machine.handshake_alpha);
  price.add("copying, in and out at the same time", copy_once(message, machine));
  if (message.kind != KindId::host) price.add("the last slot's way out", machine.device_copy_alpha);
  if (message.same_process) price.refuse("a process shares no ring with itself");
}

template <class Price>
void direct(const MessageShape& message, const MachineProfile& machine, Price& price) {
  price.add("telling of the message", machine.slot_alpha);
  price.add("announcing and clearing", machine.handshake_alpha);
  price.add("copying", copy_once(message, machine));
  if (!message.same_process && !message.shown) price.refuse("sender and receiver are two processes");
}

template <class Price>
void device(const MessageShape& message, const MachineProfile& machine, Price& price) {
  price.add("telling of the message", machine.slot_alpha);
  price.add("announcing and clearing", machine.handshake_alpha);
  price.add("one copy from device to device",
            machine.device_copy_alpha + static_cast<double>(message.bytes.value) * machine.device_link_beta);
  if (!message.lent) price.refuse("the sender cannot open the receiver's memory, or that is on no device");
}

template <class Price>
void mailbox(const MessageShape& message, const MachineProfile& machine, Price& price) {
  price.add("telling of the message", machine.slot_alpha);
  price.add("storing and taking by workers",
            machine.mailbox_alpha + static_cast<double>(message.bytes.value) * machine.mailbox_beta);
  if (message.mailbox_limit == Bytes{}) price.refuse("there is no open mailbox of the receiver's device, or no worker");
  if (message.bytes == Bytes{}) price.refuse("there is nothing to carry");
  if (message.bytes > message.mailbox_limit) price.refuse("the message is longer than a place of the mailbox");
}

template <class Pricing>
double sum(const Pricing& pricing) {
  Sum price;
  pricing(price);
  return price.seconds();
}

}  // namespace

namespace price {

double slot(const MessageShape& message, const MachineProfile& machine) {
  return sum([&](Sum& price) { ist::slot(message, machine, price); });
}
double cell(const MessageShape& message, const MachineProfile& machine) {
  return sum([&](Sum& price) { ist::cell(message, machine, price); });
}
double ring(const MessageShape& message, const MachineProfile& machine) {
  return sum([&](Sum& price) { ist::ring(message, machine, price); });
}
double direct(const MessageShape& message, const MachineProfile& machine) {
  return sum([&](Sum& price) { ist::direct(message, machine, price); });
}

double device(const MessageShape& message, const MachineProfile& machine) {
  return sum([&](Sum& price) { ist::device(message, machine, price); });
}

double mailbox(const MessageShape& message, const MachineProfile& machine) {
  return sum([&](Sum& price) { ist::mailbox(message, machine, price); });
}

}  // namespace price

std::vector<OfferedCarrier> offers(const MessageShape& message, const MachineProfile& machine) {
  std::vector<OfferedCarrier> all{{IST_CARRIER_SLOT, {}},   {IST_CARRIER_CELL, {}},   {IST_CARRIER_RING, {}},
                                  {IST_CARRIER_DIRECT, {}}, {IST_CARRIER_DEVICE, {}}, {IST_CARRIER_MAILBOX, {}}};
  slot(message, machine, all[0].price);
  cell(message, machine, all[1].price);
  ring(message, machine, all[2].price);
  direct(message, machine, all[3].price);
  device(message, machine, all[4].price);
  mailbox(message, machine, all[5].price);
  return all;
}

ist_carrier choose(const MessageShape& message, const MachineProfile& machine) {
  // Between devices every way costs microseconds, and one copy less is worth an announcement.
  const double by_mailbox = price::mailbox(message, machine);
  const double by_device = price::device(message, machine);
  if (by_mailbox < by_device && by_mailbox < price::cell(message, machine) && by_mailbox < price::ring(message, machine))
    return IST_CARRIER_MAILBOX;
  if (by_device < price::cell(message, machine) && by_device < price::ring(message, machine)) return IST_CARRIER_DEVICE;
  // What fits is eager whatever the price of announcing it: a small message must not cost a handshake because the table is
  // off by some. (A device buffer whose kernel takes longer than the engine's patience is announced after all; MPI lets a
  // standard send wait for its receive.)
  const double by_slot = price::slot(message, machine);
  const double by_cell = price::cell(message, machine);
  // But where one copy does instead of two, an announcement is soon paid for.
  if (message.shown && price::direct(message, machine) < by_slot && price::direct(message, machine) < by_cell)
    return IST_CARRIER_DIRECT;
  constexpr double kImpossible = std::numeric_limits<double>::infinity();
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
