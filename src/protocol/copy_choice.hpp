// One copy or two for a long message between host buffers? What this machine is quicker with, by trying both.
//
// Who calls this : request/engine, where a long message is received.
// Threads        : under the world's lock.
// Ownership      : none.
// Errors         : none.
//
// Of each octave of sizes the first messages go either way, in rows of four (later of three), and what their copies take on this side is measured; after that
// the way with the best time per byte carries them all. The shortest time counts: whatever else runs makes any way slow. Not in turn: what is sent again, out of the
// same bytes, a reader that copies once finds in its own cache the second time, unless others have come out of the ring meanwhile. Windows of 256 and 512 KiB
// 17.0 and 33.0 us a message when tried in turn, and 12.5 to 14.6 and 26 to 29 since (Intel Xeon of the fourth generation, 16 processors, 2026-11-30).
// The first trials are so many that the ring goes round all of its memory in them: in pages that nobody has touched it would look ten times as slow
// as it is (128 KiB 70 us in place of 9, two Xeon processors, 2026-11-27).
// What `isthmus model fit` found in the same way, or a run before this one (collective/learned_copies.hpp), is where a run begins, if there was
// any (believe()): then the first messages go the better way already, and what is tried again first is tried as often as that.
// Of two copies each side makes one, both at the same time, so the slower one counts. But a rank that sends as well, as in an exchange, makes one of
// either kind, and while it does the one no other rank gets on with the other: there both count.
// A few are tried again after 64 messages, 256, and so on, at last after every 16384: a moment in which one way did badly, as there
// are on virtual machines, is not believed for ever. What counts then is the best of these and of the trials before.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>

#include "base/units.hpp"
#include "path/shm/pair_slot.hpp"

namespace ist {

class CopyChoice {
 public:
  enum class Way : std::uint8_t { ring, single };
  // Of each way at least; more than a ring has slots.
  static constexpr int kTrials = 10;
  static constexpr int kTrialsAgain = 3;
  static constexpr int kFirstPause = 64;
  static constexpr int kLongestPause = 16384;

  CopyChoice() {
    for (std::size_t i = 1; i < octaves_.size(); ++i) octaves_[i].trials = first_trials(Bytes{std::uint64_t{1} << (i - 1)});
  }
  // How often each way is tried at first with messages of that octave: kMostLap is what a ring goes round at most.
  static constexpr int first_trials(Bytes size) {
    const std::uint64_t shortest = std::max<std::uint64_t>(std::bit_floor(size.value), 64 << 10);
    return std::max(kTrials, static_cast<int>(kMostLap / shortest) + 2);
  }
  // What the next message of that size should take. `sends`: has this rank announced long messages of its own, which may be copied at the same
  // time? Whether they are, it hears when they are over.
  Way next(Bytes size, bool sends = false) {
    Octave& octave = at(size);
    if (octave.tried < 2 * octave.trials) return in_rows(octave.tried++, octave.trials);
    return chosen(size, sends);
  }
  // What is known so far; the ring where nothing is.
  Way chosen(Bytes size, bool sends = false) const {
    const auto [ring, single] = best(size);
    return single < (sends ? both_copies(size) : ring) ? Way::single : Way::ring;
  }
  // Is there something to learn about messages of that size? Asked once per message.
  bool learns(Bytes size) {
    Octave& octave = at(size);
    if (octave.timed < 2 * octave.trials) return true;
    if (++octave.carried <= octave.pause) return false;
    octave.before = octave.best;
    octave.best = kNever;
    octave.tried = octave.timed = octave.carried = 0;
    octave.trials = std::exchange(octave.believed, false) ? first_trials(size) : kTrialsAgain;
    octave.pause = std::min(4 * octave.pause, kLongestPause);
    return true;
  }
  // Have both ways been tried as often as they are at first? Also of what was believed.
  bool is_settled(Bytes size) const { return at(size).trials == kTrialsAgain || at(size).timed >= 2 * at(size).trials; }
  // As if messages of these sizes had been tried: seconds per byte of either way.
  void believe(Bytes from, Bytes below, double ring, double single) {
    for (std::size_t i = index(from); i < index(below); ++i) {
      Octave& octave = octaves_[i];
      octave.trials = kTrialsAgain;
      octave.tried = octave.timed = 2 * kTrialsAgain;
      octave.believed = true;
      octave.best = {ring, single, 2 * ring};
    }
  }
  // The best times of messages of about that size, the ring's first; infinite where there was none.
  std::array<double, 2> best(Bytes size) const {
    const Octave& octave = at(size);
    return {std::min(octave.best[0], octave.before[0]), std::min(octave.best[1], octave.before[1])};
  }
  // The same of the ring where one rank makes both of its copies.
  double both_copies(Bytes size) const { return std::min(at(size).best[kBoth], at(size).before[kBoth]); }
  // `both`: of the ring, what its copies on both sides took together; where that is not known, twice as long.
  void took(Way way, Bytes size, double seconds, double both = 0) {
    Octave& octave = at(size);
    ++octave.timed;
    const auto keep = [&](std::size_t where, double took) {
      octave.best[where] = std::min(octave.best[where], took / static_cast<double>(size.value));
    };
    keep(static_cast<std::size_t>(way), seconds);
    if (way == Way::ring) keep(kBoth, both > 0 ? both : 2 * seconds);
  }

 private:
  // So many of the one way, as many of the other, and so on; what is left of the trials last.
  static Way in_rows(int tried, int trials) {
    const int left = trials % kRow;
    const int behind = tried - 2 * (trials - left);
    const bool is_ring = behind < 0 ? tried % (2 * kRow) < kRow : behind < left;
    return is_ring ? Way::ring : Way::single;
  }
  static constexpr int kRow = 4;
  static constexpr std::size_t kBoth = 2;  // behind the two ways
  static constexpr double kUnknown = std::numeric_limits<double>::infinity();
  static constexpr std::array<double, 3> kNever{kUnknown, kUnknown, kUnknown};
  struct Octave {
    int trials = kTrials;  // of each way
    int tried = 0;
    int timed = 0;
    int carried = 0;  // since the last trials
    int pause = kFirstPause;
    bool believed = false;  // and nothing tried since
    std::array<double, 3> best = kNever;
    std::array<double, 3> before = kNever;  // at the trials before these
  };
  static std::size_t index(Bytes size) { return static_cast<std::size_t>(std::bit_width(size.value)); }
  Octave& at(Bytes size) { return octaves_[index(size)]; }
  const Octave& at(Bytes size) const { return octaves_[index(size)]; }
  std::array<Octave, 65> octaves_;
};

}  // namespace ist
