// The part of one rank in a collective call, as its algorithm writes it down: ranks of the communicator, buffers, scratch.
//
// Who calls this : the algorithms beside it; face/ makes one per call and starts what it holds.
// Threads        : one.
// Ownership      : owns the schedule until start().
// Errors         : kept until the call runs; the algorithm goes on, with pieces that nothing will be written to.
//
// Two ways lead from what is written down to what is done: a schedule that the engine runs, and for small blocking calls on
// host memory a walk, which does each step at once. What ranks say in shared memory goes either way, too (shared_call.hpp).
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <optional>
#include <vector>

#include "collective/communicator.hpp"
#include "collective/shared_call.hpp"
#include "collective/walk.hpp"
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

  // `waits`: the call is a blocking one; `at_once`: it may then be walked.
  Plan(const Communicator& comm, const char* call, bool waits, bool at_once = true)
      : comm_(comm),
        call_(call),
        rank_(comm.rank()),
        size_(comm.size()),
        number_(comm.count_call()),
        first_tag_(first_tag(number_)),
        waits_(waits),
        may_walk_(waits && at_once) {
    if (comm.lane() != nullptr) comm.lane()->come_to(number_);
  }
  // Writes on into a schedule that runs already: an action's, under the engine's lock.
  Plan(const Communicator& comm, Schedule& into, const Combiner& combiner)
      : comm_(comm),
        call_(""),
        rank_(comm.rank()),
        size_(comm.size()),
        number_(0),
        first_tag_(0),
        waits_(false),
        may_walk_(false),
        combiner_(combiner),
        into_(&into) {}
  const Communicator& comm() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  bool waits() const { return waits_; }
  // What carries the call; noted as take() does.
  // `may_share`: not where parts may differ.
  Algorithm choose(ChosenCall call, Bytes bytes, bool may_share = true) const {
    return take(into_ == nullptr && !refused_ && may_share
                    ? comm_.algorithm(call, bytes, combiner_.commutative)
                    : ist::choose(call, {size_, bytes}, combiner_.commutative, comm_.by_messages()));
  }
  // To be said first, with what is the same on all ranks of programs that fit together: others that wait for this one in vain look
  // whether it makes another call.
  enum class Call : std::uint32_t {
    barrier,
    bcast,
    reduce,
    allreduce,
    allgather,
    alltoall,
    reduce_scatter,
    scan,
    gather,
    scatter,
    shared_gather,  // of equal parts, in shared memory
    shared_scatter
  };
  // `detail`: what else all give alike, such as a root.
  static SharedLane::Note note_of(Call call, Bytes bytes, int detail, Code gave_up = IST_OK) {
    return {SharedLane::what(static_cast<std::uint32_t>(call), detail, gave_up), bytes};
  }
  void tell(Call call, Bytes bytes, int detail = 0) {
    if (refused_) return;
    // A wrong count may have led this rank another way than the others, who then hear nothing of it where they wait.
    note_ = note_of(call, bytes, detail, schedule_ ? schedule_->failure().code() : Code{IST_OK});
    if (comm_.lane() != nullptr && into_ == nullptr) comm_.lane()->note(number_, note_);
  }
  // The ranks ask each other first, whatever they find then.
  void tell_asked() {
    note_.what |= SharedLane::kAsks;
    if (comm_.lane() != nullptr && into_ == nullptr) comm_.lane()->note(number_, note_);
  }
  // Of a call that waits, and of host memory alone so far: its rank refuses NCCL whatever the others say, so that it tells them at once.
  bool may_refuse() const { return may_walk_ && !schedule_ && !walk_; }
  // The ranks have asked each other, and this plan goes on by messages.
  void set_refused() { refused_ = true; }
  // The ranks tell each other what they make before they do: nobody needs to doubt it.
  void set_compared() { compared_ = true; }
  // Through shared memory, from here to end_shared(): at once where the call may be walked, else as an action of the schedule.
  SharedCall& share();
  // What is said and taken is host memory: of a device's what is copied there before, and from there after.
  Piece shared_input(const Piece& piece);
  Piece shared_output(const Piece& piece);
  void end_shared();
  void set_combiner(const Combiner& combiner) { combiner_ = combiner; }
  const Combiner& combiner() const { return combiner_; }
  // The first failure is this rank's result, whatever the steps do.
  void fail(const Status& why);
  // Each step may be done as it is written down, if `bytes`, all that a message has at most, are few: no step gets a need
  // after it was written, but joins. To be said before the first step; nothing, if the call is none of those that may.
  void walk(Bytes bytes);
  // The same of up to what goes in slots, where no step needs a send: it may take until its receive for such a message to go. All receives are put in whatever
  // the others do.
  // to_busy: who receives copies something else first, and a slot takes the message meanwhile, wherever it lies.
  void walk_longer(Bytes bytes, bool to_busy = false);
  // A block for bytes that do not lie in one piece stays until the call is over; what came into one that `unpacks`, one at most, is
  // unpacked then, if all went well.
  void keep(std::unique_ptr<LaidOut> laid) { laid_.push_back(std::move(laid)); }
  // A walk in which the ranks ask each other before the plan's own messages; the tags of those.
  Walk asking() const { return Walk{comm_, combiner_, number_, true}; }
  std::int32_t tag_of(int number) const { return Schedule::tag(first_tag_, number); }
  bool walks() const { return walk_.has_value() || shared_at_once_.has_value(); }
  // Of a plan that walks: does what is left, and returns at the end.
  Status end_walk();
  // Of any other.
  Result<OperationId> start();

  // Could it be worth while to have NCCL carry the call? By what all ranks know. bytes: of the vector, or of all parts.
  bool suits_nccl(ChosenCall call, Bytes bytes) const {
    if (refused_) return false;
    if (on_cuda_) comm_.warn_without_nccl(call, bytes);
    return comm_.may_go_by_nccl(call, bytes);
  }
  // What was chosen to carry the call; gives it back.
  Algorithm take(Algorithm algorithm) const {
    comm_.note(algorithm);
    return algorithm;
  }

  // The call begins after what the piece's queue holds now.
  void use(const Piece& piece);
  Step send(const Piece& from, int to, int number, std::initializer_list<Step> needs) {
    if (walk_) return walk_->send(from, comm_.to_world(to), Schedule::tag(first_tag_, number), needs);
    return schedule().send(from, comm_.to_world(to), number, needs);
  }
  Step receive(const Piece& to, int from, int number, std::initializer_list<Step> needs) {
    if (walk_) return walk_->receive(to, comm_.to_world(from), Schedule::tag(first_tag_, number), needs);
    return schedule().receive(to, comm_.to_world(from), number, needs);
  }
  // What a copy of this rank's own part needs: a long one would keep another rank waiting, whose message is `other`. What is walked is so short that
  // it is copied while that comes.
  Step after_others(Step other) const { return walk_ ? kNone : other; }
  // Nothing to do, kNone, where both are the same place: then what it needs must be ordered by the caller.
  Step copy(const Piece& to, const Piece& from, std::initializer_list<Step> needs) {
    return walk_ ? walk_->copy(to, from, needs) : schedule().copy(to, from, needs);
  }
  // to = from (op) to
  Step combine(const Piece& to, const Piece& from, std::initializer_list<Step> needs) {
    return walk_ ? walk_->combine(to, from, needs) : schedule().combine(to, from, needs);
  }
  // to = came (op) here, or here (op) came: what comes is combined as it comes, where a processor does that. Else it lies in `room` first, after
  // `free`, and is combined after `needs`; where it is the right operand, `room` may be `to`, and `here` is where that is combined.
  struct Operands {
    Piece to;
    Piece here;
    Piece room;
    bool came_left = true;
    bool as_it_comes = true;  // then it is received only after `needs`
  };
  Step receive_combined(const Operands& with, int from, int number, std::initializer_list<Step> free,
                        std::initializer_list<Step> needs);
  // Does nothing: others may need it, and it whatever need() says.
  Step join() { return walk_ ? kNone : schedule().copy({}, {}, {}); }
  void need(Step step, Step needed) {
    if (walk_) return walk_->fulfil(needed);
    schedule().need(step, needed);
  }

  // Can partial results be combined where this piece lives? On the host always; on a device above a size from which its
  // kernels are worth their start, if it knows the operation.
  bool combines_on(const Piece& piece, Bytes bytes) const;
  Piece host_scratch(Bytes bytes);
  // Where partial results that belong to `piece` are combined: beside it or on the host.
  Piece scratch_for(const Piece& piece, bool beside, Bytes bytes);
  // How many bytes of a long vector are combined and passed on at once: scratch is bounded by it, and one chunk's arithmetic
  // overlaps with the next one's message. The same on every rank, whatever its buffers are.
  static constexpr Bytes kChunk = kibibytes(512);
  // Longer ones of a very long vector, so that each message between two ranks keeps a number of its own in this call
  // (Schedule::kTags): by default a half of them each way, and as many again for parts that are not even.
  static Bytes chunk_of(Bytes whole, int most_chunks = 500) {
    return Bytes{std::max(kChunk.value, whole.value / static_cast<std::uint64_t>(most_chunks) + 1)};
  }
  Schedule& schedule() {
    if (into_ != nullptr) return *into_;
    if (!schedule_) schedule_ = std::make_unique<Schedule>(call_, comm_.internal(), first_tag_);
    return *schedule_;
  }

 private:
  static std::int32_t first_tag(std::uint64_t call);
  const Communicator& comm_;
  const char* call_;
  int rank_;
  int size_;
  std::uint64_t number_;  // of the call
  std::int32_t first_tag_;
  const bool waits_;
  bool may_walk_;
  bool on_cuda_ = false;  // a buffer of this rank is
  bool refused_ = false;  // by this rank, to be NCCL's
  Combiner combiner_;
  std::optional<Walk> walk_;
  std::unique_ptr<Schedule> schedule_;  // made when something is put into it
  Schedule* into_ = nullptr;
  bool compared_ = false;
  SharedLane::Note note_;
  std::optional<SharedCall> shared_at_once_;
  std::unique_ptr<SharedCall> shared_later_;
  std::vector<std::unique_ptr<LaidOut>> laid_;
  std::vector<Step> shared_inputs_;
  std::vector<std::pair<Piece, Piece>> shared_outputs_;  // to, from
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
