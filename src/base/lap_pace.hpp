// Which of two ways to go round a ring is quicker, found out all the time by going the other one for a while.
//
// Who calls this : protocol/pipelined.hpp, of messages.
// Threads        : its owner's.
// Ownership      : values.
// Errors         : none.
//
// A way is itself only once it has gone round: lines that the other one has left are slow. And of a window the last messages are quick, whose sender
// has done, and the first ones are not. So a trial has two rounds, of which the second counts; its mean is compared with the mean of the way that is
// gone, and ways as good as equal do not change places. What is told may be told late, when others have begun.
// For copies that are quick or slow one by one, see base/pace.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace ist {

template <class WayOf>
class LapPace {
 public:
  using Way = WayOf;
  // So many messages at most go the one way until the other one is tried, or 32 times the trial, or 4 times the first pause; each time twice as many.
  static constexpr std::uint32_t kFirstPause = 16;
  static constexpr std::uint32_t kLongestPause = 512;
  static constexpr std::uint32_t kLeastTrial = 8;
  // Every so manieth is timed, since to look at the clock takes time, and fewer once many were: no number that divides windows, of which others would be left
  // out. Of a trial all are.
  static constexpr std::uint32_t kTimedOf = 4;
  static constexpr std::uint32_t kTimedOfMany = 13;
  static constexpr std::uint32_t kMany = 64;

  struct Next {
    Way way;
    bool timed;
    std::uint32_t trial;  // of which it is one; 0: of none
  };
  LapPace() = default;
  // So many messages go the first way before the other one is tried, and so many are a trial, if these are not too few. The first way is gone until the
  // other one is more than `lead` times as quick.
  LapPace(std::uint32_t first_pause, std::uint32_t trial, Way first = Way{}, double lead = 1)
      : length_(std::max(trial, kLeastTrial)),
        pause_(std::max(first_pause, kFirstPause)),
        longest_(std::max({kLongestPause, 32 * length_, 4 * pause_})),
        way_(first) {
    price_[static_cast<std::uint32_t>(other())] = lead;
  }
  Next next() {
    if (++since_ <= pause_) return {way_, since_ % (since_ < kMany ? kTimedOf : kTimedOfMany) == 0, 0};
    const Way tried = other();
    if (since_ == pause_ + 1) {
      if (++trial_ == 0) trial_ = 1;
      told_ = 0;
      sum_ = 0;
    }
    if (since_ == pause_ + length_) {
      since_ = 0;
      pause_ = std::min(2 * pause_, longest_);
    }
    return {tried, true, trial_};
  }
  // What was timed took so long per byte, in the same unit each time. Whatever else runs makes some messages slow: none counts for more than four usual
  // ones. Of a trial that is past, and of a way that is gone no more, nothing counts.
  void took(const Next& message, double spent) {
    const double pace = price_[static_cast<std::uint32_t>(message.way)] * spent;
    if (message.trial == 0) {
      if (message.way == way_) known_ = known_ == 0 ? pace : known_ + (std::min(pace, kMost * known_) - known_) / kShare;
      return;
    }
    if (message.trial != trial_ || message.way == way_) return;
    const std::uint32_t first_round = length_ / 2;
    if (++told_ > first_round) sum_ += known_ == 0 ? pace : std::min(pace, kMost * known_);
    if (told_ < length_) return;
    const double mean = sum_ / (length_ - first_round);
    if (mean >= kQuicker * known_) return;
    way_ = message.way;
    known_ = mean;
  }
  Way way() const { return way_; }

 private:
  static constexpr double kMost = 4;
  static constexpr double kShare = 16;      // of what is known, in which one message is one
  static constexpr double kQuicker = 0.95;  // than the way that is gone
  Way other() const { return static_cast<Way>(1 - static_cast<std::uint32_t>(way_)); }
  std::uint32_t length_ = kLeastTrial;
  std::uint32_t pause_ = kFirstPause;
  std::uint32_t longest_ = kLongestPause;
  std::uint32_t since_ = 0;  // the last trial, how many messages
  std::uint32_t trial_ = 0;  // which one it is, or was last
  std::uint32_t told_ = 0;   // of its messages
  double sum_ = 0;           // of those that count
  double known_ = 0;         // of the way that is gone; 0: not known
  Way way_{};
  std::array<double, 2> price_{1, 1};  // how much what a way spends counts
};

}  // namespace ist
