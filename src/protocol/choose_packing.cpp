#include "protocol/choose_packing.hpp"

#include <algorithm>

namespace ist {
namespace {

double bytes_of(const PackedShape& shape) { return static_cast<double>(shape.message.bytes.value); }

// Kernels move units; of narrow ones a device moves only so many in a time, and those of 4 bytes keep its memory busy.
double narrow_in_memory(const PackedShape& shape) { return std::max(1.0, 4.0 / static_cast<double>(shape.width)); }

// What the 32 threads of a warp store next to each other goes over a link in packets of up to 128 bytes, each with a head of 16.
double narrow_on_link(const PackedShape& shape) {
  constexpr double kHead = 16, kPacket = 128, kWarp = 32;
  const double packet = std::min(kPacket, kWarp * static_cast<double>(shape.width));
  return (1 + kHead / packet) / (1 + kHead / kPacket);
}

double in_memory(const PackedShape& shape, const MachineProfile& machine) {
  return bytes_of(shape) * machine.device_pack_beta * narrow_in_memory(shape);
}
double over_link(const PackedShape& shape, const MachineProfile& machine) {
  return std::max(bytes_of(shape) * machine.device_link_beta * narrow_on_link(shape), in_memory(shape, machine));
}
double as_any_buffer(const PackedShape& shape, const MachineProfile& machine) {
  return price::of(choose(shape.message, machine), shape.message, machine);
}

template <class Price>
void refuse_link(const PackedShape& shape, Price& price) {
  const MessageShape& message = shape.message;
  const KindId to = message.to.kind == KindId::none ? message.kind : message.to.kind;
  if (!message.lent) price.refuse("neither rank can open the other's memory, or not yet");
  if (message.to.memory != MemoryClass::unknown && !opens_whole(message.to.memory))
    price.refuse("no other process can open memory of the receiver's class as it is");
  if (message.kind != KindId::cuda || to != KindId::cuda) price.refuse("takes CUDA memory on both sides");
  if (message.same_device) price.refuse("two processes take turns on one device");
  if (message.same_process) price.refuse("sender and receiver are one process");
  if (!message.same_node) price.refuse("no process opens memory of another node's device");
}

// Each is written down once, for a Sum and for a Bill (base/price.hpp).

template <class Price>
void pack_block(const PackedShape& shape, const MachineProfile& machine, Price& price) {
  price.add("a kernel that packs", machine.device_copy_alpha + in_memory(shape, machine));
  price.add("the block, as any buffer", as_any_buffer(shape, machine));
}

template <class Price>
void pack_link(const PackedShape& shape, const MachineProfile& machine, Price& price) {
  price.add("telling of the message", machine.slot_alpha);
  price.add("announcing and clearing", machine.handshake_alpha);
  price.add("a kernel that packs into the receiver's memory", link_start(machine) + over_link(shape, machine));
  refuse_link(shape, price);
}

template <class Price>
void unpack_block(const PackedShape& shape, const MachineProfile& machine, Price& price) {
  price.add("the message into the block", as_any_buffer(shape, machine));
  price.add("a kernel that unpacks", machine.device_copy_alpha + in_memory(shape, machine));
}

template <class Price>
void unpack_link(const PackedShape& shape, const MachineProfile& machine, Price& price) {
  price.add("telling of the message", machine.slot_alpha);
  price.add("announcing and clearing", machine.handshake_alpha);
  price.add("a loan of the sender's memory", machine.slot_alpha);
  price.add("a kernel that unpacks out of the sender's memory",
            link_start(machine) + over_link(shape, machine) * machine.device_load_factor);
  refuse_link(shape, price);
}

// From when the receiver has cleared it on.
template <class Price>
void relay(const PackedShape& shape, const MachineProfile& machine, Price& price) {
  price.add("a loan of the sender's memory", machine.slot_alpha);
  price.add("a kernel from one layout to the other",
            link_start(machine) + over_link(shape, machine) * machine.device_load_factor);
  refuse_link(shape, price);
}
template <class Price>
void pack_and_unpack(const PackedShape& shape, const MachineProfile& machine, Price& price) {
  price.add("a kernel that packs into the receiver's block", link_start(machine) + over_link(shape, machine));
  price.add("telling that it is there", machine.slot_alpha);
  price.add("a kernel that unpacks", machine.device_copy_alpha + in_memory(shape, machine));
}

using Write = void (*)(const PackedShape& shape, const MachineProfile& machine, Sum& price);
double seconds_of(Write write, const PackedShape& shape, const MachineProfile& machine) {
  Sum price;
  write(shape, machine, price);
  return price.seconds();
}

}  // namespace

namespace price {

double pack_in_block(const PackedShape& shape, const MachineProfile& machine) {
  return seconds_of(pack_block<Sum>, shape, machine);
}
double pack_over_link(const PackedShape& shape, const MachineProfile& machine) {
  return seconds_of(pack_link<Sum>, shape, machine);
}
double unpack_from_block(const PackedShape& shape, const MachineProfile& machine) {
  return seconds_of(unpack_block<Sum>, shape, machine);
}
double unpack_over_link(const PackedShape& shape, const MachineProfile& machine) {
  return seconds_of(unpack_link<Sum>, shape, machine);
}

}  // namespace price

std::vector<OfferedPacking> packings(const PackedShape& shape, const MachineProfile& machine) {
  std::vector<OfferedPacking> all{{PackingWay::block, {}}, {PackingWay::link, {}}};
  pack_block(shape, machine, all[0].price);
  pack_link(shape, machine, all[1].price);
  return all;
}

std::vector<OfferedPacking> unpackings(const PackedShape& shape, const MachineProfile& machine) {
  std::vector<OfferedPacking> all{{PackingWay::block, {}}, {PackingWay::link, {}}};
  unpack_block(shape, machine, all[0].price);
  unpack_link(shape, machine, all[1].price);
  return all;
}

PackingWay choose_packing(const PackedShape& shape, const MachineProfile& machine) {
  return price::pack_over_link(shape, machine) < price::pack_in_block(shape, machine) ? PackingWay::link : PackingWay::block;
}

bool lends_apart(const PackedShape& shape, const MachineProfile& machine) {
  return seconds_of(relay<Sum>, shape, machine) < seconds_of(pack_and_unpack<Sum>, shape, machine);
}

PackingWay choose_unpacking(const PackedShape& shape, const MachineProfile& machine) {
  return price::unpack_over_link(shape, machine) < price::unpack_from_block(shape, machine) ? PackingWay::link
                                                                                            : PackingWay::block;
}

}  // namespace ist
