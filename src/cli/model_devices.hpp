// The numbers of CUDA devices in a machine's profile, from times of messages between two ranks.
//
// Who calls this : model, on both ranks, once what was measured of the host is in rank 0's profile and its session is over.
// Threads        : one.
// Ownership      : makes a world for each pair of memories.
// Errors         : none; what cannot be measured stays as it is built in, and a sentence says so.
//
// Small messages between page-locked host memory and a device go through a slot or a cell: what they take beside those is the device's call
// and its completion. Long ones go in one copy, whose bytes are those of the bus; only where the one process can open the other's memory,
// for the ring's bytes are those of the host's copy beside it. Between two devices all go in one copy.
#pragma once

#include <string>
#include <vector>

#include "collective/profile.hpp"

namespace ist::cli {

// Adds what it finds to the profile, on rank 0. Gives what stays as it is built in, and why: a sentence each.
std::vector<std::string> measure_devices(Settings settings, int rounds, Profile& profile);

}  // namespace ist::cli
