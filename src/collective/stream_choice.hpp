// What carries a collective call in streams: kernels that meet, messages through rank 0, or NCCL; by values alone, and told to people.
//
// Who calls this : nccl_stream.cpp; face/ for ist_explain; cli/explain.
// Threads        : pure functions of values.
// Ownership      : values.
// Errors         : none.
#pragma once

#include <string>

#include "protocol/explain.hpp"

namespace ist {

// Two H200, 2026-11-22 (docs/measured, -device-collectives.json), each call waited for: by kernels 13.5 us for 8 bytes, 14.5 for
// 256 KiB, 35.9 for 1 MiB, which are four kernels, 64.6 for 2 MiB; by NCCL 73.1 for 4 MiB and 120.6 for 16.
struct StreamedCallProfile {
  double put_alpha = 7.4e-6;      // the call, and the wait for the stream
  double meeting_alpha = 6.1e-6;  // of each kernel that meets the others'
  double store_beta = 0.0039e-9;
  double nccl_alpha = 55e-6;
  double nccl_beta = 0.0041e-9;
};

enum class StreamWay : std::uint8_t { kernels, rank_0, nccl };

// What all ranks know alike.
struct StreamedShape {
  int ranks = 1;
  Bytes bytes;
  bool own_devices = true;  // does each rank have one of its own?
  bool nccl = false;        // has NCCL such a call, and serves these ranks?
};
StreamWay choose_in_stream(const StreamedShape& shape);
// From so many bytes on calls are NCCL's where it can have them.
Bytes nccl_in_stream_from(int ranks);

// `call`: its name. `share`: so many times the vector each rank's link carries, of NCCL's. `no_nccl`: why NCCL has no such call, where
// it has not.
struct StreamedCall {
  const char* call = "";
  StreamedShape shape;
  double share = 1;
  std::string no_nccl = {};
};
Explanation explain_in_stream(const StreamedCall& call, const StreamedCallProfile& machine = {});

}  // namespace ist
