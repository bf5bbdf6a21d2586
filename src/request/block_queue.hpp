// Receives that wait for a block of this library's device memory while other messages pass through all there are.
//
// Who calls this : request/engine_bouncing and engine_receive.
// Threads        : under the world's lock.
// Ownership      : none: a place is a number, and belongs to a receive.
// Errors         : none.
//
// A block takes a message at several times the speed of the ring, so that waiting for one is worth it; but only while the messages in
// the blocks move. Their senders may be ranks that make no call for a long time, and nothing may wait for those that does not need them.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>

namespace ist {

class BlockQueue {
 public:
  using Clock = std::chrono::steady_clock;
  // A part of 32 MiB takes 85 us between two H200 with NVLink (2026-11-22), and some ms across a bus.
  static constexpr std::chrono::milliseconds kPatience{5};

  // A part has come out of a block, or a message has got one.
  void moved() { moved_ = Clock::now(); }
  bool moving() const { return Clock::now() - moved_ < kPatience; }
  // A message is through.
  void freed() {
    ++freed_;
    moved();
  }
  // May a receive with that place have a free block? 0: it does not wait yet, and then those that do come first.
  bool turn_of(std::uint64_t place) const { return place == 0 ? places_.empty() : places_.front() == place; }
  // The first one asks when a block was freed since it asked last, and when nothing moves any more.
  bool worth_asking(std::uint64_t place) const { return turn_of(place) && (asked_ != freed_ || !moving()); }
  // It has asked in vain. The place it waits at.
  std::uint64_t wait(std::uint64_t place) {
    if (place == 0) places_.push_back(place = ++last_);
    if (turn_of(place)) asked_ = freed_;
    return place;
  }
  // It has a block, or goes another way, or has ended. The next one asks at once.
  void leave(std::uint64_t place) {
    if (place == 0) return;
    if (turn_of(place)) asked_ = ~freed_;
    std::erase(places_, place);
  }

 private:
  std::deque<std::uint64_t> places_;
  std::uint64_t last_ = 0;
  std::uint64_t freed_ = 0;
  std::uint64_t asked_ = 0;
  Clock::time_point moved_;
};

}  // namespace ist
