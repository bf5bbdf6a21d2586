// When the sender of a window that runs ahead holds its reader off: it shows slots in bursts for one round of the ring (running_ahead.hpp says why).
//
// Who calls this : protocol/ring_sender.cpp, per slot.
// Threads        : under the world's lock.
// Ownership      : values.
// Errors         : none.
#pragma once

#include <cstdint>

namespace ist {

template <class Way>
class HoldingOff {
 public:
  // A few slots in a row that were filled otherwise, such as those of a message by itself, leave the others as they were.
  static constexpr std::uint64_t kForgotten = 16;

  // A slot is filled so: ahead of the reader, or near.
  void filled(bool ahead, Way way) {
    if (ahead != ahead_ || way != way_) {
      wanted_ = ahead && (wanted_ || alike_ >= kForgotten);
      ahead_ = ahead;
      way_ = way;
      alike_ = 0;
    }
    ++alike_;
    if (!ahead) left_ = 0;
    if (left_ > 0) --left_;
  }
  // The last slots were slow.
  void want() { wanted_ = true; }
  // Is it to begin? begin() of a round of so many slots, shown in bursts of so many, says that it does; it stays wanted until then, and is not begun
  // where not two bursts are to be filled: the reader would be held off for most of what there is.
  bool is_wanted() const { return wanted_ && ahead_ && left_ == 0; }
  void begin(std::uint64_t round, std::uint64_t burst) {
    left_ = round;
    burst_ = burst;
    wanted_ = false;
  }
  void end() { left_ = 0; }
  bool is_going_on() const { return left_ > 0; }
  // Are so many full slots held back?
  bool holds(std::uint64_t full) const { return left_ > 0 && full < burst_; }

 private:
  bool ahead_ = false;  // how the last slot was filled
  Way way_{};
  std::uint64_t alike_ = 0;  // slots in a row that were filled so
  bool wanted_ = false;
  std::uint64_t left_ = 0;  // slots of the round
  std::uint64_t burst_ = 0;
};

}  // namespace ist
