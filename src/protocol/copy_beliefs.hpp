// What a machine's profile says of one copy or two.
//
// Who calls this : request/engine, which begins with it; explain; `isthmus model fit` and face/message/slots_trial, which find it out.
// Threads        : values.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "path/shm/pair_slot.hpp"
#include "protocol/choose.hpp"
#include "protocol/copy_choice.hpp"

namespace ist {

// A size that is measured, for those from half of it to less than twice it; the last one for all above, too.
struct CopyBelief {
  Bytes size;
  double MachineProfile::*ring;
  double MachineProfile::*single;
};
inline constexpr std::array kCopyBeliefs{
    CopyBelief{kibibytes(128), &MachineProfile::two_copies_128k, &MachineProfile::one_copy_128k},
    CopyBelief{kibibytes(512), &MachineProfile::two_copies_512k, &MachineProfile::one_copy_512k},
    CopyBelief{mebibytes(2), &MachineProfile::two_copies_2m, &MachineProfile::one_copy_2m},
    CopyBelief{mebibytes(8), &MachineProfile::two_copies_8m, &MachineProfile::one_copy_8m},
};

inline bool is_known(const CopyBelief& belief, const MachineProfile& machine) {
  return machine.*belief.ring > 0 && machine.*belief.single > 0;
}

// Null: shorter than any.
inline const CopyBelief* belief_about(Bytes size) {
  const CopyBelief* found = nullptr;
  for (const CopyBelief& belief : kCopyBeliefs)
    if (size.value >= belief.size.value / 2) found = &belief;
  return found;
}

// Up to which size messages between host buffers of two processes that can read each other's memory go in slots, whose two copies are made one
// after the other: as far as `isthmus model fit` found them quicker than an announcement and one copy; where it was not run, to their end. What
// the eager limit lets go without its receive always goes so, and what is as short as kAlwaysInSlots.
inline Bytes slots_up_to(const MachineProfile& machine, const Settings& settings) {
  constexpr double kMost = 1e15;
  const double up_to = machine.slots_up_to;
  if (!(up_to > 0) || up_to > kMost || settings.single_copy == "never") return kNoLimit;
  return std::max({Bytes{static_cast<std::uint64_t>(up_to)}, settings.eager_limit, kAlwaysInSlots});
}

// How much of a slot's time an announcement and one copy take where they are called quicker: two runs alike differ by less.
inline constexpr double kSurelyQuicker = 0.97;

// Up to which size messages go in slots: sizes beyond `from`, which always do, half an octave after the other to the longest that can, as far as
// the first one for which announcing is quicker; no such one: as long as any slot takes. None: there is nothing to compare.
inline std::optional<std::size_t> last_in_slots(std::size_t from, std::size_t longest,
                                                const std::function<bool(std::size_t)>& announcing_is_quicker) {
  if (from >= longest) return std::nullopt;
  std::size_t before = from;
  for (std::size_t octave = from; before < longest; octave *= 2)
    for (const std::size_t size : {octave + octave / 2, 2 * octave}) {
      if (before >= longest) break;
      const std::size_t one = std::min(size, longest);
      if (announcing_is_quicker(one)) return before;
      before = one;
    }
  return kPairPayload;
}

inline CopyChoice copy_choice_of(const MachineProfile& machine) {
  CopyChoice choice;
  for (std::size_t i = 0; i < kCopyBeliefs.size(); ++i) {
    const CopyBelief& belief = kCopyBeliefs[i];
    const bool last = i + 1 == kCopyBeliefs.size();
    if (is_known(belief, machine))
      choice.believe(Bytes{belief.size.value / 2}, last ? Bytes{~std::uint64_t{0}} : Bytes{2 * belief.size.value},
                     machine.*belief.ring, machine.*belief.single);
  }
  return choice;
}

}  // namespace ist
