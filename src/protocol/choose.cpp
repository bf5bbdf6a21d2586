#include "protocol/choose.hpp"

#include <algorithm>
#include <limits>

#include "path/shm/pair_slot.hpp"

namespace ist {
namespace {

bool on_device(KindId kind) { return kind != KindId::host; }
bool locked(MemoryClass memory) { return memory == MemoryClass::pinned || memory == MemoryClass::registered; }
bool is_host(MemoryClass memory) { return memory == MemoryClass::pageable || locked(memory); }

KindId receiver(const MessageShape& message) { return message.to.kind == KindId::none ? message.kind : message.to.kind; }

bool between_devices(const MessageShape& message) { return on_device(message.kind) && on_device(receiver(message)); }

// One copy between a buffer of that kind and host memory of the library's: what it costs whatever its size, and each byte of it.
double start_of_copy(KindId kind, const MachineProfile& machine) { return on_device(kind) ? machine.device_copy_alpha : 0; }
double byte_of_copy(KindId kind, const MachineProfile& machine) {
  return on_device(kind) ? machine.device_copy_beta : machine.host_copy_beta;
}

double bytes_of(const MessageShape& message) { return static_cast<double>(message.bytes.value); }

double in_and_out(const MessageShape& message, const MachineProfile& machine) {
  const KindId to = receiver(message);
  return start_of_copy(message.kind, machine) + start_of_copy(to, machine) +
         bytes_of(message) * (byte_of_copy(message.kind, machine) + byte_of_copy(to, machine));
}

// Through a slot, between hosts, by a call that blocks (path/shm/pair_slot.hpp)?
bool in_pieces(const MessageShape& message) {
  return message.mode.blocking && message.bytes.value > kPieceShown && !on_device(message.kind) &&
         !on_device(receiver(message));
}

bool by_worker(const MessageShape& message) {
  return message.worker_limit > Bytes{} && message.bytes <= message.worker_limit;
}

// A turn is paid in full by a message that comes alone, and by all of a window together. Within one device a copy of any size up to 16 MiB takes
// 150 us, through the ring 64 KiB take 20, 1 MiB 52 and 4 MiB 169, because the copy engines, which need no turn, do that; in windows the
// ring takes 5, 32 and 101, and one copy 8 (H200, 2026-11-22). So one copy pays from 3.3 MiB on where messages come alone, and from 150 KiB
// on in windows: each is charged so much of a turn that with the built-in numbers it pays from 2 MiB on.
constexpr double share_of_turn() {
  constexpr MachineProfile kBuiltIn{};
  constexpr double kLeast = static_cast<double>(mebibytes(2).value) - 0.5;
  return (kBuiltIn.device_copy_alpha + 2 * kLeast * kBuiltIn.device_copy_beta) / kBuiltIn.device_turn;
}

constexpr const char* kWaits = "a synchronous send hears of its receive, and what goes at once does not";
constexpr const char* kAnnouncingIsQuicker =
    "announced so many bytes take less time than in two copies through a slot, by what was measured on this machine";
constexpr const char* kNoSharedMemory = "sender and receiver share no memory: they are on two nodes";

template <class Price>
void refuse_layout(const MessageShape& message, Price& price) {
  if (message.layout != MemoryLayout::contiguous) price.refuse("only contiguous messages are carried so far");
}

// The prices. Each is written down once, for a Sum and for a Bill (base/price.hpp). Of several reasons the last one is told.

template <class Price>
void slot(const MessageShape& message, const MachineProfile& machine, Price& price) {
  price.add("a slot", machine.slot_alpha);
  if (in_pieces(message))
    price.add("copying in, and the last piece out", (bytes_of(message) + kPieceShown) * machine.host_copy_beta);
  else
    price.add("copying in and out", in_and_out(message, machine));
  if (message.mode.synchronous) price.refuse(kWaits);
  if (on_device(message.kind))
    price.refuse("devices cannot reach a slot: it is not page-locked and must not wait for a copy");
  if (message.bytes > message.slots_up_to) price.refuse(kAnnouncingIsQuicker);
  if (message.bytes > message.slot_limit) price.refuse("the message is longer than a slot");
  if (!message.same_node) price.refuse(kNoSharedMemory);
  refuse_layout(message, price);
}

template <class Price>
void cell(const MessageShape& message, const MachineProfile& machine, Price& price) {
  price.add("a cell", machine.cell_alpha);
  if (by_worker(message))
    price.add("copying in and out by workers", 2 * (machine.worker_alpha + bytes_of(message) * machine.worker_beta));
  else
    price.add("copying in and out", in_and_out(message, machine));
  if (message.mode.synchronous) price.refuse(kWaits);
  if (message.bytes > message.cell_limit) price.refuse("the message is longer than the eager limit");
  if (!message.same_node) price.refuse(kNoSharedMemory);
  refuse_layout(message, price);
}

template <class Price>
void ring(const MessageShape& message, const MachineProfile& machine, Price& price) {
  // Both copies overlap: the bytes are paid once, the first slot's way in and the last one's way out besides. Over the bus of one device
  // they do not.
  const KindId to = receiver(message);
  const double in = byte_of_copy(message.kind, machine);
  const double out = byte_of_copy(to, machine);
  const bool one_bus = message.same_device && between_devices(message);
  price.add("telling of the message", machine.slot_alpha);
  price.add("announcing and clearing", machine.handshake_alpha);
  price.add(one_bus ? "copying in and out, over one bus" : "copying, in and out at the same time",
            start_of_copy(message.kind, machine) + bytes_of(message) * (one_bus ? in + out : std::max(in, out)));
  if (on_device(to)) price.add("the last slot's way out", machine.device_copy_alpha);
  if (message.same_process) price.refuse("a process shares no ring with itself");
  if (!message.same_node) price.refuse(kNoSharedMemory);
  refuse_layout(message, price);
}

template <class Price>
void direct(const MessageShape& message, const MachineProfile& machine, Price& price) {
  const KindId slower = on_device(message.kind) ? message.kind : receiver(message);
  price.add("telling of the message", machine.slot_alpha);
  price.add("announcing and clearing", machine.handshake_alpha);
  price.add("copying", start_of_copy(slower, machine) + bytes_of(message) * byte_of_copy(slower, machine));
  if (!message.same_process && message.mode.blocking)
    price.refuse("who blocks goes on once its bytes are in a slot, and does not wait for the receiver's copy");
  if (!message.same_process && !message.shown) price.refuse("sender and receiver are two processes");
  if (!message.same_node) price.refuse(kNoSharedMemory);
  refuse_layout(message, price);
}

template <class Price>
void copy_of_device(const MessageShape& message, const MachineProfile& machine, Price& price) {
  if (!between_devices(message)) {
    price.add("one copy over the device's bus", machine.device_copy_alpha + bytes_of(message) * machine.device_copy_beta);
  } else if (message.same_device) {
    constexpr double kShare = share_of_turn();
    price.add("one copy within the device", machine.device_copy_alpha);
    price.add("a share of the turn, since processes take turns on one device", kShare * machine.device_turn);
  } else {
    price.add("one copy from device to device", link_start(machine) + bytes_of(message) * machine.device_link_beta);
  }
}

template <class Price>
void device(const MessageShape& message, const MachineProfile& machine, Price& price) {
  const KindId to = receiver(message);
  price.add("telling of the message", machine.slot_alpha);
  price.add("announcing and clearing", machine.handshake_alpha);
  copy_of_device(message, machine, price);
  if (!message.lent) price.refuse("the sender cannot open the receiver's memory, or that is on no device");
  if (on_device(to) && message.to.memory != MemoryClass::unknown && !opens_whole(message.to.memory))
    price.refuse("no other process can open memory of the receiver's class as it is");
  const bool pageable =
      (!on_device(message.kind) && !locked(message.memory)) || (!on_device(to) && !locked(message.to.memory));
  if (pageable)
    price.refuse("one side is host memory that is not known to be page-locked, whose bytes a processor has to move");
  if (!on_device(message.kind) && !on_device(to)) price.refuse("neither side is a device's memory");
  if (!message.same_node) price.refuse("no process opens memory of another node's device");
  refuse_layout(message, price);
}

template <class Price>
void mailbox(const MessageShape& message, const MachineProfile& machine, Price& price) {
  const auto left = [](MemoryClass memory) {
    return is_host(memory) || memory == MemoryClass::vmm || memory == MemoryClass::managed;
  };
  price.add("telling of the message", machine.slot_alpha);
  price.add("storing and taking by workers", machine.mailbox_alpha + bytes_of(message) * machine.mailbox_beta);
  if (message.mode.synchronous) price.refuse(kWaits);
  if (left(message.memory) || left(message.to.memory) || !between_devices(message))
    price.refuse("workers carry what cudaMalloc and pools gave, on both sides");
  if (message.bytes > message.mailbox_limit) price.refuse("the message is longer than a place of the mailbox");
  if (message.mailbox_limit == Bytes{}) price.refuse("there is no open mailbox of the receiver's device, or no worker");
  if (message.bytes == Bytes{}) price.refuse("there is nothing to carry");
  if (message.same_device) price.refuse("two processes take turns on one device, and a worker's would never end");
  if (!message.same_node) price.refuse("no process opens memory of another node's device");
  refuse_layout(message, price);
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

double of(ist_carrier carrier, const MessageShape& message, const MachineProfile& machine) {
  switch (carrier) {
    case IST_CARRIER_SLOT:
      return slot(message, machine);
    case IST_CARRIER_CELL:
      return cell(message, machine);
    case IST_CARRIER_DIRECT:
      return direct(message, machine);
    case IST_CARRIER_DEVICE:
      return device(message, machine);
    case IST_CARRIER_MAILBOX:
      return mailbox(message, machine);
    default:
      return ring(message, machine);
  }
}

}  // namespace price

double link_start(const MachineProfile& machine) {
  return machine.device_link_alpha > 0 ? machine.device_link_alpha : machine.device_copy_alpha;
}

// A copy engine between two kernels of a stream costs the beginning of a copy. One block's 256 threads have so many words on their way at once,
// however wide they are: of 16 bytes 16 KiB, which take 0.6 us (four H100, 594b827, 2026-11-26: 32 KiB and a signal inside kernels take 3.43 us, 4 KiB
// 2.83); narrower ones are predicted from that.
bool stores_in_stream(Bytes bytes, std::uint64_t apart, const MachineProfile& machine) {
  constexpr double kBlockBeta = 0.0366e-9;
  constexpr std::uint64_t kWidest = 16;
  std::uint64_t width = kWidest;
  while (apart % width != 0 || width == 2) width /= 2;
  const double by_block =
      static_cast<double>(bytes.value) * kBlockBeta * (static_cast<double>(kWidest) / static_cast<double>(width));
  return by_block <= link_start(machine) + static_cast<double>(bytes.value) * machine.device_link_beta;
}

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
  constexpr double kImpossible = std::numeric_limits<double>::infinity();
  const double by_slot = price::slot(message, machine);
  const double by_cell = price::cell(message, machine);
  const double by_ring = price::ring(message, machine);
  // Between devices every way costs microseconds, and one copy less is worth an announcement.
  if (message.lent || message.mailbox_limit > Bytes{}) {
    const double by_mailbox = price::mailbox(message, machine);
    const double by_device = price::device(message, machine);
    const double through_host = std::min({by_slot, by_cell, by_ring});
    if (by_mailbox < by_device && by_mailbox < through_host) return IST_CARRIER_MAILBOX;
    if (by_device < through_host) return IST_CARRIER_DEVICE;
  }
  // What fits is eager whatever the price of announcing it: a small message must not cost a handshake because the table is
  // off by some. (A device buffer whose kernel takes longer than the engine's patience is announced after all, unless it stays
  // eager; MPI lets a standard send wait for its receive.)
  const double by_direct = price::direct(message, machine);
  // But where one copy does instead of two, an announcement is soon paid for.
  if (message.shown && by_direct < by_slot && by_direct < by_cell) return IST_CARRIER_DIRECT;
  if (by_slot < kImpossible || by_cell < kImpossible) return by_slot <= by_cell ? IST_CARRIER_SLOT : IST_CARRIER_CELL;
  if (by_ring == kImpossible && by_direct == kImpossible) return IST_CARRIER_NONE;
  return by_ring <= by_direct ? IST_CARRIER_RING : IST_CARRIER_DIRECT;
}

bool pays_within_device(Bytes bytes, const MachineProfile& machine) {
  MessageShape message;
  message.bytes = bytes;
  message.kind = KindId::cuda;
  message.lent = message.same_device = true;
  return price::device(message, machine) < price::ring(message, machine);
}

Bytes ring_fill(Bytes message, bool between_hosts, const Settings& settings) {
  if (between_hosts) return settings.ring_slot_host;
  constexpr Bytes kLeast = kibibytes(256);
  const Bytes half{message.value / 2};
  return smaller(half < kLeast ? kLeast : half, settings.ring_slot_device);
}

}  // namespace ist
