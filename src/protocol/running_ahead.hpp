// May the sender of a window run ahead of its receiver? Found out by how long it takes to fill slots.
//
// Who calls this : protocol/ring_sender.cpp, per window and timed slot.
// Threads        : under the world's lock.
// Ownership      : values.
// Errors         : none.
//
// What is written far ahead has left the writer's nearest cache when it is read, and the reader takes it from the one that they share. Where the reader
// keeps up instead, it takes each line from the writer, who has to ask for it back a round later, fills slots four times as slowly, and so is kept up with
// the more: 70 GB/s and more or 19, for windows on end, where slots that are few and near have 55 to 58 (AMD EPYC, Zen 5, a line in 0.06 us). It begins so
// wherever slots were filled otherwise before: near, or the other way. So there the writer holds the reader off for one round of the ring, in which it shows
// slots in bursts, each when three eighths of a round are full (3 MiB, where a second cache has 1 MiB), or it is as far ahead as it may be. Of 16 runs that never left a window for being slow,
// and held nobody off, 9 were slow for 2 to 12 windows; of 8 that held the reader off after a slow verdict none was slow for longer than that one (2026-11-30).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/units.hpp"

namespace ist {

// So many pieces of that size it may be ahead at most, or one in each slot, which are 2 to 4 of the 8 MiB of a round: beyond a second cache ahead of its
// reader, and beyond one behind it, whose lines would have to be asked for back from there where the ring is nearly full. And what lies long in the ring
// leaves the shared cache, where others use that, too: the 20 windows behind the first 20 of a program took, of 256 KiB a message, 3.8 to 4.0 us, and 4.0 to 4.3 with all 64 pieces, those of 1 MiB 14.1 to 14.9 and 16.2
// to 16.8, later ones 3.7 and 3.7, 14.5 and 16.2 (AMD EPYC, Zen 5, medians of 6 to 14 starts in turn, 2026-11-30).
inline constexpr std::uint64_t kMostAhead = 16;
inline constexpr Bytes kAhead = mebibytes(2);  // of pieces that are shorter
inline std::uint64_t most_ahead(Bytes piece) {
  return std::max(kMostAhead, kAhead.value / std::max<std::uint64_t>(piece.value, 1));
}

template <class Way, std::size_t kWays = 2>
class RunningAhead {
 public:
  // So many windows do not run ahead once one was slow, and its reader held off in vain, at first and at most; each time twice as many, until kQuick verdicts in a row were good.
  static constexpr std::uint32_t kFirstRest = 1;
  static constexpr std::uint32_t kLongestRest = 64;
  static constexpr std::uint32_t kQuick = 64;
  // Timed slots of a verdict, and of what is usual; before which the first ones of all are left out, in pages that nobody has touched.
  static constexpr std::uint32_t kJudged = 16;
  static constexpr std::uint32_t kFresh = 16;
  // Every so manieth slot is timed: two looks at the clock take up to an eighth of the time of one (twice 40 to 80 ns on that EPYC). Once what is usual is known,
  // and kSure verdicts in a row were good, fewer are; a window of 64 messages of 256 KiB has 128 slots, and a verdict takes kJudged that were timed.
  static constexpr std::uint32_t kTimedOf = 4;
  static constexpr std::uint32_t kTimedOfUsual = 7;
  static constexpr std::uint32_t kSure = 8;
  // Of so many windows one does not run ahead, so that what is usual stays known.
  static constexpr std::uint32_t kNearOf = 64;
  // Behind so many slow verdicts in a row the reader is held off; the next one ends it.
  static constexpr std::uint32_t kHolds = 2;
  static constexpr double kSlow = 1.5;  // times as long as slots that are near

  // A window of messages that go that way begins: may it?
  bool begin(Way way) {
    if (near_.at(static_cast<std::size_t>(way)).slots < kJudged || ++windows_ % kNearOf == 0) return false;
    if (rest_ == 0) return true;
    --rest_;
    return false;
  }
  // Is the slot that is filled now, of a message that goes that way, one that is to be timed? ahead: of a window that runs ahead.
  bool is_timed(Way way, bool ahead) {
    const bool usual = near_.at(static_cast<std::size_t>(way)).slots == kJudged && (!ahead || quick_ >= kSure);
    return ++slots_ % (usual ? kTimedOfUsual : kTimedOf) == 0;
  }
  enum class Verdict : std::uint8_t { none, hold, leave };
  // What was timed took so long per byte.
  void filled_near(Way way, double pace) {
    if (fresh_ < kFresh) {
      ++fresh_;
      return;
    }
    Near& near = near_.at(static_cast<std::size_t>(way));
    near.usual = near.slots == 0 ? pace : near.usual + (std::min(pace, 4 * near.usual) - near.usual) / kJudged;
    near.slots = std::min(near.slots + 1, kJudged);
  }
  // hold: this is slow, so the reader is to be held off for a round, which is not told of. leave: that was done kHolds times in a row, and in vain.
  Verdict filled_ahead(Way way, double pace) {
    const Near& near = near_.at(static_cast<std::size_t>(way));
    if (near.slots < kJudged) return Verdict::none;
    ratios_ += std::min(pace / near.usual, 8.0);
    if (++judged_ < kJudged) return Verdict::none;
    const bool quick = ratios_ < kSlow * kJudged;
    judged_ = 0;
    ratios_ = 0;
    if (quick && ++quick_ >= kQuick) next_rest_ = kFirstRest;
    if (quick) {
      holds_ = 0;
      return Verdict::none;
    }
    quick_ = 0;
    if (++holds_ <= kHolds) return Verdict::hold;
    holds_ = 0;
    rest_ = next_rest_;
    next_rest_ = std::min(2 * next_rest_, kLongestRest);
    return Verdict::leave;
  }

 private:
  struct Near {
    double usual = 0;
    std::uint32_t slots = 0;  // that it is known from, up to kJudged
  };
  std::array<Near, kWays> near_{};
  std::uint32_t fresh_ = 0;
  double ratios_ = 0;  // of those since the last verdict
  std::uint32_t judged_ = 0;
  std::uint32_t quick_ = 0;
  std::uint32_t holds_ = 0;  // since the last verdict that was good
  std::uint32_t rest_ = 0;
  std::uint32_t next_rest_ = kFirstRest;
  std::uint32_t windows_ = 0;
  std::uint32_t slots_ = 0;
};

}  // namespace ist
