// One copy or two for a long message between host buffers? What this machine is quicker with, by trying both.
//
// Who calls this : request/engine, where a long message is received.
// Threads        : under the world's lock.
// Ownership      : none.
// Errors         : none.
//
// Of each octave of sizes the first messages go either way in turn, timed from the moment both sides are ready; after that
// the way with the best time per byte carries them all. The shortest time counts, because a late sender makes any way slow.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>

#include "base/units.hpp"

namespace ist {

class CopyChoice {
 public:
  enum class Way : std::uint8_t { ring, single };
  // Of each way; more than a ring has slots, whose pages are touched for the first time by the first trials.
  static constexpr int kTrials = 10;

  // What the next message of that size should take; asked once per message.
  Way next(Bytes size) {
    Octave& octave = at(size);
    if (octave.tried < 2 * kTrials) return octave.tried++ % 2 == 0 ? Way::ring : Way::single;
    return octave.best[1] < octave.best[0] ? Way::single : Way::ring;
  }
  // Is there still something to learn about messages of that size?
  bool learns(Bytes size) const { return at(size).timed < 2 * kTrials; }
  void took(Way way, Bytes size, double seconds) {
    Octave& octave = at(size);
    ++octave.timed;
    double& best = octave.best[static_cast<std::size_t>(way)];
    best = std::min(best, seconds / static_cast<double>(size.value));
  }

 private:
  struct Octave {
    int tried = 0;
    int timed = 0;
    std::array<double, 2> best{std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  };
  static std::size_t index(Bytes size) { return static_cast<std::size_t>(std::bit_width(size.value)); }
  Octave& at(Bytes size) { return octaves_[index(size)]; }
  const Octave& at(Bytes size) const { return octaves_[index(size)]; }
  std::array<Octave, 65> octaves_;
};

}  // namespace ist
