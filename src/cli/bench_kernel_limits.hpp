// What bare kernels reach beside the driver's copies: how long a launch takes, what store kernels carry, and how soon a word, some packets
// or a command of the processor come from one kernel to another.
//
// Who calls this : bench_device_limits, through DriverCopies::kernels().
// Threads        : one. At most one kernel that waits is on a device at a time.
// Ownership      : modules, and memory for words and packets; the places' memory is the copies'.
// Errors         : a Failure that names the driver's call, or says that a kernel brought other bytes than it was to. What this machine
//                  has no way for is left out, each with a sentence. Every wait ends: after kKernelPatience the kernel leaves.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ist::cli {

inline constexpr std::chrono::seconds kKernelPatience{5};

struct LimitCall {
  std::string name;
  std::function<void()> call;
  std::function<void()> before = {};  // each call, and not timed; may be none
};

// One copy of at most so many bytes, until the processor knows that it is over.
struct LimitCopy {
  std::string name;
  std::size_t most;
  std::function<void(std::size_t bytes)> copy;
};

// So many copies of `bytes` each, put there and waited for; `both_ways`: as many back at the same time.
struct LimitWindow {
  std::string name;
  std::function<void(std::size_t bytes, bool both_ways)> copy;
};

// Microseconds of trips: one by one, or one figure that is the mean of all. Empty: they did not come to an end in time.
struct LimitTrips {
  std::string name;
  std::uint64_t bytes;
  std::function<std::vector<double>(std::uint64_t trips)> measure;
};

template <class Way>
struct LimitWays {
  std::vector<Way> all;
  std::vector<std::string> left_out;  // sentences
};

class KernelLimits {
 public:
  virtual ~KernelLimits() = default;
  virtual LimitWays<LimitCall> launches() = 0;
  virtual LimitWays<LimitCopy> single_copies() = 0;
  virtual LimitWays<LimitWindow> windows(int copies) = 0;
  // Of kernels on two devices that wait for each other: means of a launch.
  virtual LimitWays<LimitTrips> between_kernels() = 0;
  // Of the processor and kernels that stay on their devices: trip by trip.
  virtual LimitWays<LimitTrips> with_residents() = 0;
};

struct DriverPair;
// `pair` outlives it.
std::unique_ptr<KernelLimits> open_kernel_limits(const DriverPair& pair);

}  // namespace ist::cli
