// Is the reader of a pair's slots to stay behind its writer? Found out by how long messages take.
//
// Who calls this : pair_slots.cpp, per long message that goes where others went lately.
// Threads        : its owner's.
// Ownership      : values.
// Errors         : none.
//
// A reader that keeps up with its writer takes each line from the writer's cache, and the writer has to ask for it back a round later: each is as slow as the
// other, for windows on end (protocol/running_ahead.hpp has the same of rings, where the writer holds back what it has filled; here all that is written is shown,
// since nobody knows whether more follows). It ends where for one round of the room the reader lets the writer go ahead. Of starts
// of a program the second 20 windows of 64 messages of 256 KiB were slow, by 1.4 times and more, in 16 of 237, and so in 5 of 251 (later ones 6, and none); of
// 128 KiB in 9 of 61, and 3 of 50 (AMD EPYC, Zen 5, a line in 0.06 us before and after, 2026-11-30).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ist {

class KeepingDistance {
 public:
  // The clock is looked at after every so manieth message, and so many looks are a verdict.
  static constexpr std::uint32_t kLookAfter = 4;
  static constexpr std::uint32_t kLooks = 4;
  static constexpr double kSlow =
      1.4;  // times as long as usual: a round begins, but not so many times in a row, or that is what is usual now
  static constexpr std::uint32_t kRounds = 2;
  static constexpr double kElsewhere = 8;     // times as long as usual: something else was done in between
  static constexpr std::uint32_t kOften = 8;  // in a row: what is usual is found out anew
  // The first verdict has a round behind it, since what is usual may be slow, and so have others behind so many times as many bytes as one has; each time twice as
  // many, until one helped.
  static constexpr std::uint64_t kFirstRest = 8;
  static constexpr std::uint64_t kLongestRest = 4096;

  // A round has so many bytes; 0: there never is one.
  explicit KeepingDistance(std::uint64_t round) : round_(round) {}

  // Before so many bytes are copied: is the writer to be ahead?
  bool keeps(std::size_t bytes) {
    if (left_ == 0) [[likely]]
      return false;
    left_ -= std::min<std::uint64_t>(left_, bytes);
    if (spared_ == 0) return true;
    --spared_;
    return false;
  }
  // For a while no more than so many messages were there, with the one that is to be copied: these are read as they are. Of one by itself nobody would gain.
  void shown_only(std::uint64_t messages) {
    if (messages <= 1) {
      left_ = 0;
      interrupted();
    } else {
      spared_ = messages - 1;
    }
  }
  // They were copied. clock: what time it is, in whatever unit.
  template <class Clock>
  void copied(std::size_t bytes, const Clock& clock) {
    if (left_ > 0) return interrupted();  // which has waits in it
    bytes_ += static_cast<double>(bytes);
    since_ += bytes;
    if (++done_ % kLookAfter == 0) look(clock());
  }
  // Something else was done since: the time until the next look does not count.
  void interrupted() {
    last_ = 0;
    bytes_ = 0;
    done_ = 0;
  }

 private:
  void look(std::uint64_t now) {
    const double pace = last_ == 0 ? 0 : static_cast<double>(now - last_) / bytes_;
    last_ = now;
    bytes_ = 0;
    if (pace == 0) return;
    if (usual_ != 0 && pace > kElsewhere * usual_) {
      if (++elsewhere_ == kOften) *this = KeepingDistance{round_};
      return;
    }
    elsewhere_ = 0;
    quickest_ = looks_ == 0 ? pace : std::min(quickest_, pace);
    if (++looks_ < kLooks) return;
    looks_ = 0;
    judge(quickest_);
  }
  void judge(double pace) {
    constexpr double kForgotten = 64;  // verdicts
    const bool slow = usual_ != 0 && pace > kSlow * usual_;
    if (slow && ++rounds_ <= kRounds) return begin_round();
    rounds_ = 0;
    if (usual_ > kSlow * pace) rest_ = kFirstRest;
    usual_ = slow || usual_ == 0 || pace < usual_ ? pace : usual_ + (pace - usual_) / kForgotten;
    if (since_ < rest_ * round_) return;
    rest_ = std::clamp(2 * rest_, kFirstRest, kLongestRest);
    begin_round();
  }
  void begin_round() {
    since_ = 0;
    spared_ = 0;
    left_ = round_;
  }

  std::uint64_t round_;
  std::uint64_t left_ = 0;    // bytes of the round
  std::uint64_t spared_ = 0;  // messages of it
  std::uint64_t last_ = 0;    // look
  double bytes_ = 0;          // since then
  double usual_ = 0;          // time per byte; 0: not known
  double quickest_ = 0;       // of the looks of the next verdict, of which some have in them what else a program does
  std::uint32_t done_ = 0, looks_ = 0, elsewhere_ = 0;
  std::uint32_t rounds_ = 0;  // in a row
  std::uint64_t since_ = 0;   // the last round, in bytes
  std::uint64_t rest_ = 0;
};

}  // namespace ist
