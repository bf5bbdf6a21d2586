// Which processors each rank may use.
//
// Who calls this : run_launcher, before the ranks are started; run_rank applies a share.
// Threads        : one.
// Ownership      : values.
// Errors         : a machine that hwloc cannot describe is one without binding.
#pragma once

#include <vector>

#include "cli/run_options.hpp"

namespace ist::cli {

// One list of processor numbers per rank; none if ranks are not to be bound. Neighbouring ranks get neighbouring cores, and
// only processors that this process may use itself are given out.
std::vector<std::vector<int>> processor_shares(int ranks, Binding binding);

// Binds the calling process.
void bind_to(const std::vector<int>& processors);

}  // namespace ist::cli
