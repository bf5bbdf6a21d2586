// The numbers of a machine's profile, from times of messages between two ranks and of arithmetic.
//
// Who calls this : model, on both ranks.
// Threads        : one.
// Ownership      : none.
// Errors         : a Failure if the times make no sense, time after time; rank 0 tells.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "cli/bench_session.hpp"
#include "collective/profile.hpp"

namespace ist::cli {

struct Measured {
  Profile profile;
  double unrest = 1;  // how much longer than the quickest round the usual one took: 1 where nothing else runs
};
// Messages between host buffers and combining there; what has to do with devices is measured elsewhere (model_devices).
Measured measure_profile(Session& session, const Settings& settings, int rounds);

// Up to which size messages go in slots: sizes beyond `from`, which always do, half an octave after the other to the longest that can, as far as
// the first one for which announcing is quicker; no such one: as long as any slot takes. None: there is nothing to compare.
std::optional<std::size_t> last_in_slots(std::size_t from, std::size_t longest,
                                         const std::function<bool(std::size_t)>& announcing_is_quicker);

}  // namespace ist::cli
