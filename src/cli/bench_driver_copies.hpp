// The CUDA driver by itself: memory of two places, copies between them, and the few calls that every message makes.
//
// Who calls this : bench_device_limits.
// Threads        : one.
// Ownership      : the memory and the streams, which go with the object.
// Errors         : a Failure that names the driver's call; unavailable() says why there is nothing to measure.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench_kernel_limits.hpp"
#include "cli/bench_options.hpp"

namespace ist::cli {

class DriverCopies {
 public:
  static constexpr int kStreams = 4;

  // Memory of `most` bytes at each place, one of which is CUDA memory; written once. Between two devices each may reach the other.
  static std::unique_ptr<DriverCopies> open(const Place& from, const Place& to, std::size_t most);
  virtual ~DriverCopies() = default;

  // One copy behind what the stream (0 to kStreams - 1) holds already. `back`: the other way, and in streams of the other device
  // if there is one, between other bytes.
  virtual void copy(std::size_t bytes, int stream, bool back) = 0;
  // The same of `count` copies side by side in one call, where the driver has one and both places are devices.
  virtual bool copies_together() const = 0;
  virtual void copy_together(std::size_t bytes, int count, int stream, bool back) = 0;
  // Until all of them are over.
  virtual void wait() = 0;
  // One copy in stream 0, and until this processor knows that it is over, in each way that there is to know it.
  virtual std::vector<std::pair<std::string, std::function<void(std::size_t)>>> ways() = 0;
  // Calls of the driver, mostly on idle things.
  virtual LimitWays<LimitCall> calls() = 0;
  // What bare kernels reach in the same memory; they go before this does.
  virtual std::unique_ptr<KernelLimits> kernels() = 0;
};

// The devices there are; 0 and why, where the driver cannot be used.
std::pair<int, std::string> driver_devices();
// A device's name that is the same in every process, and which device of this one has it, or Place::kAnyDevice. Of what cannot be asked
// the name is all zeros, which no device has.
using DriverUuid = std::array<char, 16>;
DriverUuid driver_uuid(int device);
int driver_device(const DriverUuid& uuid);

}  // namespace ist::cli
