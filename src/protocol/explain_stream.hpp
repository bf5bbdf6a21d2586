// How a message in a stream is carried, told to people: by what its kernels do, with its price term by term.
//
// Who calls this : face/ for ist_explain; cli/explain.
// Threads        : pure functions of values.
// Ownership      : values.
// Errors         : none; a way that is not there is one that is refused.
#pragma once

#include "protocol/explain.hpp"

namespace ist {

// Of streams between two devices. Two H200 with NVLink, 2026-11-22 (docs/measured, -streams.json): 8 bytes in 3.6 to 4.1 us by calls,
// 2.4 in a graph, 8192 in 0.9 more. Of chunks no more is known than the machine's limits: a flag to the other device 0.67 us, stores of
// 64 blocks 360 GB/s.
struct StreamProfile {
  double kernels_alpha = 3.6e-6;  // one at each end, put there by a call each
  double packet_beta = 0.11e-9;
  double flag_alpha = 0.67e-6;
  double chunk_beta = 0.0028e-9;
  double wait_alpha = 4.9e-6;  // a processor that waits for a stream: a launch and the wait take 7.5, a launch 2.6
};

// packets: flag and data in one store. chunks: through rings, by blocks at each end. parts: streams wait, and kernels only copy.
enum class StreamCarrier : std::uint8_t { packets, chunks, parts };
StreamCarrier choose_in_stream(Bytes bytes, bool same_device);

// `message`: as it would be without a stream, which is one of the ways. `off`: why there are no messages in streams between the two;
// empty: there are.
Explanation explain_in_stream(const ExplainedMessage& message, const std::string& off, const MachineProfile& machine,
                              const StreamProfile& streams = {});

}  // namespace ist
