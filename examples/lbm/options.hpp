// What the command line asks for.
#ifndef LBM_OPTIONS_HPP
#define LBM_OPTIONS_HPP

#include <array>
#include <cstdint>
#include <isthmus/halo.hpp>

namespace lbm {

constexpr const char* kUsage =
    "usage: isthmus run -n RANKS lbm [tgv [L] [STEPS] | cavity [N] [RE]] [--exchange messages|one-sided]\n"
    "                               [--grid AxBxC] [--steps STEPS]\n"
    "  tgv     Taylor-Green vortices in a periodic cube of L cells each way (64)\n"
    "  cavity  N by N cells under a moving lid (64) at Reynolds number RE (100; compared with tables at 100 and 400)\n"
    "  --grid  ranks along z, y and x, of which 0 are chosen (tgv 0x0x0, cavity 1x0x0)\n"
    "  --steps tgv's, as above; a cavity goes on until it is steady where they are not given\n";

struct Options {
  bool cavity = false;
  std::int64_t cells = 64;
  std::int64_t steps = 0;  // 0: as many as the case wants
  double reynolds = 100;
  isthmus::HaloWay way = isthmus::HaloWay::messages;
  std::array<int, 3> grid{0, 0, 0};
};

// std::invalid_argument where it cannot be read; it does not hold the usage.
Options read_options(int count, const char* const* words, int ranks);

}  // namespace lbm
#endif
