// The algorithms: each writes down this rank's part of a call.
//
// Who calls this : face/, with checked arguments.
// Threads        : one per plan.
// Ownership      : none.
// Errors         : kept in the plan's schedule.
//
// Which algorithm is used, and the order of a reduction, follow from operation, type, count and number of ranks alone; where
// partial results live is each rank's own affair, and changes neither messages nor order.
#pragma once

#include <vector>

#include "collective/plan.hpp"

namespace ist {

// One part per rank of a buffer: elements, and where they begin.
struct Layout {
  std::vector<Elements> parts;
  std::vector<Bytes> places;  // from the beginning of the buffer
  bool alike = false;         // every rank knows that all parts are the same, one after the other
  // `each` for every rank.
  static Layout even(const Elements& each, int ranks);
  // `all`, in parts as equal as possible.
  static Layout split(const Elements& all, int ranks);
  Bytes largest() const;
  Piece of(const Piece& whole, int rank) const {
    const auto r = static_cast<std::size_t>(rank);
    return whole.part(Offset{places[r].value}, parts[r].bytes());
  }
};

// Input and result of a reduction, each of elements.bytes(); in place: the input is in `recv`, and send is the same piece.
struct ReductionData {
  Piece send;
  Piece recv;
  Elements elements;
  bool in_place = false;
};

// barrier.cpp
void plan_barrier(Plan& plan);
// bcast.cpp
void plan_bcast(Plan& plan, const Piece& buffer, const Elements& elements, int root);
// reduce.cpp
void plan_reduce(Plan& plan, const ReductionData& data, int root);
void plan_allreduce(Plan& plan, const ReductionData& data);
// `layout` has the parts of the result; recv begins with this rank's. In place: send is the same piece, of all parts.
void plan_reduce_scatter(Plan& plan, const Piece& send, const Piece& recv, const Layout& layout, bool in_place);
// scan.cpp
void plan_scan(Plan& plan, const ReductionData& data, bool exclusive);
// gather.cpp
// In place on the root: its own part is where it belongs.
void plan_gather(Plan& plan, const Piece& send, const Piece& recv, const Layout& layout, int root, bool in_place);
void plan_scatter(Plan& plan, const Piece& send, const Layout& layout, const Piece& recv, int root, bool in_place);
// allgather.cpp
void plan_allgather(Plan& plan, const Piece& send, const Piece& recv, const Layout& layout, bool in_place);
// alltoall.cpp
void plan_alltoall(Plan& plan, const Piece& send, const Layout& sent, const Piece& recv, const Layout& received,
                   bool in_place);

}  // namespace ist
