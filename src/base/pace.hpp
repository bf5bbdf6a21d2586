// Which of a few ways is the quickest, found out all the time by timing some of what is done each way.
//
// Who calls this : memory/host/handing_copy.hpp, of copies of about one size. Of messages that go round a ring: base/lap_pace.hpp.
// Threads        : its owner's.
// Ownership      : values.
// Errors         : none.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace ist {

// The first way, until another one is quicker. Ways are numbers from 0 on.
template <class WayOf, std::uint32_t kWays = 2>
class Pace {
 public:
  using Way = WayOf;
  // So many copies go the best way until some try the others, so many each: at first, and at most; each time twice as many.
  static constexpr std::uint32_t kFirstPause = 16;
  static constexpr std::uint32_t kLongestPause = 512;
  static constexpr std::uint32_t kTrials = 2;
  static constexpr double kHopeless = 4;  // times as slow as the best way: once is enough
  // Of those of the best way every so manieth is timed, since to look at the clock twice takes as long as a tenth of 4 KiB; and all of the first
  // ones after a trial: where the way was changed, and the first copies were quick because the others had left their lines in no cache.
  static constexpr std::uint32_t kTimedOf = 8;
  static constexpr std::uint32_t kWatched = 16;

  Pace() = default;
  explicit Pace(Way first) : way_(first) {}
  struct Next {
    Way way;
    bool timed;
  };
  Next next() {
    if (++copies_ <= pause_) return {way_, copies_ <= kWatched || copies_ % kTimedOf == 0};
    std::uint32_t trial = copies_ - pause_ - 1;
    if (trial % kTrials != 0 && pace_[number(tried_in(trial))] > kHopeless * pace_[number(way_)]) {
      const std::uint32_t spared = kTrials - trial % kTrials;
      copies_ += spared;
      trial += spared;
      if (trial == kAllTrials) {
        end_trials();
        return next();
      }
    }
    const Way tried = tried_in(trial);
    if (trial % kTrials == 0) pace_[number(tried)] = 0;
    if (trial + 1 == kAllTrials) end_trials();
    return {tried, true};
  }
  // What was timed took so long per byte, in the same unit each time. Of trials the quickest counts; of the others a quick one is believed at
  // once, a slow one by a quarter and as if it had taken four times as long as usual at most: whatever else runs makes some of them slow.
  void took(Way way, double pace) {
    double& known = pace_[number(way)];
    if (known == 0 || pace < known)
      known = pace;
    else if (way == way_)
      known = (3 * known + std::min(pace, 4 * known)) / 4;
    std::uint32_t best = number(way_);
    for (std::uint32_t other = 0; other < kWays; ++other)
      if (pace_[other] != 0 && pace_[other] < pace_[best]) best = other;
    if (best == number(way_)) return;
    way_ = static_cast<Way>(best);
    copies_ = 0;
  }
  Way way() const { return way_; }

 private:
  static constexpr std::uint32_t kAllTrials = (kWays - 1) * kTrials;
  Way tried_in(std::uint32_t trial) const { return static_cast<Way>((number(way_) + 1 + trial / kTrials) % kWays); }
  void end_trials() {
    copies_ = 0;
    pause_ = std::min(2 * pause_, kLongestPause);
  }
  static constexpr std::uint32_t number(Way way) { return static_cast<std::uint32_t>(way); }
  std::array<double, kWays> pace_{};  // 0: not known
  std::uint32_t copies_ = 0;          // since the last trial
  std::uint32_t pause_ = kFirstPause;
  Way way_{};
};

}  // namespace ist
