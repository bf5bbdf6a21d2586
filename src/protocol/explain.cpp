#include "protocol/explain.hpp"

#include <array>
#include <cstdio>

#include "protocol/copy_beliefs.hpp"

namespace ist {
namespace {

constexpr std::array kCarriers{"none", "slot", "cell", "ring", "direct", "nccl", "device", "mailbox"};
// From IST_CARRIER_SINGLE_COPY on.
constexpr std::array kCountedCarriers{"single copy", "block"};

bool on_host(const ExplainedMessage& message) {
  return message.from.kind == KindId::host && message.to.kind == KindId::host;
}

bool between_devices(const ExplainedMessage& message) {
  return message.from.kind == KindId::cuda && message.to.kind == KindId::cuda;
}

bool locked(const MessageEnd& end) {
  return end.kind == KindId::host && (end.memory == MemoryClass::pinned || end.memory == MemoryClass::registered);
}

// Page-locked host memory on one side, and what another process can open on the other: the device of that makes the copy.
bool from_or_to_locked(const ExplainedMessage& message) {
  const auto opened = [](const MessageEnd& end) { return end.kind == KindId::cuda && opens_whole(end.memory); };
  return (locked(message.from) && opened(message.to)) || (opened(message.from) && locked(message.to));
}

// What keeps two processes from copying into each other's device memory; empty: nothing.
std::string against_devices(const ExplainedMessage& message) {
  if (message.same_process) return "sender and receiver are one process";
  if (!message.not_lent.empty()) return message.not_lent;
  if (!between_devices(message) && !from_or_to_locked(message))
    return "takes CUDA memory on both sides, or page-locked host memory and what cudaMalloc gave";
  if (message.bytes == Bytes{}) return "there is nothing to copy";
  return "";
}

std::string against_device(const ExplainedMessage& message) {
  if (std::string why = against_devices(message); !why.empty()) return why;
  if (between_devices(message) && !opens_whole(message.to.memory))
    return "no other process can open the receiver's memory (" + std::string{name_of(message.to.memory)} + ")" +
           (message.to.memory == MemoryClass::managed
                ? ""
                : ", unless it was made with a handle for others: then as cudaMalloc's");
  if (between_devices(message) && !message.last_was_lent && message.bytes <= message.cell_limit)
    return "the last message to this rank could not be copied straight; every sixteenth asks again";
  return "";
}

// What keeps the workers of two devices from it; empty: nothing.
std::string against_mailbox(const ExplainedMessage& message) {
  if (message.from.kind != KindId::cuda || message.to.kind != KindId::cuda) return "takes CUDA memory on both sides";
  if (message.worker_limit == Bytes{})
    return "no worker runs on the sender's device, or not now: ISTHMUS_WORKER starts them";
  if (std::string why = against_devices(message); !why.empty()) return why;
  const auto carried = [](const MessageEnd& end) {
    return end.kind == KindId::cuda && (end.memory == MemoryClass::device || end.memory == MemoryClass::pool);
  };
  if (message.mode.synchronous) return "a synchronous send hears of its receive, and what goes at once does not";
  if (!carried(message.from) || !carried(message.to)) return "workers carry what cudaMalloc and pools gave, on both sides";
  if (message.same_device) return "two processes take turns on one device, and a worker's would never end";
  if (message.mailbox_limit == Bytes{}) return "the receiver's mailbox is not open (yet)";
  if (message.bytes > message.mailbox_limit) return "the message is longer than a place of the mailbox";
  return "";
}

std::string against_block(const ExplainedMessage& message, const MachineProfile& machine) {
  if (std::string why = against_devices(message); !why.empty()) return why;
  if (!between_devices(message)) return "only between devices";
  if (opens_whole(message.to.memory)) return "the receiver's memory can be opened itself";
  if (message.same_device && !pays_within_device(message.bytes, machine))
    return "two processes take turns on one device, which costs more than the ring for so few bytes";
  if (message.bytes <= message.cell_limit) return "the message fits a cell";
  return "";
}

std::string against_single_copy(const ExplainedMessage& message, bool announced) {
  if (!on_host(message)) return "only between host buffers";
  if (message.same_process) return "within a process one copy is what direct does";
  if (!announced) return "the message needs no announcing";
  if (message.single_copy == "never") return "ISTHMUS_SINGLE_COPY is never";
  const Status possible = message.readable ? message.readable() : Status{};
  return possible.ok() ? "" : possible.text();
}

// What the profile knows of it is where the trying begins.
std::string tried_beside_the_ring(Bytes bytes, const MachineProfile& machine) {
  const CopyBelief* const belief = belief_about(bytes);
  if (belief == nullptr || !is_known(*belief, machine))
    return std::string{"tried beside the ring, message by message, until one is known to be quicker for this size"} +
           (belief == nullptr ? "" : ", which the next program then knows; isthmus model fit finds out at once");
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(),
                "measured on this machine: %.4f ns/byte copied, by the ring %.4f; now and then both are tried again",
                machine.*belief->single * 1e9, machine.*belief->ring * 1e9);
  return text.data();
}

bool one_copy_is_quicker(Bytes bytes, const MachineProfile& machine) {
  const CopyBelief* const belief = belief_about(bytes);
  return belief != nullptr && is_known(*belief, machine) && machine.*belief->single < machine.*belief->ring;
}

ExplainedWay instead_of_ring(const char* name, const char* what, std::string refused) {
  return {name,
          std::string{what} + ", taken instead of the ring, whatever the price, once the memory is open",
          {},
          std::move(refused),
          false};
}

// Each that is chosen by its price, or what stands against it here.
std::vector<ExplainedWay> priced_ways(const ExplainedMessage& message, const MessageShape& shape, ist_carrier chosen,
                                      const MachineProfile& machine) {
  const std::string no_device = against_device(message);
  std::vector<ExplainedWay> ways;
  for (const OfferedCarrier& offer : offers(shape, machine)) {
    const bool device = offer.carrier == IST_CARRIER_DEVICE;
    if (device && chosen == IST_CARRIER_RING && !between_devices(message) && no_device.empty()) {
      ways.push_back(instead_of_ring(carrier_name(offer.carrier), "one copy", ""));
      continue;
    }
    std::string why = offer.price.refused() != nullptr ? offer.price.refused() : "";
    if (!why.empty() && device)
      why =
          no_device.empty() ? "the message is not announced, and goes before it is known what the receiver has" : no_device;
    if (!why.empty() && offer.carrier == IST_CARRIER_MAILBOX) why = against_mailbox(message);
    ways.push_back({carrier_name(offer.carrier), "", offer.price, why, offer.carrier == chosen});
  }
  return ways;
}

// Tried beside the ring, where that was chosen.
void add_single_copy(Explanation& answer, const ExplainedMessage& message, const MachineProfile& machine) {
  ExplainedWay single{carrier_name(IST_CARRIER_SINGLE_COPY),
                      tried_beside_the_ring(message.bytes, machine),
                      {},
                      against_single_copy(message, answer.carrier == IST_CARRIER_RING),
                      false};
  const bool always = message.single_copy == "always";
  if (single.refused.empty() && (always || one_copy_is_quicker(message.bytes, machine))) {
    for (ExplainedWay& way : answer.ways) way.chosen = false;
    if (always) single.meaning = "ISTHMUS_SINGLE_COPY is always";
    single.chosen = true;
    answer.choice = always ? single.name : single.name + " or " + answer.choice;
    answer.carrier = IST_CARRIER_SINGLE_COPY;
  } else if (single.refused.empty()) {
    answer.choice += " or " + single.name;
  }
  answer.ways.push_back(std::move(single));
}

constexpr const char* kFits = "What fits a slot or a cell is announced only where one copy between devices costs less.";
constexpr const char* kAgain =
    "By ist_isend, out of a place that such a message to that rank left lately: slot, unless one copy is quicker, or not "
    "measured yet.";
constexpr const char* kFitsOfDevice =
    "What fits a cell is announced only where one copy between devices costs less, or where the buffer's queue takes longer "
    "than a millisecond to be done with it.";
constexpr const char* kBlock =
    "The block is of ISTHMUS_BOUNCE_LIMIT. While all are in use, and until the sender has opened it, the ring carries "
    "messages.";
constexpr const char* kBetweenDevices =
    "Into memory that cudaMalloc gave, once the sender has opened it, which it does beside the first messages; those go as "
    "if "
    "there were no such way. Into managed memory, pools and mappings what is longer than a cell goes through a block of "
    "ISTHMUS_BOUNCE_LIMIT, in two copies.";
constexpr const char* kByWorkers =
    "While both workers run, which they do where small messages are frequent; else as if there were no such way.";
constexpr const char* kByOneDevice =
    "Between page-locked host memory and what cudaMalloc gave one copy, made by the device, once the side with the host "
    "memory "
    "has opened the other's, which it does beside the first messages.";

constexpr const char* kTurns =
    "Both ranks have this device, and processes take turns on it: what it copies for one of them waits for the other's to "
    "be over, "
    "longest where messages come alone.";

const char* remark_on(const Explanation& answer, const ExplainedMessage& message) {
  if (answer.carrier == IST_CARRIER_SLOT) return kFits;
  if (answer.carrier == IST_CARRIER_CELL) return message.from.kind == KindId::host ? kFits : kFitsOfDevice;
  if (answer.carrier == IST_CARRIER_BLOCK) return kBlock;
  if (answer.carrier == IST_CARRIER_MAILBOX) return kByWorkers;
  if (answer.carrier == IST_CARRIER_DEVICE) return between_devices(message) ? kBetweenDevices : kByOneDevice;
  const bool fits_again =
      message.bytes > message.slot_limit && message.bytes <= smaller(message.slot_limit_again, message.slots_up_to);
  if (fits_again && answer.carrier == IST_CARRIER_RING && on_host(message) && !message.same_process &&
      !message.mode.synchronous)
    return kAgain;
  return "";
}

std::string terms_of(const Bill& price) {
  std::string text;
  for (const Term& term : price.terms())
    if (term.seconds != 0) text += (text.empty() ? "" : " + ") + microseconds(term.seconds) + " " + term.name;
  return text;
}

// One of those that are not chosen by their price is taken before the ring.
void take(Explanation& answer, ist_carrier carrier) {
  answer.choice = std::string{carrier_name(carrier)} + ", else " + answer.choice;
  answer.carrier = carrier;
}

}  // namespace

const char* carrier_name(int carrier) {
  const int counted = carrier - IST_CARRIER_SINGLE_COPY;
  if (counted >= 0 && static_cast<std::size_t>(counted) < kCountedCarriers.size())
    return kCountedCarriers[static_cast<std::size_t>(counted)];
  return carrier > 0 && static_cast<std::size_t>(carrier) < kCarriers.size() ? kCarriers[static_cast<std::size_t>(carrier)]
                                                                             : kCarriers[0];
}

std::string microseconds(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", seconds * 1e6);
  return text.data();
}

std::string text_of(const Explanation& explanation, const std::string& source) {
  std::string text = explanation.question + ": " + explanation.choice + "\n";
  if (!explanation.numbers.empty())
    text += "numbers: " + explanation.numbers + "\n";
  else
    text += source.empty() ? "numbers: built in; isthmus model fit measures those of this machine\n"
                           : "numbers: measured, " + source + "\n";
  text += "\n    price us  way\n";
  for (const ExplainedWay& way : explanation.ways) {
    std::array<char, 64> line{};
    const bool priced = way.refused.empty() && way.price;
    std::snprintf(line.data(), line.size(), "%c%11s  %-18s  ", way.chosen ? '*' : ' ',
                  priced ? microseconds(way.price->seconds()).c_str() : "-", way.name.c_str());
    text += line.data() +
            (priced                ? terms_of(*way.price)
             : way.refused.empty() ? way.meaning
                                   : "refused: " + way.refused) +
            "\n";
  }
  if (!explanation.remark.empty()) text += "\n" + explanation.remark + "\n";
  return text;
}

std::string in_brief(const Explanation& explanation, ist_carrier wanted) {
  const ExplainedWay* chosen = nullptr;
  const ExplainedWay* next = nullptr;
  std::string against;
  for (const ExplainedWay& way : explanation.ways) {
    if (way.name == carrier_name(wanted) && !way.refused.empty()) against = "; not by " + way.name + ": " + way.refused;
    if (way.name == carrier_name(wanted) && way.refused.empty() && way.price && !way.chosen)
      against = "; not by " + way.name + ": " + terms_of(*way.price);
    if (way.chosen)
      chosen = &way;
    else if (way.refused.empty() && way.price && (next == nullptr || way.price->seconds() < next->price->seconds()))
      next = &way;
  }
  std::string why;
  if (chosen != nullptr && chosen->price) why = microseconds(chosen->price->seconds()) + " us";
  if (chosen != nullptr && !chosen->price) why = chosen->meaning;
  if (!why.empty() && next != nullptr) why += ", " + next->name + " " + microseconds(next->price->seconds());
  why += against;
  return explanation.choice + (why.empty() ? "" : " (" + why + ")");
}

MessageShape explained_shape(const ExplainedMessage& message, bool lent, bool mailbox) {
  // After the first such message into a device.
  const bool short_slots = message.to.kind != KindId::host;
  MessageShape shape{
      message.bytes,        message.from.kind,
      message.same_process, short_slots ? smaller(message.slot_limit, message.cell_limit) : message.slot_limit,
      message.cell_limit,   lent};
  shape.slots_up_to = message.slots_up_to;
  shape.worker_limit = message.worker_limit;
  if (mailbox) shape.mailbox_limit = message.mailbox_limit;
  shape.memory = message.from.memory;
  shape.to = message.to;
  shape.mode = message.mode;
  shape.same_device = message.same_device && between_devices(message) && !message.same_process;
  return shape;
}

Explanation explain(const ExplainedMessage& message, const MachineProfile& machine) {
  const std::string no_device = against_device(message);
  const MessageShape shape =
      explained_shape(message, between_devices(message) && no_device.empty(), against_mailbox(message).empty());
  const ist_carrier chosen = choose(shape, machine);
  Explanation answer;
  answer.carrier = chosen;
  answer.choice = carrier_name(chosen);
  answer.ways = priced_ways(message, shape, chosen, machine);
  const bool by_ring = chosen == IST_CARRIER_RING;
  const std::string no_block = against_block(message, machine);
  answer.ways.push_back(instead_of_ring(carrier_name(IST_CARRIER_BLOCK), "two copies", no_block));
  add_single_copy(answer, message, machine);
  if (by_ring && !between_devices(message) && no_device.empty()) take(answer, IST_CARRIER_DEVICE);
  if (by_ring && no_block.empty()) take(answer, IST_CARRIER_BLOCK);
  answer.remark = remark_on(answer, message);
  if (between_devices(message) && message.same_device)
    answer.remark += (answer.remark.empty() ? "" : " ") + std::string{kTurns};
  return answer;
}

}  // namespace ist
