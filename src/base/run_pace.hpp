// Which of two ways of doing something again and again is quicker, by how long runs of it take from end to end: what the way does to others, who have to
// go on before this side can, is in that, where it is not in the time of the thing itself.
//
// Who calls this : memory/host/handing_copy.hpp, of messages that are copied out of slots. Of copies one by one: base/pace.hpp; of messages that go
//                  round a ring: base/lap_pace.hpp.
// Threads        : its owner's.
// Ownership      : values.
// Errors         : none.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace ist {

template <class WayOf>
class RunPace {
 public:
  using Way = WayOf;
  // The first way is gone until the other one is more than `lead` times as quick, and that for `patience` runs in a row: of a way that is slow for a while
  // by itself, and not because the other one is gone.
  explicit RunPace(Way first = Way{}, double lead = 1, std::uint32_t patience = 1)
      : first_(static_cast<std::uint32_t>(first)), patience_(patience), best_(first_), way_(first_) {
    price_[1 - first_] = lead;
  }
  // The clock is looked at after every so manieth, and so many looks are a run; behind a change of way the first ones do not count, whose lines the other
  // way has left.
  static constexpr std::uint32_t kLookAfter = 4;
  static constexpr std::uint32_t kRun = 8;
  static constexpr std::uint32_t kSettling = 2;
  // So many runs, or half the patience, go the one way until the other one is tried for one; each time twice as many, up to kLongest times as many.
  static constexpr std::uint32_t kFirstPause = 4;
  static constexpr std::uint32_t kLongest = 32;
  static constexpr double kQuicker = 0.97;  // than the way that is gone, to be gone in its place
  // Times as slow as the other one was: that is gone at once, unless there is patience; or as runs of the same way were: what is known is the last one.
  static constexpr double kTurned = 1.25;
  static constexpr double kHopeless = 1.5;      // times as slow, after two looks: a trial is over
  static constexpr double kSurelyWorse = 1.15;  // times as slow, after kEarly looks that count: the same
  static constexpr std::uint32_t kEarly = 3;
  static constexpr double kElsewhere = 8;     // times as long as usual: something else was done in between
  static constexpr std::uint32_t kOften = 8;  // in a row: then that is what is usual now

  Way way() const { return static_cast<Way>(way_); }
  // Something else was done since: the time until the next look does not count, and a trial is over, or it might never end.
  void interrupted() {
    last_ = 0;
    if (!trying_) return;
    trying_ = false;
    since_ = 0;
    go(best_);
  }
  // That way, of so many bytes. clock: what time it is, in whatever unit.
  template <class Clock>
  void did(std::size_t bytes, const Clock& clock) {
    bytes_ += static_cast<double>(bytes);
    if (++done_ % kLookAfter == 0) look(clock());
  }

 private:
  void look(std::uint64_t now) {
    const auto took = price_[way_] * static_cast<double>(now - last_);
    const double bytes = bytes_;
    const bool first = last_ == 0;
    last_ = now;
    bytes_ = 0;
    const double usual = known_[best_];
    if (first) return begin_run();
    if (trying_ && took > kHopeless * usual * bytes && ++hopeless_ >= 2) return end_trial(took / bytes);
    if (usual != 0 && took > kElsewhere * usual * bytes) {
      begin_run();
      if (++elsewhere_ == kOften) forget();
      return;
    }
    elsewhere_ = 0;
    if (settling_ > 0) {
      --settling_;
      return;
    }
    run_took_ += took;
    run_bytes_ += bytes;
    ++looks_;
    const bool worse = trying_ && looks_ == kEarly && run_took_ > kSurelyWorse * usual * run_bytes_;
    if (looks_ == kRun || worse) end_run(run_took_ / run_bytes_);
  }
  // It is no longer as it was: both ways are found out anew.
  void forget() {
    known_ = {};
    trying_ = false;
    since_ = elsewhere_ = slow_ = good_ = 0;
    pause_ = rest_ = first_pause();
    go(best_);
  }
  void begin_run() {
    looks_ = 0;
    run_took_ = run_bytes_ = 0;
  }
  void go(std::uint32_t way) {
    if (way != way_) settling_ = kSettling;
    way_ = way;
    hopeless_ = 0;
    begin_run();
  }
  void end_run(double pace) {
    if (trying_) return end_trial(pace);
    double& known = known_[best_];
    const bool turned = pace > kTurned * known || known > kTurned * pace;
    known = turned ? pace : known + (pace - known) / 4;
    const double other = known_[1 - best_];
    slow_ = other != 0 && known > (patience() == 1 ? kTurned : 1) * other ? slow_ + 1 : 0;
    if (slow_ >= patience()) return choose(1 - best_);
    if (best_ == first_ && other != 0) good_ = slow_ == 0 ? good_ + 1 : 0;
    if (good_ >= patience_) rest_ = first_pause();
    begin_run();
    if (++since_ < pause_) return;
    trying_ = true;
    go(1 - best_);
  }
  void end_trial(double pace) {
    trying_ = false;
    known_[way_] = pace;
    if (patience() == 1 && pace < kQuicker * known_[best_]) return choose(way_);
    pause_ = std::min(2 * pause_, kLongest * first_pause());
    since_ = 0;
    go(best_);
  }
  void choose(std::uint32_t way) {
    best_ = way;
    pause_ = first_pause();
    since_ = slow_ = good_ = 0;
    if (patience_ > 1 && way != first_) {
      pause_ = rest_;
      rest_ = std::min(2 * rest_, kLongest * first_pause());
    }
    go(way);
  }
  std::uint32_t first_pause() const { return std::max(kFirstPause, patience_ / 2); }
  std::uint32_t patience() const { return best_ == first_ ? patience_ : 1; }

  std::uint32_t first_;
  std::uint32_t patience_;             // runs
  std::array<double, 2> price_{1, 1};  // how much the time of a way counts
  std::uint32_t best_;
  std::uint32_t way_;  // another one than the best only while it is tried
  bool trying_ = false;
  std::array<double, 2> known_{};  // time per byte; 0: not known
  std::uint32_t since_ = 0;        // the last trial, in runs
  std::uint32_t pause_ = first_pause();
  std::uint32_t rest_ = first_pause();  // what the other way has before the first one is tried; twice as many each time
  std::uint32_t slow_ = 0, good_ = 0;   // runs in a row
  std::uint32_t done_ = 0;
  double bytes_ = 0;  // since the last look
  std::uint64_t last_ = 0;
  std::uint32_t settling_ = 0, looks_ = 0, hopeless_ = 0, elsewhere_ = 0;
  double run_took_ = 0, run_bytes_ = 0;
};

}  // namespace ist
