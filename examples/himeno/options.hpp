// What the Himeno program was asked for.
//
// Who calls this : himeno.cpp fills it in; cuda_run.cpp reads it.
// Threads        : a value.
// Ownership      : values.
// Errors         : none.
#pragma once

#include <array>
#include <isthmus/halo.hpp>
#include <isthmus/isthmus.hpp>
#include <string>
#include <vector>

#include "part.hpp"

namespace himeno {

struct Options {
  std::vector<Size> sizes{kSizes[0]};
  int iterations = 64;
  double b = 0;
  std::string device = "host", exchange = "all", overlap = "both", check = "yes", json, spoil = "no";
  std::array<int, 3> grid{};
};

// All sizes by this rank's GPU. True: all that was computed is right.
bool run_cuda(const isthmus::World& world, const isthmus::HaloGrid& grid, const Options& options);

}  // namespace himeno
