// The slots of a lane in turn: which one a rank writes next, when nobody reads it any more, and what the others have said.
//
// Who calls this : collective/shared_lane. Models: models/lane.pml; of one slot's turns models/lane_turns.pml, and how they are counted models/lane_count.pml.
// Threads        : take_turn() and begin() by whoever makes the communicator's calls, one at a time; the rest by any.
// Ownership      : looks at the lanes, one of each rank.
// Errors         : none.
//
// A rank says of a call at its end that it needs nothing of it any more; while an earlier one is still under way, of that one's predecessors
// alone. So the oldest call that is under way anywhere always finds its slots free, and goes on.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "path/shm/lane.hpp"

namespace ist {

class LaneTurns {
 public:
  static constexpr int kEverybody = -1;
  // Where this rank says something: which slot, how many turns that has had before, and whose the last one is.
  struct Turn {
    std::size_t slot = 0;
    std::uint64_t stamp = 0;
    std::uint64_t call = 0;
    std::uint64_t before = 0;
    std::uint64_t call_before = 0;
    int readers_before = kEverybody;  // guard READERS_BEFORE: those of what stands there
  };

  // By rank of the communicator, which has that number, never used before on these lanes; fewer than 2^30. `slots`, a power of two: tests have fewer,
  // and so find them taken.
  LaneTurns(std::vector<Lane*> lanes, int rank, std::uint32_t number, std::size_t slots = kLaneSlots)
      : lanes_(std::move(lanes)),
        rank_(rank),
        last_slot_(slots - 1),
        mark_(std::uint64_t{number} + 1),
        heard_(lanes_.size()) {
    assert(std::has_single_bit(slots) && slots <= kLaneSlots);
    for (const Lane* each : lanes_) before_.push_back(each->done.load(std::memory_order_acquire) >> kNumberBits);
  }
  LaneTurns(const LaneTurns&) = delete;
  LaneTurns& operator=(const LaneTurns&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(lanes_.size()); }

  // Before anything of a call, also of one that says nothing here: those before that are over without a word of this rank's, since they
  // went another way, need nothing any more either (guard COME_TO).
  void come_to(std::uint64_t call) {
    if (under_way_.load(std::memory_order_acquire) != 0) {
      const std::lock_guard lock(mutex_);
      if (!open_.empty()) {
        come_ = call;  // said when they are over
        return;
      }
    }
    come_ = call;
    if (ended_ + 1 != call) mine().done.store(marked(call), std::memory_order_release);
  }
  // A call that goes on when this returns, and its end.
  void begin(std::uint64_t call) {
    const std::lock_guard lock(mutex_);
    open_.push_back(call);
    oldest_.store(open_.front(), std::memory_order_release);
    under_way_.store(static_cast<int>(open_.size()), std::memory_order_release);
  }
  void end_later(std::uint64_t call) {
    const std::lock_guard lock(mutex_);
    open_.erase(std::find(open_.begin(), open_.end(), call));
    tell_done(call);
  }
  // The end of one that did not.
  void end(std::uint64_t call) {
    if (under_way_.load(std::memory_order_acquire) != 0) return end_among_others(call);
    ended_ = call;
    mine().done.store(marked(call + 1), std::memory_order_release);  // guard DONE_LAST: everything was read
    const std::size_t next = slot_of(call + 1, 0);
    fetch_for_writing(mine().slots[next], own_[next].said.load(std::memory_order_relaxed));
  }

  // `readers`: a rank or kEverybody, this one among them.
  Turn take_turn(std::uint64_t call, int round, int readers) {
    Own& own = own_[slot_of(call, round)];
    const Turn turn{slot_of(call, round), stamp(call, round), call, own.planned, own.call, own.readers};
    ++own.planned;
    own.call = call;
    own.readers = readers;
    return turn;
  }
  // Guard FREE_FIRST. Has everybody who reads what stands there said that it is not needed any more, or is gone (bool gone(int rank))?
  template <class Gone>
  bool is_free(const Turn& turn, const Gone& gone) {
    if (turn.before == 0) return true;
    // Guard COUNTED. Not in their order: one may be skipped while an older one waits. If such a one is counted here in an older one's place,
    // `skipped` is seen too, and this rank, whose older call is under way, is among everybody (guards SKIPPED, STICKY, OWN). Acquire: what
    // those counted wrote there comes before what is written next.
    const Own& own = own_[turn.slot];
    if (own.over.load(std::memory_order_acquire) < turn.before) return false;
    const auto needs = [&](int reader) { return !needs_no_more(reader, turn.call_before, turn.call) && !gone(reader); };
    if (turn.readers_before != kEverybody && !own.skipped.load(std::memory_order_relaxed))
      return !needs(turn.readers_before);
    for (int reader = 0; reader < size(); ++reader)
      if (needs(reader)) return false;
    return true;
  }
  // gave_up: as in a slot. Then there are no bytes. `handing`: one for each of those that may write at the same time, or null.
  void write(const Turn& turn, const std::byte* bytes, const LaneBytes& size, std::uint32_t gave_up, HandingCopy* handing) {
    ist::say(mine().slots[turn.slot], {turn.stamp, needed_from(turn.call), size, gave_up}, bytes, handing);
    own_[turn.slot].said.store(size.said, std::memory_order_relaxed);
    count_over(own_[turn.slot]);  // guard COUNT_LAST
  }
  // Nothing, now and for good. What was there before stays, and whoever reads that may not be among this one's readers: from now on the slot
  // waits for everybody.
  void skip(const Turn& turn) {
    own_[turn.slot].skipped.store(true, std::memory_order_relaxed);  // guard FLAG_FIRST: whoever finds it counted finds this
    count_over(own_[turn.slot]);
  }
  // Null: not yet. What it says stays until the call's end.
  const LaneSlot* hear(int from, std::uint64_t call, int round) {
    const LaneSlot& slot = lanes_[static_cast<std::size_t>(from)]->slots[slot_of(call, round)];
    if (!is_said(slot, stamp(call, round))) return nullptr;
    raise(heard_[static_cast<std::size_t>(from)], slot.done);
    return &slot;
  }
  // Has that rank come past a call in which it said nothing here?
  bool is_past(int rank, std::uint64_t call) { return rank != rank_ && needs_no_more(rank, call, call); }
  // Nobody reads anything here any more, and no call is under way.
  template <class Gone>
  bool idle(const Gone& gone) {
    if (under_way_.load(std::memory_order_acquire) != 0) return false;
    for (std::size_t slot = 0; slot < kLaneSlots; ++slot) {
      const Own& own = own_[slot];
      if (!is_free({slot, 0, come_, own.planned, own.call, own.readers}, gone)) return false;
    }
    return true;
  }

 protected:
  static constexpr int kNumberBits = 34;
  static constexpr std::uint64_t kNumbers = (std::uint64_t{1} << kNumberBits) - 1;
  // They wrap. Of a stamp that matters not: no slot stays as it is for exactly so many calls. What a rank says of its progress is near to
  // what any other one does (extended()).
  std::uint64_t marked(std::uint64_t number) const { return mark_ << kNumberBits | (number & kNumbers); }
  const Lane& lane(int rank) const { return *lanes_[static_cast<std::size_t>(rank)]; }
  Lane& mine() { return *lanes_[static_cast<std::size_t>(rank_)]; }

 private:
  struct Own {
    std::uint64_t planned = 0;  // turns
    std::uint64_t call = 0;     // of the last one
    int readers = kEverybody;
    std::atomic<std::uint64_t> over{0};  // turns
    std::atomic<bool> skipped{false};
    std::atomic<std::uint32_t> said{0};  // bytes, the last time: it says as many again, as a rule
  };
  // Guards ADDED and ALONE (models/lane_count.pml): turns of calls under way end beside this one. Where there are none, whoever makes the calls is alone; a
  // locked instruction would wait until the slot's line has come from those that have read it. (A broadcast of 1 KiB with a line in 0.26 us, the mean of
  // root and reader, 0.36 to 0.39 us, and 0.27 without; AMD EPYC, Zen 4, 2 processors, 2026-11-28.)
  void count_over(Own& own) {
    if (under_way_.load(std::memory_order_acquire) != 0)
      own.over.fetch_add(1, std::memory_order_release);
    else
      own.over.store(own.over.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  std::size_t slot_of(std::uint64_t call, int round) const {
    return static_cast<std::size_t>(call + 2 * static_cast<std::uint64_t>(round)) & last_slot_;
  }
  std::uint64_t stamp(std::uint64_t call, int round) const { return marked(2 * call + static_cast<std::uint64_t>(round)); }
  // `near`: a call that this rank makes now.
  bool needs_no_more(int reader, std::uint64_t call, std::uint64_t near) {
    std::atomic<std::uint64_t>& heard = heard_[static_cast<std::size_t>(reader)];
    if (heard.load(std::memory_order_acquire) > call) return true;
    const std::uint64_t word = lane(reader).done.load(std::memory_order_acquire);
    // What it said of another communicator: of one before this one, or it has let go of this one since.
    if (word >> kNumberBits != mark_) return word >> kNumberBits != before_[static_cast<std::size_t>(reader)];
    const std::uint64_t number = extended(word, near);
    raise(heard, number);
    return number > call;
  }
  // The whole number that ends in these bits.
  static std::uint64_t extended(std::uint64_t word, std::uint64_t near) {
    const std::uint64_t ahead = (word - near) & kNumbers;
    return near + (ahead <= kNumbers / 2 ? ahead : ahead - kNumbers - 1);
  }
  static void raise(std::atomic<std::uint64_t>& heard, std::uint64_t number) {
    if (number > heard.load(std::memory_order_acquire)) heard.store(number, std::memory_order_release);
  }
  // Guard OLDEST.
  std::uint64_t needed_from(std::uint64_t call) const {
    return under_way_.load(std::memory_order_acquire) == 0 ? call : oldest_.load(std::memory_order_acquire);
  }
  // Guard ONE_AT_A_TIME.
  void end_among_others(std::uint64_t call) {
    const std::lock_guard lock(mutex_);
    tell_done(call);
  }
  void tell_done(std::uint64_t call) {
    if (ended_ + 1 <= call) ended_ = call;  // at first there is none
    const std::uint64_t over = std::max(come_, ended_ + 1);
    mine().done.store(marked(open_.empty() ? over : open_.front()), std::memory_order_release);
    if (!open_.empty()) oldest_.store(open_.front(), std::memory_order_release);
    // Guard COUNT_FIRST: behind all that the call has counted.
    under_way_.store(static_cast<int>(open_.size()), std::memory_order_release);
  }

  std::vector<Lane*> lanes_;
  int rank_;
  std::size_t last_slot_;
  std::uint64_t mark_;                             // never 0
  std::vector<std::uint64_t> before_;              // by rank: of the communicator that had its lane before
  std::vector<std::atomic<std::uint64_t>> heard_;  // by rank: it needs nothing of calls before
  std::array<Own, kLaneSlots> own_;
  std::mutex mutex_;
  std::vector<std::uint64_t> open_;          // calls under way, ascending; under mutex_
  std::uint64_t ended_ = ~std::uint64_t{0};  // the last one; under mutex_, where calls are under way
  std::uint64_t come_ = 0;                   // the call that this rank makes now; likewise
  std::atomic<std::uint64_t> oldest_{0};
  std::atomic<int> under_way_{0};
};

}  // namespace ist
