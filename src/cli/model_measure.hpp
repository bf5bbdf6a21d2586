// The numbers of a machine's profile, from times of messages between two ranks and of arithmetic.
//
// Who calls this : model, on both ranks.
// Threads        : one.
// Ownership      : none.
// Errors         : a Failure if the times make no sense, time after time; rank 0 tells.
#pragma once

#include "cli/bench_session.hpp"
#include "collective/profile.hpp"

namespace ist::cli {

struct Measured {
  Profile profile;
  double unrest = 1;  // how much longer than the quickest round the usual one took: 1 where nothing else runs
};
// Messages between host buffers and combining there; what has to do with devices is measured elsewhere (model_devices).
Measured measure_profile(Session& session, const Settings& settings, int rounds);

}  // namespace ist::cli
