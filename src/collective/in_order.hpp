// The inputs of several ranks, sent whole and combined in the order of ranks, as in memory that all of them see (shared.cpp).
//
// Who calls this : reduce.cpp and scan.cpp, for short vectors: those of all ranks are in memory at once.
// Threads        : as Plan.
// Ownership      : scratch is the plan's.
// Errors         : kept in the plan.
#pragma once

#include "collective/collectives.hpp"

namespace ist {

// A partial result: where it is, and the step after which it is there.
struct Partial {
  Piece piece;
  Plan::Step done = Plan::kNone;
};

// This rank's own input, in memory that may be written.
Partial own_input(Plan& plan, const ReductionData& data, bool beside);
// As it is sent: out of the result's way; and, to several ranks, out of a device once, not once for every one of them.
Partial input_to_send(Plan& plan, const ReductionData& data, bool to_several);

// What the ranks `first` to `last` send, `mine` among it if this rank is, into data.recv. What is taken becomes the left operand of what is
// there: so they are combined from left to right, or where the operation does not commute from right to left.
void combine_in_order(Plan& plan, const ReductionData& data, const Partial& mine, int first, int last);

}  // namespace ist
