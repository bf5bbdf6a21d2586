// A moment until which something is waited for.
//
// Who calls this : everything in boot that waits.
// Threads        : values.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

namespace ist {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  // Far values (a day and more) are cut, so that no sum overflows.
  static Deadline after(double seconds) {
    return Deadline{Clock::now() +
                    std::chrono::milliseconds(static_cast<long long>(std::clamp(seconds, 0.0, 1e7) * 1000.0))};
  }
  bool over() const { return Clock::now() >= moment_; }
  Deadline later_by(double seconds) const {
    return Deadline{moment_ + std::chrono::milliseconds(static_cast<long long>(seconds * 1000.0))};
  }
  Deadline earlier_of(Deadline other) const { return Deadline{std::min(moment_, other.moment_)}; }
  // For poll(): rounded up, so that a wait never ends a little early and spins.
  int milliseconds_left() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(moment_ - Clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left, 0, 3'600'000));
  }

 private:
  explicit Deadline(Clock::time_point moment) : moment_(moment) {}
  Clock::time_point moment_;
};

// "2.5 s"
inline std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds);
  return text;
}

}  // namespace ist
