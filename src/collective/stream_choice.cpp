#include "collective/stream_choice.hpp"

#include <algorithm>

#include "memory/meetings.hpp"

namespace ist {
namespace {

constexpr const char* kNumbersOfCalls =
    "built in, of two H200 with NVLink, each call waited for; isthmus bench collective measures this machine";

std::string in_mebibytes(Bytes bytes) { return std::to_string(bytes.value >> 20U) + " MiB"; }

Bill price_of_kernels(const StreamedShape& shape, const StreamedCallProfile& machine) {
  const std::uint64_t piece = meeting_piece(shape.ranks).value;
  const auto kernels = static_cast<double>(std::max<std::uint64_t>((shape.bytes.value + piece - 1) / piece, 1));
  Bill bill;
  bill.add("putting it there, and waiting for the stream", machine.put_alpha);
  bill.add("kernels that meet, one after the other", kernels * machine.meeting_alpha);
  bill.add("stores into the other devices",
           static_cast<double>(shape.ranks - 1) * static_cast<double>(shape.bytes.value) * machine.store_beta);
  return bill;
}

Bill price_of_nccl(const StreamedCall& call, const StreamedCallProfile& machine) {
  Bill bill;
  bill.add("NCCL's call, and waiting for the stream", machine.nccl_alpha);
  bill.add("bytes between GPUs", call.share * static_cast<double>(call.shape.bytes.value) * machine.nccl_beta);
  return bill;
}

std::string against_nccl(const StreamedCall& call) {
  if (!call.no_nccl.empty()) return call.no_nccl;
  if (!call.shape.own_devices) return "it takes a device for each rank";
  if (call.shape.bytes < nccl_in_stream_from(call.shape.ranks))
    return "it has calls from " + in_mebibytes(nccl_in_stream_from(call.shape.ranks)) +
           " on: shorter ones are quicker by kernels, and can be captured";
  return "";
}

bool by_kernels(const StreamedShape& shape) { return shape.own_devices && shape.ranks <= kMostAtMeeting; }

}  // namespace

Bytes nccl_in_stream_from(int ranks) { return mebibytes(ranks <= 4 ? 4 : 1); }

StreamWay choose_in_stream(const StreamedShape& shape) {
  if (!by_kernels(shape)) return StreamWay::rank_0;
  return shape.nccl && shape.bytes >= nccl_in_stream_from(shape.ranks) ? StreamWay::nccl : StreamWay::kernels;
}

Explanation explain_in_stream(const StreamedCall& call, const StreamedCallProfile& machine) {
  Explanation answer;
  answer.numbers = kNumbersOfCalls;
  const StreamWay chosen = choose_in_stream(call.shape);
  ExplainedWay kernels{"kernels", "one on each rank's device, which meet", price_of_kernels(call.shape, machine), "",
                       chosen == StreamWay::kernels};
  if (!by_kernels(call.shape))
    kernels.refused = call.shape.own_devices ? "so many ranks do not meet in kernels: 16 at most"
                                             : "ranks share a device, where no kernel may wait for another process's";
  ExplainedWay rank_0{"rank 0",
                      "messages in streams to rank 0 and from it, the only way where kernels cannot meet",
                      {},
                      "",
                      chosen == StreamWay::rank_0};
  if (!rank_0.chosen) rank_0.refused = "each rank has a device of its own";
  ExplainedWay nccl{"nccl", "by NCCL, in the stream", price_of_nccl(call, machine), against_nccl(call),
                    chosen == StreamWay::nccl};
  if (nccl.refused.empty() && !nccl.chosen) nccl.refused = "so many ranks go through rank 0";
  for (ExplainedWay* way : {&kernels, &rank_0, &nccl}) {
    if (way->chosen) answer.choice = way->name;
    answer.ways.push_back(std::move(*way));
  }
  if (chosen == StreamWay::nccl)
    answer.remark =
        "While the stream is captured such a call is IST_ERR_NOT_CAPTURABLE; with ISTHMUS_NCCL=never on any rank "
        "kernels carry it.";
  return answer;
}

}  // namespace ist
