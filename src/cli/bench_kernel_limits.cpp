#include "cli/bench_kernel_limits.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "cli/bench_driver.hpp"
#include "cli/bench_kernel_trips.hpp"
#include "cli/bench_limit_launch.hpp"
#include "cli/bench_stream_device.hpp"
#include "cli/failure.hpp"

namespace ist::cli {
namespace {

constexpr unsigned kFewBlocks = 8;
// So many launches may wait in a stream before the next call would wait, too: the driver lets a thousand.
constexpr int kLaunchesAhead = 64;
// What a block of 512 threads stores at once, with one vector a thread, and with four.
constexpr std::size_t kOneVector = 512 * sizeof(channel::Quad);
constexpr std::size_t kFourVectors = 4 * kOneVector;

// Copies by store kernels, either way.
class Stores {
 public:
  Stores(const DriverPair& pair, const BareKernels& here, const BareKernels& there)
      : pair_(pair), here_(here), there_(there) {}

  // All by one launch, or each by one of its own.
  void window(std::size_t bytes, int copies, unsigned blocks, bool together, bool both_ways) const {
    const int launches = together ? 1 : copies;
    for (int n = 0; n < launches; ++n) {
      launch(bytes, copies / launches, blocks, false);
      if (both_ways) launch(bytes, copies / launches, blocks, true);
    }
    here_.wait();
    if (both_ways) there_.wait();
  }

  // What is timed was right once: three copies of an odd size, each way, by several blocks.
  void prove() const {
    constexpr std::size_t kOdd = 2 * kOneVector + 4099;
    constexpr int kCopies = 3;
    const std::size_t bytes = std::min(pair_.most, kOdd);
    for (const bool back : {false, true}) {
      const DriverMemory& source = back ? pair_.back_source : pair_.source;
      const DriverMemory& target = back ? pair_.back_target : pair_.target;
      const std::size_t stride = stride_of(bytes);
      const std::size_t last = (places_of(bytes, kCopies) - 1) * stride;
      const auto sent = odd_bytes(last + bytes);
      source.write(sent);
      target.write(std::vector<std::byte>(sent.size()));
      launch(bytes, kCopies, kFewBlocks, back);
      (back ? there_ : here_).wait();
      std::vector<std::byte> found(sent.size());
      target.read(found);
      for (std::size_t at = 0; at <= last; at += stride)
        if (!std::equal(sent.begin() + static_cast<std::ptrdiff_t>(at),
                        sent.begin() + static_cast<std::ptrdiff_t>(at + bytes),
                        found.begin() + static_cast<std::ptrdiff_t>(at)))
          throw Failure(
              1, "a store kernel brought other bytes than it was to, " + pair_.from.text() + " to " + pair_.to.text());
    }
  }

 private:
  // Of whole vectors, so that each copy begins at one.
  static std::size_t stride_of(std::size_t bytes) {
    return (bytes + sizeof(channel::Quad) - 1) / sizeof(channel::Quad) * sizeof(channel::Quad);
  }
  std::size_t places_of(std::size_t bytes, int copies) const {
    return std::clamp<std::size_t>(pair_.most / stride_of(bytes), 1, static_cast<std::size_t>(copies));
  }
  void launch(std::size_t bytes, int copies, unsigned blocks, bool back) const {
    StoreWork work{};
    work.to = reinterpret_cast<std::byte*>((back ? pair_.back_target : pair_.target).address());
    work.from = reinterpret_cast<const std::byte*>((back ? pair_.back_source : pair_.source).address());
    work.bytes = bytes;
    work.stride = stride_of(bytes);
    work.places = places_of(bytes, copies);
    work.copies = static_cast<std::uint64_t>(copies);
    // Where there is little, more blocks have a part of it.
    work.part = bytes * work.copies >= blocks * kFourVectors ? kFourVectors : kOneVector;
    (back ? there_ : here_).launch(work, blocks);
  }

  const DriverPair& pair_;
  const BareKernels& here_;
  const BareKernels& there_;
};

class CudaKernelLimits final : public KernelLimits {
 public:
  explicit CudaKernelLimits(const DriverPair& pair)
      : pair_(pair),
        here_(pair.driver, pair.here),
        there_(pair.driver, pair.there),
        why_none_(here_.why_none().empty() ? there_.why_none() : here_.why_none()),
        stores_(pair, here_, there_) {
    if (why_none_.empty()) trips_.emplace(pair, here_, there_);
  }

  LimitWays<LimitCall> launches() override;
  LimitWays<LimitCopy> single_copies() override {
    if (!trips_) return {{}, {"copies by a kernel: " + why_none_}};
    return trips_->single_copies();
  }
  LimitWays<LimitWindow> windows(int copies) override;

  LimitWays<LimitTrips> between_kernels() override {
    if (!trips_) return {{}, {"kernels that wait for each other: " + why_none_}};
    return trips_->between_kernels();
  }
  LimitWays<LimitTrips> with_residents() override {
    if (!trips_) return {{}, {"resident kernels: " + why_none_}};
    return trips_->with_residents();
  }

 private:
  std::shared_ptr<const StreamGraph> graph_of_empty() const;

  const DriverPair& pair_;
  const BareKernels here_;
  const BareKernels there_;
  const std::string why_none_;
  const Stores stores_;
  std::optional<KernelTrips> trips_;
};

// Goes with the last that holds it; without a graph where this driver has none.
std::shared_ptr<const StreamGraph> CudaKernelLimits::graph_of_empty() const {
  pair_.here.use();
  const std::shared_ptr<const StreamGraph> graph(new StreamGraph(pair_.driver.api(), pair_.here.stream(0), [this] {
    here_.launch_empty();
    return true;
  }));
  pair_.here.leave();
  return graph;
}

LimitWays<LimitCall> CudaKernelLimits::launches() {
  LimitWays<LimitCall> ways;
  if (!why_none_.empty()) {
    ways.left_out.push_back("launches of kernels: " + why_none_);
    return ways;
  }
  ways.all.push_back({"launch of an empty kernel", [this] { here_.launch_empty(); },
                      [this, ahead = 0]() mutable {
                        if (++ahead % kLaunchesAhead == 0) here_.wait();
                      }});
  ways.all.push_back({"launch of an empty kernel, waited for", [this] {
                        here_.launch_empty();
                        here_.wait();
                      }});
  if (const auto graph = graph_of_empty(); graph->there())
    ways.all.push_back({"launch of a graph of an empty kernel, waited for", [this, graph] {
                          pair_.here.use();
                          graph->launch();
                          pair_.here.leave();
                          here_.wait();
                        }});
  else
    ways.left_out.emplace_back("launches of graphs: this driver has none");
  return ways;
}

LimitWays<LimitWindow> CudaKernelLimits::windows(int copies) {
  LimitWays<LimitWindow> ways;
  if (!pair_.between_devices()) return ways;
  if (!why_none_.empty() || !pair_.reached) {
    ways.left_out.push_back("store kernels: " + (why_none_.empty() ? pair_.out_of_reach() : why_none_));
    return ways;
  }
  stores_.prove();
  const unsigned all = std::max(pair_.here.multiprocessors(), kFewBlocks);
  const auto add = [&](const std::string& name, unsigned blocks, bool together) {
    ways.all.push_back({name, [this, copies, blocks, together](std::size_t bytes, bool both_ways) {
                          stores_.window(bytes, copies, blocks, together, both_ways);
                        }});
  };
  add("store kernel of " + std::to_string(kFewBlocks) + " blocks, a launch a copy", kFewBlocks, false);
  if (all > kFewBlocks) add("store kernel of " + std::to_string(all) + " blocks, a launch a copy", all, false);
  add("batched store kernel of " + std::to_string(all) + " blocks, " + std::to_string(copies) + " copies by a launch", all,
      true);
  if (all == kFewBlocks)
    ways.left_out.emplace_back("a store kernel of as many blocks as multiprocessors: the driver tells of none");
  return ways;
}

}  // namespace

std::unique_ptr<KernelLimits> open_kernel_limits(const DriverPair& pair) { return std::make_unique<CudaKernelLimits>(pair); }

}  // namespace ist::cli
