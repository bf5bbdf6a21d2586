// The part of one rank in a collective call, as its algorithm writes it down: ranks of the communicator, buffers, scratch.
//
// Who calls this : the algorithms beside it; face/ makes one per call and starts what it holds.
// Threads        : one.
// Ownership      : owns the schedule until start().
// Errors         : kept in the schedule; the algorithm goes on, with pieces that nothing will be written to.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "collective/communicator.hpp"
#include "request/schedule.hpp"

namespace ist {

// Elements of one type.
struct Elements {
  std::uint64_t count = 0;
  Bytes each;
  Bytes bytes() const { return Bytes{count * each.value}; }
};

class Plan {
 public:
  using Step = Schedule::StepId;
  static constexpr Step kNone = Schedule::kNone;

  Plan(const Communicator& comm, const std::string& call);
  int rank() const { return rank_; }
  int size() const { return size_; }
  Schedule& schedule() { return *schedule_; }
  Result<OperationId> start();

  // The call begins after what the piece's queue holds now.
  void use(const Piece& piece);
  Step send(const Piece& from, int to, int number, std::initializer_list<Step> needs) {
    return schedule_->send(from, comm_.to_world(to), number, needs);
  }
  Step receive(const Piece& to, int from, int number, std::initializer_list<Step> needs) {
    return schedule_->receive(to, comm_.to_world(from), number, needs);
  }
  // Nothing to do, kNone, where both are the same place: then what it needs must be ordered by the caller.
  Step copy(const Piece& to, const Piece& from, std::initializer_list<Step> needs) {
    return schedule_->copy(to, from, needs);
  }
  // to = from (op) to
  Step combine(const Piece& to, const Piece& from, std::initializer_list<Step> needs) {
    return schedule_->combine(to, from, needs);
  }
  // Does nothing: others may need it, and it whatever need() says.
  Step join() { return schedule_->copy({}, {}, {}); }
  void need(Step step, Step needed) { schedule_->need(step, needed); }

  // Can partial results be combined where this piece lives? On the host always; on a device above a size from which its
  // kernels are worth their start, if it knows the operation.
  bool combines_on(const Piece& piece, Bytes bytes) const;
  Piece host_scratch(Bytes bytes);
  // Where partial results that belong to `piece` are combined: beside it or on the host.
  Piece scratch_for(const Piece& piece, bool beside, Bytes bytes);
  // How many bytes of a long vector are combined and passed on at once: scratch is bounded by it, and one chunk's arithmetic
  // overlaps with the next one's message. The same on every rank, whatever its buffers are.
  static constexpr Bytes kChunk = kibibytes(512);

 private:
  const Communicator& comm_;
  int rank_;
  int size_;
  std::unique_ptr<Schedule> schedule_;
};

// Are these the same bytes?
inline bool same_place(const Piece& one, const Piece& other) {
  return one.kind == other.kind && one.object == other.object && one.offset == other.offset;
}

// A vector in parts, whole elements each: one per rank (as even as possible), or chunks of a bounded size.
class Parts {
 public:
  static Parts even(const Elements& elements, int parts);
  static Parts chunks(const Elements& elements, Bytes most);
  int size() const { return static_cast<int>(starts_.size()) - 1; }
  Elements elements(int part) const {
    const auto p = static_cast<std::size_t>(part);
    return {starts_[p + 1] - starts_[p], each_};
  }
  // Of a piece that holds the whole vector.
  Piece of(const Piece& whole, int part) const {
    const auto p = static_cast<std::size_t>(part);
    return whole.part(Offset{starts_[p] * each_.value}, elements(part).bytes());
  }

 private:
  std::vector<std::uint64_t> starts_;  // in elements; one more than parts
  Bytes each_;
};

}  // namespace ist
