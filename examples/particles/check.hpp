// Whether those that have migrated are the ones that one rank has moved alone.
//
// Who calls this : particles.cpp.
// Threads        : one.
// Ownership      : values.
// Errors         : isthmus::Error.
#pragma once

#include "store.hpp"

namespace particles {

struct Faults {
  std::int64_t lost = 0, twice = 0, unknown = 0, elsewhere = 0;  // elsewhere: other bits than where one rank has it
  std::int64_t count() const { return lost + twice + unknown + elsewhere; }
};

// Collective: all ranks send theirs to rank 0, which has `alone` and the faults; to the others there are none.
Faults compare(const isthmus::Comm& comm, const std::vector<Particle>& mine, const std::vector<Particle>* alone);

// Collective. In whole numbers: as many particles as there were, and identities, 0 to count - 1, with their sum. std::runtime_error on all
// ranks alike where that is not so.
void must_be_all(const isthmus::Comm& comm, const std::vector<Particle>& mine, std::int64_t count);

}  // namespace particles
