// What a process holds, once a second and whenever nothing is under way, and whether that grows; and a watchdog that says which
// messages are open when nothing moves any more.
//
// Who calls this : soak.cpp.
// Threads        : a Watch has one of its own; quiet() is for the main thread.
// Ownership      : none of the lanes.
// Errors         : where nothing moves, everything that is open is printed and the process ends, with status 3.
#pragma once

#include <nlohmann/json.hpp>

#include <condition_variable>
#include <thread>

#include "lane.hpp"

namespace soak {

struct Sample {
  double seconds = 0;            // since the start
  std::int64_t device = -1;      // bytes that are not free on this rank's device; -1: no device
  std::int64_t descriptors = 0;  // open ones of this process
  std::int64_t host = 0;         // bytes of this process in memory
};

class Watch {
 public:
  Watch(const Rank& rank, std::vector<const Lane*> lanes);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();
  // Between rounds, when nothing is open on any rank.
  void quiet();
  // What was found, with a verdict of each: {"device_bytes": {"first":, "last":, "per_hour":, "tolerance":, "flat":}, ...}.
  nlohmann::json report() const;
  double seconds() const;

 private:
  Sample look() const;
  void loop();
  void bark(double seconds) const;
  const Rank& rank_;
  const std::vector<const Lane*> lanes_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;
  std::condition_variable over_;
  bool stop_ = false;
  std::vector<Sample> each_second_;
  std::vector<Sample> quiet_;
  std::thread thread_;
};

// Of values at times: does the last third of them, but for the first fifth of the time and `warm_up` seconds, stay within `tolerance`
// of the first third, and what chance does to their medians?
nlohmann::json judge(const std::vector<std::pair<double, std::int64_t>>& values, std::int64_t tolerance, double warm_up);

}  // namespace soak
