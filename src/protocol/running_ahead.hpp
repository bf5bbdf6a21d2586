// May the sender of a window run ahead of its receiver as far as the ring has room? Found out by how long it takes to fill slots.
//
// Who calls this : protocol/pipelined.cpp, per window and timed slot.
// Threads        : under the world's lock.
// Ownership      : values.
// Errors         : none.
//
// What is written far ahead has left the writer's nearest cache when it is read, and the reader takes it from the one that they share. Where the reader
// keeps up instead, it takes each line from the writer, who has to ask for it back a lap later: 19 GB/s in place of 62 to 67, on two processors of an AMD
// EPYC (Zen 5, a line in 0.06 us), where either goes on once it has begun, and slots that are few and near have 55 to 58 (2026-11-29). The writer feels
// that: it fills slots four times as slowly, and leaves it for some windows.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace ist {

template <class Way, std::size_t kWays = 2>
class RunningAhead {
 public:
  // So many windows do not run ahead once one was slow, at first and at most; each time twice as many, until as many as kQuick verdicts in a row were good.
  static constexpr std::uint32_t kFirstRest = 1;
  static constexpr std::uint32_t kLongestRest = 64;
  static constexpr std::uint32_t kQuick = 64;
  // Slots of a verdict, that of a window which is slow comes before its end.
  static constexpr std::uint32_t kJudged = 16;
  // Every so manieth slot is timed: two looks at the clock take as long as a twentieth of one.
  static constexpr std::uint32_t kTimedOf = 4;
  static constexpr double kSlow = 1.5;  // times as long as slots that are near

  // A window begins: may it?
  bool begin() {
    if (rest_ == 0) return true;
    --rest_;
    return false;
  }
  // Is the slot that is filled now one that is to be timed?
  bool is_timed() { return ++slots_ % kTimedOf == 0; }
  void filled_near(Way way, double pace) {
    double& usual = usual_.at(static_cast<std::size_t>(way));
    usual = usual == 0 ? pace : usual + (std::min(pace, 4 * usual) - usual) / 16;
  }
  // False: no further, this window is slow.
  bool filled_ahead(Way way, double pace) {
    const double usual = usual_.at(static_cast<std::size_t>(way));
    if (usual == 0) return true;
    ratios_ += std::min(pace / usual, 8.0);
    if (++judged_ < kJudged) return true;
    const bool quick = ratios_ < kSlow * kJudged;
    judged_ = 0;
    ratios_ = 0;
    if (quick && ++quick_ >= kQuick) next_rest_ = kFirstRest;
    if (quick) return true;
    quick_ = 0;
    rest_ = next_rest_;
    next_rest_ = std::min(2 * next_rest_, kLongestRest);
    return false;
  }

 private:
  std::array<double, kWays> usual_{};  // of slots that are near; 0: not known
  double ratios_ = 0;                  // of those since the last verdict
  std::uint32_t judged_ = 0;
  std::uint32_t quick_ = 0;
  std::uint32_t rest_ = 0;
  std::uint32_t next_rest_ = kFirstRest;
  std::uint32_t slots_ = 0;
};

}  // namespace ist
