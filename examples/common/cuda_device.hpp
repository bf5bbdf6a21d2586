// The device of each rank, and whether two ranks have one.
//
// Who calls this : the CUDA forms of jacobi, pixels, particles, himeno and lbm.
// Threads        : one; the device is that thread's current one from here on.
// Ownership      : values.
// Errors         : Mistake on all ranks alike, which names the first rank without a device; std::runtime_error with the driver's words.
#pragma once

#include <isthmus/isthmus.hpp>
#include <string>

namespace example::cuda {

struct Device {
  int number = 0;
  std::string name;
  bool shared = false;  // any two ranks' devices are one; the same on all ranks
};

// Collective. Ranks of a host take its devices in turn.
Device take_device(const isthmus::World& world);

}  // namespace example::cuda
