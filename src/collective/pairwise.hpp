// Reductions of long vectors: each rank combines one part of them.
//
// Who calls this : reduce.cpp.
// Threads        : one per plan.
// Ownership      : none.
// Errors         : kept in the plan's schedule.
#pragma once

#include "collective/collectives.hpp"

namespace ist {

inline constexpr int kEverybody = -1;

// Every rank gets its part of the vector from all others, chunk by chunk, combines it, and gives the result to `root` or to
// everybody: two messages' time, and every byte travels twice at most.
void plan_pairwise_reduce(Plan& plan, const ReductionData& data, int root);

// The same in a ring: each rank talks with its two neighbours alone. For commutative operations.
void plan_ring_allreduce(Plan& plan, const ReductionData& data);

}  // namespace ist
