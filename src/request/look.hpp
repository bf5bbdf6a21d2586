// How far a look for what moves on goes, and when a call that only starts something takes one.
//
// Who calls this : request/.
// Threads        : under the engine's lock.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <time.h>

#include <chrono>

namespace ist {

// A brief one ends with the first operation that moved. A whole one of a rank that is starting a window of long messages would copy all of its peer's before the
// peer hears of the rest: they would copy in turn, and windows both ways at once take twice as long. Of rings it moves few slots.
enum class Reach { whole, brief };

// Due with every sixteenth message that was announced since one was due: the first bytes of a window move while the rest of it is announced. And with every eighth
// call where the last look is 20 us back, and with every call a tick of the coarse clock (1 to 10 ms) behind it. An exact clock with every call holds up the copies
// of a window: 32 KiB both ways at once took a tenth longer.
class LooksOfStarts {
 public:
  void announced() { ++announced_; }
  bool due() {
    if (announced_ >= kAnnounced) [[unlikely]] {
      announced_ = 0;
      return true;
    }
    timespec tick{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &tick);
    if (tick.tv_nsec == tick_ && ++calls_ % kOften != 0) return false;
    const auto now = std::chrono::steady_clock::now();
    if (now - looked_ < kUnlooked) return false;
    tick_ = tick.tv_nsec;
    looked_ = now;
    announced_ = 0;
    return true;
  }

 private:
  static constexpr unsigned kAnnounced = 16;
  static constexpr unsigned kOften = 8;
  static constexpr std::chrono::microseconds kUnlooked{20};
  unsigned announced_ = 0;
  unsigned calls_ = 0;
  long tick_ = 0;
  std::chrono::steady_clock::time_point looked_;
};

}  // namespace ist
