// The machine in numbers and words: processors by hwloc, devices by the kinds.
//
// Who calls this : info, and bench for its report; explain and model, of its devices.
// Threads        : one at a time.
// Ownership      : values.
// Errors         : what cannot be found out is 0 or "unknown"; a Failure only for a setting that cannot be read.
#pragma once

#include <string>

#include "collective/profile.hpp"
#include "memory/kinds.hpp"

namespace ist::cli {

struct Processors {
  std::string model = "unknown";
  int packages = 0;
  int numa_nodes = 0;
  int cores = 0;
  int threads = 0;
  int usable = 0;  // by this process
};
Processors find_processors();

// "AMD EPYC 9555, 32 processors, 2 x NVIDIA H200"
std::string describe_machine(const Processors& processors, const Kinds& kinds);

// The CUDA devices that those settings leave to this process, for load_profile(); starts their driver.
DevicesNamed devices_here(const Settings& settings);

// Up to which size messages between host buffers of two ranks of this machine go in slots, where those are not at an end.
Bytes slots_between_ranks(const Settings& settings, const MachineProfile& machine);

// "3 GiB", "141.2 GiB"
std::string in_words(Bytes size);

}  // namespace ist::cli
