#include "protocol/choose_packing.hpp"

#include <algorithm>
#include <array>

#include "memory/rows.hpp"

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
// Beside the copies of a host on the other side of the ring, where there is one; of one device on both sides, over the same bus.
double beside(double byte, KindId other, const PackedShape& shape, const MachineProfile& machine) {
  if (other == KindId::host) return std::max(byte, machine.host_copy_beta);
  return shape.message.same_device ? byte + machine.device_copy_beta : byte;
}
// A byte that a kernel stores into a slot or loads from there.
double mapped_byte(const PackedShape& shape, KindId other, bool unpacks, const MachineProfile& machine) {
  const double bus = (unpacks ? machine.device_mapped_load_beta : machine.device_mapped_beta) * narrow_on_link(shape);
  return beside(std::max(bus, machine.device_pack_beta * narrow_in_memory(shape)), other, shape, machine);
}
double as_any_buffer(const PackedShape& shape, const MachineProfile& machine) {
  return price::of(choose(shape.message, machine), shape.message, machine);
}

// Copies of rows: what they take to begin, and each row, whatever its length.
double rows_start(const MachineProfile& machine) { return machine.device_rows_alpha; }
double rows_start_over_link(const MachineProfile& machine) {
  return std::max(0.0, link_start(machine) + machine.device_rows_alpha - machine.device_copy_alpha);
}
double rows_each(const PackedShape& shape, const MachineProfile& machine) {
  return static_cast<double>(shape.rows) * machine.device_row_each;
}

KindId receiver_of(const MessageShape& message) { return message.to.kind == KindId::none ? message.kind : message.to.kind; }

template <class Price>
void refuse_rows(const PackedShape& shape, Price& price) {
  if (shape.rows == 0) price.refuse(shape.no_rows);
}

template <class Price>
void refuse_slots(const PackedShape& shape, Price& price) {
  const MessageShape& message = shape.message;
  if (message.bytes <= message.cell_limit) price.refuse("what fits a cell goes at once, and is packed for that");
  if (message.lent) price.refuse("the bytes go straight into the other rank's memory, and through no slots");
  if (message.same_process) price.refuse("a process shares no ring with itself");
  if (!message.same_node) price.refuse("sender and receiver share no memory: they are on two nodes");
}

// A kernel for each slot would wait for a turn of its own, and copy engines take none (choose.cpp).
template <class Price>
void refuse_mapped(const PackedShape& shape, const MachineProfile& machine, Price& price) {
  if (machine.shares_device)
    price.refuse("another rank has the device, too, and the kernel of each slot would wait for its turn");
  if (shape.no_slots != nullptr) price.refuse(shape.no_slots);
  refuse_slots(shape, price);
}

template <class Price>
void refuse_link(const PackedShape& shape, Price& price) {
  const MessageShape& message = shape.message;
  const KindId to = receiver_of(message);
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
void in_rows(const PackedShape& shape, const MachineProfile& machine, double start, double byte, Price& price) {
  price.add("copies of rows", start);
  price.add("their rows", rows_each(shape, machine));
  price.add("their bytes", bytes_of(shape) * byte);
  refuse_rows(shape, price);
}

template <class Price>
void announced(const MachineProfile& machine, Price& price) {
  price.add("telling of the message", machine.slot_alpha);
  price.add("announcing and clearing", machine.handshake_alpha);
}

template <class Price>
void pack_block(const PackedShape& shape, const MachineProfile& machine, Price& price) {
  price.add("a kernel that packs", machine.device_copy_alpha + in_memory(shape, machine));
  price.add("the block, as any buffer", as_any_buffer(shape, machine));
}

template <class Price>
void pack_block_rows(const PackedShape& shape, const MachineProfile& machine, Price& price) {
  in_rows(shape, machine, rows_start(machine), machine.device_rows_beta, price);
  price.add("the block, as any buffer", as_any_buffer(shape, machine));
}

template <class Price>
void pack_link(const PackedShape& shape, const MachineProfile& machine, Price& price) {
  announced(machine, price);
  price.add("a kernel that packs into the receiver's memory", link_start(machine) + over_link(shape, machine));
  refuse_link(shape, price);
}

template <class Price>
void pack_link_rows(const PackedShape& shape, const MachineProfile& machine, Price& price) {
  announced(machine, price);
  in_rows(shape, machine, rows_start_over_link(machine), machine.device_link_beta, price);
  refuse_link(shape, price);
}

// As the ring's own price (choose.cpp): both copies overlap.
template <class Price>
void pack_slot_rows(const PackedShape& shape, const MachineProfile& machine, Price& price) {
  const KindId to = receiver_of(shape.message);
  announced(machine, price);
  in_rows(shape, machine, rows_start(machine), beside(machine.device_copy_beta, to, shape, machine), price);
  if (to != KindId::host) price.add("the last slot's way out", machine.device_copy_alpha);
  refuse_slots(shape, price);
}

template <class Price>
void pack_slots(const PackedShape& shape, const MachineProfile& machine, Price& price) {
  const KindId to = receiver_of(shape.message);
  announced(machine, price);
  price.add("kernels that pack into the slots",
            machine.device_copy_alpha + bytes_of(shape) * mapped_byte(shape, to, false, machine));
  if (to != KindId::host) price.add("the last slot's way out", machine.device_copy_alpha);
  refuse_mapped(shape, machine, price);
}

template <class Price>
void unpack_block(const PackedShape& shape, const MachineProfile& machine, Price& price) {
  price.add("the message into the block", as_any_buffer(shape, machine));
  price.add("a kernel that unpacks", machine.device_copy_alpha + in_memory(shape, machine));
}

template <class Price>
void unpack_block_rows(const PackedShape& shape, const MachineProfile& machine, Price& price) {
  price.add("the message into the block", as_any_buffer(shape, machine));
  in_rows(shape, machine, rows_start(machine), machine.device_rows_beta, price);
}

template <class Price>
void unpack_link(const PackedShape& shape, const MachineProfile& machine, Price& price) {
  announced(machine, price);
  price.add("a loan of the sender's memory", machine.slot_alpha);
  price.add("a kernel that unpacks out of the sender's memory",
            link_start(machine) + over_link(shape, machine) * machine.device_load_factor);
  refuse_link(shape, price);
}

template <class Price>
void unpack_link_rows(const PackedShape& shape, const MachineProfile& machine, Price& price) {
  announced(machine, price);
  price.add("a loan of the sender's memory", machine.slot_alpha);
  // An engine that reads over a link is charged as a kernel is.
  in_rows(shape, machine, rows_start_over_link(machine), machine.device_link_beta * machine.device_load_factor, price);
  refuse_link(shape, price);
}

template <class Price>
void unpack_slot_rows(const PackedShape& shape, const MachineProfile& machine, Price& price) {
  announced(machine, price);
  price.add("the first slot's way in", shape.message.kind != KindId::host ? machine.device_copy_alpha : 0);
  in_rows(shape, machine, rows_start(machine), beside(machine.device_copy_beta, shape.message.kind, shape, machine), price);
  refuse_slots(shape, price);
}

template <class Price>
void unpack_slots(const PackedShape& shape, const MachineProfile& machine, Price& price) {
  const KindId from = shape.message.kind;
  announced(machine, price);
  price.add("the first slot's way in", from != KindId::host ? machine.device_copy_alpha : 0);
  price.add("kernels that unpack out of the slots",
            machine.device_copy_alpha + bytes_of(shape) * mapped_byte(shape, from, true, machine));
  refuse_mapped(shape, machine, price);
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

constexpr std::size_t kPackingWays = static_cast<std::size_t>(PackingWay::slot_rows) + 1;
template <class Price>
using Write = void (*)(const PackedShape& shape, const MachineProfile& machine, Price& price);
// In the order of PackingWay.
template <class Price>
constexpr std::array<Write<Price>, kPackingWays> kPackings{pack_block<Price>,     pack_link<Price>,
                                                           pack_slots<Price>,     pack_block_rows<Price>,
                                                           pack_link_rows<Price>, pack_slot_rows<Price>};
template <class Price>
constexpr std::array<Write<Price>, kPackingWays> kUnpackings{unpack_block<Price>,     unpack_link<Price>,
                                                             unpack_slots<Price>,     unpack_block_rows<Price>,
                                                             unpack_link_rows<Price>, unpack_slot_rows<Price>};

double seconds_of(Write<Sum> write, const PackedShape& shape, const MachineProfile& machine) {
  Sum price;
  write(shape, machine, price);
  return price.seconds();
}

std::vector<OfferedPacking> offers_of(const std::array<Write<Bill>, kPackingWays>& ways, const PackedShape& shape,
                                      const MachineProfile& machine) {
  std::vector<OfferedPacking> all;
  for (std::size_t way = 0; way < ways.size(); ++way) {
    all.push_back({static_cast<PackingWay>(way), {}});
    ways[way](shape, machine, all.back().price);
  }
  return all;
}

// Of two that cost as much the first one; what is no rows has only the first ways.
PackingWay cheapest(const std::array<Write<Sum>, kPackingWays>& ways, const PackedShape& shape,
                    const MachineProfile& machine) {
  std::size_t best = 0;
  double least = seconds_of(ways[0], shape, machine);
  const std::size_t end = shape.rows == 0 ? static_cast<std::size_t>(PackingWay::block_rows) : ways.size();
  for (std::size_t way = 1; way < end; ++way) {
    const double seconds = seconds_of(ways[way], shape, machine);
    if (seconds < least) best = way, least = seconds;
  }
  return static_cast<PackingWay>(best);
}

}  // namespace

namespace price {

double packing(PackingWay way, const PackedShape& shape, const MachineProfile& machine) {
  return seconds_of(kPackings<Sum>[static_cast<std::size_t>(way)], shape, machine);
}
double unpacking(PackingWay way, const PackedShape& shape, const MachineProfile& machine) {
  return seconds_of(kUnpackings<Sum>[static_cast<std::size_t>(way)], shape, machine);
}

}  // namespace price

std::vector<OfferedPacking> packings(const PackedShape& shape, const MachineProfile& machine) {
  return offers_of(kPackings<Bill>, shape, machine);
}

std::vector<OfferedPacking> unpackings(const PackedShape& shape, const MachineProfile& machine) {
  return offers_of(kUnpackings<Bill>, shape, machine);
}

PackingWay choose_packing(const PackedShape& shape, const MachineProfile& machine) {
  return cheapest(kPackings<Sum>, shape, machine);
}

PackingWay choose_unpacking(const PackedShape& shape, const MachineProfile& machine) {
  return cheapest(kUnpackings<Sum>, shape, machine);
}

bool lends_apart(const PackedShape& shape, const MachineProfile& machine) {
  return seconds_of(relay<Sum>, shape, machine) < seconds_of(pack_and_unpack<Sum>, shape, machine);
}

OfferedApart offers_apart(const PackedShape& shape, const MachineProfile& machine) {
  OfferedApart offers;
  relay(shape, machine, offers.one_kernel);
  pack_and_unpack(shape, machine, offers.two_kernels);
  return offers;
}

bool rows_within_device(const PackedShape& shape, const MachineProfile& machine) {
  return shape.rows > 0 && rows_start(machine) + rows_each(shape, machine) + bytes_of(shape) * machine.device_rows_beta <
                               machine.device_copy_alpha + in_memory(shape, machine);
}

bool rows_over_link(const PackedShape& shape, const MachineProfile& machine) {
  return shape.rows > 0 &&
         rows_start_over_link(machine) + rows_each(shape, machine) + bytes_of(shape) * machine.device_link_beta <
             link_start(machine) + over_link(shape, machine);
}

// The other side's call, and what it takes to tell of the message, are the same each way.
PackingWay through_slots(const PackedShape& shape, KindId other, bool unpacks, const MachineProfile& machine) {
  const double bus = bytes_of(shape) * beside(machine.device_copy_beta, other, shape, machine);
  PackingWay way = PackingWay::block;
  double least = 2 * machine.device_copy_alpha + in_memory(shape, machine) + bus;
  const auto offer = [&](PackingWay offered, double seconds) {
    if (seconds < least) way = offered, least = seconds;
  };
  if (shape.no_slots == nullptr && !machine.shares_device)
    offer(PackingWay::slots, machine.device_copy_alpha + bytes_of(shape) * mapped_byte(shape, other, unpacks, machine));
  if (shape.rows > 0) offer(PackingWay::slot_rows, rows_start(machine) + rows_each(shape, machine) + bus);
  return way;
}

// The bytes cross the bus once, either way.
bool rows_over_bus(const PackedShape& shape, const MachineProfile& machine) {
  return shape.rows > 0 &&
         rows_start(machine) + rows_each(shape, machine) < 2 * machine.device_copy_alpha + in_memory(shape, machine);
}

bool rows_of_host(const PackedShape& shape, const MachineProfile& machine) {
  return shape.rows > 0 && rows_start(machine) + rows_each(shape, machine) <
                               machine.device_copy_alpha + bytes_of(shape) * machine.host_copy_beta;
}

PackedShape packed_shape(const PackWork& work, Packing* packing, const MessageShape& message) {
  PackedShape shape{message, width_of(work)};
  if (const char* const why = packing != nullptr ? packing->refuses_rows(work) : why_no_rows(*work.form))
    shape.no_rows = why;
  else
    shape.rows = rows_between(*work.form, work.from, work.to);
  return shape;
}

}  // namespace ist
