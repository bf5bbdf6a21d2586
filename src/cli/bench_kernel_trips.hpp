// Words and packets between kernels of two devices, and between the processor and kernels that stay on their devices, timed.
//
// Who calls this : bench_kernel_limits.
// Threads        : one. Kernels that wait for each other are on two devices, never on one.
// Ownership      : memory for words, packets and bytes; pair and kernels outlive it.
// Errors         : as bench_kernel_limits.hpp has it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "cli/bench_kernel_limits.hpp"
#include "cli/bench_limit_launch.hpp"

namespace ist::cli {

// Any bytes, of which no two beside each other are alike.
std::vector<std::byte> odd_bytes(std::size_t count);

// What the processor and the kernels write, each word on a line of its own; page-locked.
struct TripDesk {
  alignas(128) std::uint64_t command;      // P: the trip above, bytes below
  alignas(128) std::uint64_t done;         // K: the trip
  alignas(128) std::uint64_t stop;         // P: 1: leave
  alignas(128) KernelEnd here;             // K
  alignas(128) KernelEnd there;            // K
  alignas(128) channel::Quad packets[64];  // P or K
};

class KernelTrips {
 public:
  KernelTrips(const DriverPair& pair, const BareKernels& here, const BareKernels& there);
  LimitWays<LimitCopy> single_copies();
  LimitWays<LimitTrips> between_kernels();
  LimitWays<LimitTrips> with_residents();

 private:
  // Ends what waits, whatever happens, and waits for that.
  class Stay {
   public:
    explicit Stay(const KernelTrips& trips);
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;
    ~Stay();

   private:
    const KernelTrips& trips_;
  };
  // Why two kernels cannot wait for each other; empty if they can.
  std::string why_not_two() const;
  TripWork work(bool here, std::uint64_t bytes, std::uint64_t trips) const;
  std::vector<double> between(BareKernel kernel, unsigned threads, std::uint64_t bytes, unsigned ways,
                              std::uint64_t trips) const;
  // What the processor says, how it knows that the answer is there, and what is to be right when all is over; some may be none.
  struct Order {
    std::function<void()> launch;
    std::uint64_t bytes = 0;
    std::function<void(std::uint64_t trip)> give = {};   // none: the command
    std::function<bool(std::uint64_t trip)> come = {};   // none: `done` is the trip's number
    std::function<std::vector<std::byte>()> found = {};  // none: nothing is brought
  };
  std::vector<double> command(std::uint64_t trips, const Order& order) const;
  bool answered(std::uint64_t trip, const Order& order) const;
  TripWork told(bool here, std::uint64_t bytes, std::uint64_t trips) const;
  std::vector<std::byte> in_target(std::uint64_t bytes) const;
  std::vector<std::byte> in_packets(std::uint64_t bytes) const;
  void give_packets(std::uint64_t trip, const std::vector<std::byte>& bytes) const;
  bool packets_have_come(std::uint64_t trip, std::uint64_t bytes) const;
  // Why kernels cannot copy between the places; empty if they can.
  std::string why_no_copies() const;
  void add_words(LimitWays<LimitTrips>& found) const;
  void add_copies(LimitWays<LimitTrips>& found) const;
  void add_with_host(LimitWays<LimitTrips>& found) const;
  void add_through_two(LimitWays<LimitTrips>& found) const;

  const DriverPair& pair_;
  const BareKernels& here_;
  const BareKernels& there_;
  std::shared_ptr<TripDesk> desk_;
  const DriverMemory mail_here_;
  const DriverMemory mail_there_;
  const DriverMemory source_;
  const DriverMemory target_;
};

}  // namespace ist::cli
