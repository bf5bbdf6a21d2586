#include "protocol/explain_stream.hpp"

#include "memory/channels.hpp"

namespace ist {
namespace {

constexpr const char* kNumbersOfStreams =
    "built in, of two H200 with NVLink; isthmus bench stream-latency measures this machine";

std::string not_for_kernels(const MessageEnd& end, const char* whose) {
  const bool locked = end.memory == MemoryClass::pinned || end.memory == MemoryClass::registered;
  if (end.kind == KindId::cuda || (end.kind == KindId::host && locked)) return "";
  return std::string{"kernels read and write CUDA memory and page-locked host memory, and the "} + whose +
         " buffer is neither";
}

std::string against_streams(const ExplainedMessage& message, const std::string& off) {
  if (!off.empty()) return off;
  const std::string from = not_for_kernels(message.from, "sender's");
  return from.empty() ? not_for_kernels(message.to, "receiver's") : from;
}

Bill price_of(StreamCarrier carrier, const ExplainedMessage& message, const StreamProfile& streams) {
  const auto bytes = static_cast<double>(message.bytes.value);
  Bill bill;
  bill.add("a kernel at each end", streams.kernels_alpha);
  if (carrier == StreamCarrier::packets) bill.add("packets, four bytes in each store of eight", bytes * streams.packet_beta);
  if (carrier == StreamCarrier::chunks) {
    bill.add("the first chunk's flag", streams.flag_alpha);
    bill.add("stores into the other device", bytes * streams.chunk_beta);
  }
  return bill;
}

// What stands against that way alone.
std::string against(StreamCarrier carrier, const ExplainedMessage& message) {
  if (message.same_device != (carrier == StreamCarrier::parts))
    return message.same_device ? "on one device no kernel may wait for another process's: those need not run at once"
                               : "the two ends are on two devices";
  if (carrier == StreamCarrier::packets && message.bytes > kMostInPackets) return "the message is longer than 8 KiB";
  if (carrier == StreamCarrier::chunks && message.bytes <= kMostInPackets)
    return "what fits packets goes as packets, whose kernels need no second look at a flag";
  return "";
}

ExplainedWay way_of(StreamCarrier carrier, const char* name, const ExplainedMessage& message, const std::string& off,
                    const StreamProfile& streams) {
  ExplainedWay way{name, "", price_of(carrier, message, streams), off, false};
  if (carrier == StreamCarrier::parts) {
    way.meaning = "the only way on one device, whatever its price: streams wait for a word, kernels copy a MiB at a time";
    way.price.reset();
  }
  if (way.refused.empty()) way.refused = against(carrier, message);
  way.chosen = way.refused.empty();
  return way;
}

}  // namespace

StreamCarrier choose_in_stream(Bytes bytes, bool same_device) {
  if (same_device) return StreamCarrier::parts;
  return bytes <= kMostInPackets ? StreamCarrier::packets : StreamCarrier::chunks;
}

Explanation explain_in_stream(const ExplainedMessage& message, const std::string& off, const MachineProfile& machine,
                              const StreamProfile& streams) {
  Explanation answer;
  answer.numbers = kNumbersOfStreams;
  const std::string closed = against_streams(message, off);
  for (const auto& [carrier, name] : {std::pair{StreamCarrier::packets, "packets"},
                                      {StreamCarrier::chunks, "chunks"},
                                      {StreamCarrier::parts, "stream waits"}}) {
    answer.ways.push_back(way_of(carrier, name, message, closed, streams));
    if (answer.ways.back().chosen) answer.choice = name;
  }
  // The other call, made once the stream has been waited for.
  ExplainedWay apart{"ist_send", "", Bill{}, "", !closed.empty()};
  const Explanation message_apart = explain(message, machine);
  apart.meaning = "as " + message_apart.choice;
  apart.price->add("a processor that waits for the stream", streams.wait_alpha);
  for (const ExplainedWay& way : message_apart.ways)
    if (way.chosen && way.price) apart.price->add("then the message", way.price->seconds());
  if (!closed.empty()) {
    apart.chosen = false;
    answer.choice = "an error; there is ist_send, once the stream has been waited for: " + message_apart.choice;
  }
  answer.ways.push_back(std::move(apart));
  answer.remark = closed.empty() && !message.same_device
                      ? "By calls, enqueued ahead; in a graph a small message takes two thirds of it. What fits "
                        "packets, the length alone\n"
                        "decides; which device an end is on, the first call's stream."
                      : "";
  return answer;
}

}  // namespace ist
