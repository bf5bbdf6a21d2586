// The image of the bare kernels on one device, and how they are put into its first stream.
//
// Who calls this : bench_kernel_limits, bench_kernel_trips.
// Threads        : one.
// Ownership      : the module, which goes with the object; the side outlives it.
// Errors         : a Failure that names the driver's call. A driver or a device that cannot have the image is said by why_none().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/bench_driver.hpp"
#include "cli/bench_limit_bare.hpp"

namespace ist::cli {

enum class BareKernel : std::uint8_t { empty, store, flags, packets, meet, answer, copy, once, post, take };
inline constexpr std::size_t kBareKernels = 10;

class BareKernels {
 public:
  // Every kernel has run once, without work, when this is over: the code of none is loaded while another one waits.
  BareKernels(const Driver& driver, const DriverSide& side);
  BareKernels(const BareKernels&) = delete;
  BareKernels& operator=(const BareKernels&) = delete;
  ~BareKernels();
  // Empty where they can be launched.
  const std::string& why_none() const { return why_none_; }

  void launch_empty() const { launch(BareKernel::empty, 1, 32, nullptr); }
  void launch(const StoreWork& work, unsigned blocks) const;
  void launch(BareKernel kernel, const TripWork& work, unsigned threads) const;
  void wait() const { driver_.must(driver_.api().cuStreamSynchronize(side_.stream(0)), "cuStreamSynchronize"); }
  const DriverSide& side() const { return side_; }

 private:
  void load();
  void launch(BareKernel kernel, unsigned blocks, unsigned threads, void** arguments) const;

  const Driver& driver_;
  const DriverSide& side_;
  std::string why_none_;
  CUmodule module_ = nullptr;
  std::array<CUfunction, kBareKernels> functions_{};
};

}  // namespace ist::cli
