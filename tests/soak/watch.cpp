#include "watch.hpp"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

#include "stacks.hpp"

namespace soak {
namespace {

// What may stay more than there was. Memory of other ranks that is open holds descriptors, and is closed with some later message, so
// that their number goes up and down by a few; the driver takes device memory by granules of 2 MiB; and what its and the system's
// allocators keep of host memory moves by some MiB from round to round. What two ranks have for their messages, up to 24 MiB (isthmus info), is
// touched as windows of long ones happen to go round it.
constexpr std::int64_t kDescriptors = 4;
constexpr std::int64_t kDevice = std::int64_t{8} << 20;
constexpr std::int64_t kHost = std::int64_t{48} << 20;

using Values = std::vector<std::pair<double, std::int64_t>>;

std::int64_t median(Values values) {
  std::sort(values.begin(), values.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return values[values.size() / 2].second;
}

// Least squares.
double per_second(const Values& values) {
  double mean_time = 0;
  double mean = 0;
  for (const auto& [seconds, value] : values) {
    mean_time += seconds / static_cast<double>(values.size());
    mean += static_cast<double>(value) / static_cast<double>(values.size());
  }
  double above = 0;
  double below = 0;
  for (const auto& [seconds, value] : values) {
    above += (seconds - mean_time) * (static_cast<double>(value) - mean);
    below += (seconds - mean_time) * (seconds - mean_time);
  }
  return below > 0 ? above / below : 0;
}

Values of(const std::vector<Sample>& samples, std::int64_t Sample::*member) {
  Values values;
  for (const Sample& one : samples) values.emplace_back(one.seconds, one.*member);
  return values;
}

// Of many, so many that they are drawn easily.
nlohmann::json drawn(const std::vector<Sample>& samples) {
  nlohmann::json list = nlohmann::json::array();
  const std::size_t step = samples.size() / 300 + 1;
  for (std::size_t i = 0; i < samples.size(); i += step)
    list.push_back({std::round(samples[i].seconds * 10) / 10, samples[i].device, samples[i].descriptors, samples[i].host});
  return list;
}

// How far apart the medians of two such sets may lie by chance alone: three standard errors, the spread being that of the quarter and three
// quarters of them, as if they were normally distributed (of a median, 1.253 times that of a mean). What grows steadily from one to the
// next is no chance, and is taken off first where there are enough to tell the two apart.
std::int64_t by_chance(Values values) {
  constexpr std::size_t kEnough = 5;
  for (std::size_t n = 0; n < values.size(); ++n) values[n].first = static_cast<double>(n);
  const double each = values.size() < kEnough ? 0 : per_second(values);
  for (auto& [number, value] : values) value -= static_cast<std::int64_t>(each * number);
  std::sort(values.begin(), values.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto count = values.size();
  const double deviation = static_cast<double>(values[count - 1 - count / 4].second - values[count / 4].second) / 1.349;
  return static_cast<std::int64_t>(3 * 1.253 * deviation * std::sqrt(2.0 / static_cast<double>(count)));
}

}  // namespace

nlohmann::json judge(const Values& values, std::int64_t tolerance, double warm_up) {
  Values settled;
  for (const auto& one : values)
    if (one.first >= std::max(values.back().first / 5, warm_up)) settled.push_back(one);
  if (settled.empty()) return {{"flat", nullptr}, {"why", "nothing was sampled after the warm-up"}};
  nlohmann::json found{{"first", settled.front().second},
                       {"last", settled.back().second},
                       {"per_hour", std::round(3600 * per_second(settled))},
                       {"tolerance", tolerance},
                       {"samples", settled.size()}};
  if (settled.size() < 6) {
    found["flat"] = nullptr;
    found["why"] = "too few rounds to judge";
    return found;
  }
  const auto third = static_cast<std::ptrdiff_t>(settled.size() / 3);
  const Values early{settled.begin(), settled.begin() + third};
  const std::int64_t before = median(early);
  const std::int64_t after = median({settled.end() - third, settled.end()});
  const std::int64_t chance = by_chance(early);
  found["grown"] = after - before;
  found["by_chance"] = chance;
  found["flat"] = after - before <= tolerance + chance;
  return found;
}

Watch::Watch(const Rank& rank, std::vector<const Lane*> lanes)
    : rank_(rank), lanes_(std::move(lanes)), thread_([this] { loop(); }) {}

Watch::~Watch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  over_.notify_all();
  thread_.join();
}

double Watch::seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

Sample Watch::look() const {
  Sample found;
  found.seconds = seconds();
  for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) ++found.descriptors;
  --found.descriptors;  // the one that reads the folder
  std::int64_t all = 0;
  std::int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  found.host = resident * ::sysconf(_SC_PAGESIZE);
  if (rank_.place.device >= 0) {
    std::size_t free = 0;
    std::size_t total = 0;
    SOAK_CUDA(cuCtxSetCurrent, rank_.place.context);
    SOAK_CUDA(cuMemGetInfo_v2, &free, &total);
    found.device = static_cast<std::int64_t>(total - free);
  }
  return found;
}

void Watch::quiet() {
  ::malloc_trim(0);  // so that what the allocator keeps is not taken for a leak
  // A pool gives back what was freed when its stream has come to that.
  if (rank_.place.device >= 0) SOAK_CUDA(cuStreamSynchronize, nullptr);
  const Sample found = look();
  const std::lock_guard lock(mutex_);
  quiet_.push_back(found);
}

void Watch::loop() {
  std::unique_lock lock(mutex_);
  while (!over_.wait_for(lock, std::chrono::seconds{1}, [&] { return stop_; })) {
    lock.unlock();
    double longest = 0;
    for (const Lane* lane : lanes_)
      if (const auto found = lane->progress().look(); !found.text.empty()) longest = std::max(longest, found.seconds);
    if (longest > rank_.options.stall) bark(longest);
    // While the driver is held up it does not answer; the barking comes first.
    std::optional<Sample> found;
    try {
      found = look();
    } catch (const std::exception&) {
      // A device that is lost is told by the lanes that use it.
    }
    lock.lock();
    if (found) each_second_.push_back(*found);
  }
}

void Watch::bark(double seconds) const {
  std::fprintf(stderr, "STALLED on rank %d: a step has been going on for %.0f s (seed %llu). Open on this rank:\n",
               rank_.rank, seconds, static_cast<unsigned long long>(rank_.options.seed));
  for (const Lane* lane : lanes_)
    if (const auto found = lane->progress().look(); !found.text.empty())
      std::fprintf(stderr, "  rank %d, since %.1f s: %s\n", rank_.rank, found.seconds, found.text.c_str());
  print_stacks();
  std::this_thread::sleep_for(std::chrono::seconds{3});  // the other ranks have as much to say, and end with this one
  std::fflush(nullptr);
  ::_exit(3);
}

nlohmann::json Watch::report() const {
  const std::lock_guard lock(mutex_);
  nlohmann::json found;
  found["descriptors"] = judge(of(quiet_, &Sample::descriptors), kDescriptors, rank_.options.warm_up);
  found["host_bytes"] = judge(of(quiet_, &Sample::host), kHost, rank_.options.warm_up);
  if (rank_.place.device >= 0) found["device_bytes"] = judge(of(quiet_, &Sample::device), kDevice, rank_.options.warm_up);
  found["quiet"] = drawn(quiet_);
  found["each_second"] = drawn(each_second_);
  found["columns"] = {"seconds", "device_bytes", "descriptors", "host_bytes"};
  return found;
}

}  // namespace soak
