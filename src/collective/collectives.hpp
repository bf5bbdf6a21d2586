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

#include <algorithm>
#include <utility>
#include <vector>

#include "collective/plan.hpp"

namespace ist {

// One part per rank of a buffer: elements, and where they begin. Parts that are as equal as possible are computed, and need no
// memory; others are kept.
class Division {
 public:
  Division() = default;
  // `each` for every rank.
  static Division even(const Elements& each, int ranks) {
    Division made;
    made.ranks_ = ranks;
    made.each_ = each.each;
    made.least_ = each.count;
    return made;
  }
  // `all`, in parts as equal as possible.
  static Division split(const Elements& all, int ranks) {
    Division made;
    made.ranks_ = ranks;
    made.each_ = all.each;
    made.least_ = all.count / static_cast<std::uint64_t>(ranks);
    made.longer_ = all.count % static_cast<std::uint64_t>(ranks);
    return made;
  }
  // Any part of the elements may be anywhere: a list by rank of what and where.
  struct Part {
    std::uint64_t count = 0;
    Bytes place;  // from the beginning of the buffer
  };
  static Division varied(std::vector<Part> parts, Bytes each) {
    Division made;
    made.ranks_ = static_cast<int>(parts.size());
    made.each_ = each;
    made.parts_ = std::move(parts);
    return made;
  }
  int ranks() const { return ranks_; }
  // Are all parts the same, one after the other, by what every rank knows?
  bool alike() const { return parts_.empty() && longer_ == 0; }
  Elements elements(int rank) const {
    const auto r = static_cast<std::uint64_t>(rank);
    return {parts_.empty() ? least_ + (r < longer_ ? 1 : 0) : parts_[r].count, each_};
  }
  Bytes place(int rank) const {
    const auto r = static_cast<std::uint64_t>(rank);
    return parts_.empty() ? Bytes{(least_ * r + std::min(r, longer_)) * each_.value} : parts_[r].place;
  }
  Bytes largest() const;
  // Of all parts.
  Bytes total() const;
  // The bytes that all parts reach.
  Bytes span() const;
  Piece of(const Piece& whole, int rank) const { return whole.part(Offset{place(rank).value}, elements(rank).bytes()); }

 private:
  int ranks_ = 0;
  Bytes each_;
  std::uint64_t least_ = 0;   // elements of every part
  std::uint64_t longer_ = 0;  // so many of the first ones have one more
  std::vector<Part> parts_;   // empty: as equal as possible
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
void plan_reduce_scatter(Plan& plan, const Piece& send, const Piece& recv, const Division& layout, bool in_place);
// scan.cpp
void plan_scan(Plan& plan, const ReductionData& data, bool exclusive);
// gather.cpp
// Parts at one rank: each has its own, and the root all of them.
struct RootedParts {
  int root = 0;
  bool alike = false;  // all parts are the same, by what every rank knows
  Piece own;
  // The root's:
  Piece whole;
  Division layout;
  bool in_place = false;  // its own part is where it belongs
};
void plan_gather(Plan& plan, const RootedParts& parts);
void plan_scatter(Plan& plan, const RootedParts& parts);
// allgather.cpp
void plan_allgather(Plan& plan, const Piece& send, const Piece& recv, const Division& layout, bool in_place);
// alltoall.cpp
void plan_alltoall(Plan& plan, const Piece& send, const Division& sent, const Piece& recv, const Division& received,
                   bool in_place);

}  // namespace ist
