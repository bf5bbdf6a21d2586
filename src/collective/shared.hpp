// Calls through memory that all ranks of a communicator see.
//
// Who calls this : the algorithms of each call, where that was chosen.
// Threads        : as they.
// Ownership      : none.
// Errors         : kept in the plan.
#pragma once

#include "collective/collectives.hpp"

namespace ist {

void shared_barrier(Plan& plan);
void shared_bcast(Plan& plan, const Piece& buffer, int root);
// root: SharedLane::kEverybody for an allreduce.
void shared_reduce(Plan& plan, const ReductionData& data, int root);
void shared_parts_allreduce(Plan& plan, const ReductionData& data);
// In these the parts are those of layout, alike for all ranks; in place: send is the same piece as recv, of all parts.
void shared_reduce_scatter(Plan& plan, const Piece& send, const Piece& recv, const Division& layout);
void shared_scan(Plan& plan, const ReductionData& data, bool exclusive);
// own: this rank's part, of recv where it is in place.
void shared_allgather(Plan& plan, const Piece& own, const Piece& recv, const Division& layout, bool in_place);
// layout: of all parts, alike for all ranks.
void shared_gather(Plan& plan, const RootedParts& parts, const Division& layout);
void shared_scatter(Plan& plan, const RootedParts& parts, const Division& layout);
void shared_alltoall(Plan& plan, const Piece& send, const Piece& recv, const Division& layout);

}  // namespace ist
