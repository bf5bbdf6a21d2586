// A lattice: velocities and weights. The first population rests; behind it come pairs, each velocity followed by its opposite. What else is
// here asks for these members alone, so that another lattice is another struct.
#ifndef LBM_LATTICE_HPP
#define LBM_LATTICE_HPP

#include <array>
#include <cstddef>

// What kernels run, too.
#if defined(__CUDACC__)
#define LBM_BOTH __host__ __device__
#else
#define LBM_BOTH
#endif

namespace lbm {

using Velocity = std::array<int, 3>;

struct D3Q19 {
  static constexpr std::size_t kCount = 19;
  static constexpr std::array<Velocity, kCount> kVelocities{{{0, 0, 0},
                                                             {1, 0, 0},
                                                             {-1, 0, 0},
                                                             {0, 1, 0},
                                                             {0, -1, 0},
                                                             {0, 0, 1},
                                                             {0, 0, -1},
                                                             {1, 1, 0},
                                                             {-1, -1, 0},
                                                             {1, -1, 0},
                                                             {-1, 1, 0},
                                                             {1, 0, 1},
                                                             {-1, 0, -1},
                                                             {1, 0, -1},
                                                             {-1, 0, 1},
                                                             {0, 1, 1},
                                                             {0, -1, -1},
                                                             {0, 1, -1},
                                                             {0, -1, 1}}};
  LBM_BOTH static constexpr double weight(std::size_t population) {
    constexpr std::array<double, 3> kByLength{1.0 / 3, 1.0 / 18, 1.0 / 36};
    std::size_t length = 0;
    for (const int step : kVelocities[population]) length += step != 0 ? 1 : 0;
    return kByLength[length];
  }
};

LBM_BOTH constexpr std::size_t opposite(std::size_t population) { return population == 0 ? 0 : ((population - 1) ^ 1U) + 1; }

// In how many dimensions at once a population moves: where its neighbours lie.
template <class Lattice>
constexpr int reach() {
  int most = 0;
  for (const Velocity& velocity : Lattice::kVelocities) {
    int moves = 0;
    for (const int step : velocity) moves += step != 0 ? 1 : 0;
    most = moves > most ? moves : most;
  }
  return most;
}

}  // namespace lbm
#endif
