// One-sided calls inside kernels and in streams, and what the driver does with a heap's memory by itself.
//
// Who calls this : bench_one_sided and bench_one_sided_host, on both ranks.
// Threads        : one.
// Ownership      : heaps, memory, a stream and a module of its own.
// Errors         : a Failure, also where the CUDA parts were left out; two ranks on one GPU are refused.
#pragma once

#include <memory>

#include "cli/bench_one_sided_rows.hpp"

namespace ist::cli {

// This rank's device as the bare copies use it: one stream.
class OneSidedDevice {
 public:
  OneSidedDevice() = default;
  OneSidedDevice(const OneSidedDevice&) = delete;
  OneSidedDevice& operator=(const OneSidedDevice&) = delete;
  virtual ~OneSidedDevice() = default;
  virtual void copy(void* to, const void* from, std::uint64_t bytes) = 0;
  virtual void launch_empty() = 0;
  virtual void wait() = 0;
};
std::unique_ptr<OneSidedDevice> open_one_sided_device(int number);
// Of that kind, which this rank's memory is on; -1 of the host's.
int own_device(const OneSidedBench& bench);

void measure_kernel_side(OneSidedBench& bench);
void measure_stream_side(OneSidedBench& bench);

}  // namespace ist::cli
