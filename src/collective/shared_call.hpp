// One rank's part in a collective call through shared memory: what it says, and what it takes of what the others say.
//
// Who calls this : the algorithms beside it, through Plan; the short ways of calls (face/message/collective_at_once.hpp).
// Threads        : filled in by one; run by the caller at once, or under the engine's lock as an action of a schedule.
// Ownership      : looks at the lane, which as_action() keeps; pieces are views, and host memory.
// Errors         : the first is the call's result. What has failed still says so in every round, and takes what the others say, so that
//                  nobody waits for this rank.
//
// A rank says what it has in one round in one slot of its own, and takes what it wants straight out of the others': nothing is copied
// but once in and once out, however many want it. What a rank says, all that are there to hear it read, or one.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "collective/shared_lane.hpp"
#include "path/shm/pair_slots.hpp"
#include "request/schedule.hpp"

namespace ist {

class SharedCall {
 public:
  SharedCall(SharedLane& lane, std::uint64_t call, const Combiner& combiner)
      : lane_(&lane), call_(call), combiner_(combiner), about_(lane.engine().rank()) {}
  ~SharedCall();
  SharedCall(const SharedCall&) = delete;
  SharedCall& operator=(const SharedCall&) = delete;

  // Each step is done as it is written down; nobody else may move the call on.
  void at_once() { at_once_ = true; }
  // At its end: what the others had sent before they came to it is heard of, as it would be if their words were messages.
  void look_around() { look_around_ = true; }
  void fail(const Status& why) { give_up(why, lane_->engine().rank()); }

  int rank() const { return lane_->rank(); }
  int size() const { return lane_->size(); }
  bool commutative() const { return combiner_.commutative; }

  // So many bytes, all of these or some of all. `readers`: a rank, SharedLane::kEverybody, or SharedLane::kThoseBehind.
  void say(int round, const std::byte* from, Bytes size, int readers) { say(round, from, all_of(size), readers); }
  void say(int round, const std::byte* from, const LaneBytes& size, int readers) {
    const SharedLane::Turn turn = lane_->take_turn(call_, round, std::max(readers, SharedLane::kEverybody));
    if (at_once_ && status_.ok() && lane_->is_free(turn) && nobody_left()) [[likely]]
      return lane_->say(turn, from, size, 0, true);
    say_step(turn, round, from, size, readers);
  }
  // Of the bytes `given` that a rank says in that round, so many from `offset` on. Its own are there, too, once it has said them.
  struct Share {
    int from = 0;
    int round = 0;
    LaneBytes given;
    Bytes offset;
    Bytes size;
  };
  void copy(std::byte* to, const Share& share) {
    if (const std::byte* const said = whole_at_once(share); said != nullptr) [[likely]]
      return copy_any(to, said, share.size.value);
    add({Verb::copy, share, to, nullptr, {}, 0});
  }
  // Nothing of it but that it is there.
  void await(const Share& share) {
    if (whole_at_once(share) == nullptr) [[unlikely]]
      add({Verb::copy, share, nullptr, nullptr, {}, 0});
  }
  // to = share (op) to
  void combine(std::byte* to, const Share& share) {
    if (const std::byte* const said = whole_at_once(share); said != nullptr) [[likely]] {
      // A user's function is not called for nothing.
      if (share.size != Bytes{}) combine_on_host(combiner_, to, said, share.size);
      return;
    }
    add({Verb::combine, share, to, nullptr, {}, 0});
  }
  // The same of what this rank has, wherever it is: it need not say it.
  void copy_own(std::byte* to, const std::byte* from, Bytes size) {
    if (at_once_ && status_.ok()) [[likely]]
      return copy_any(to, from, size.value);
    add({Verb::copy_own, own(size), to, from, {}, 0});
  }
  void combine_own(std::byte* to, const std::byte* from, Bytes size) {
    if (size == Bytes{}) return;
    if (at_once_ && status_.ok()) [[likely]]
      return combine_on_host(combiner_, to, from, size);
    add({Verb::combine_own, own(size), to, from, {}, 0});
  }
  // Of a call that was done at once: how it ended.
  Status end();
  // Of any other: what does the rest, as far as it can; true: over. Under the engine's lock.
  void begin() {
    lane_->begin(call_);
    begun_ = true;
  }
  bool go_on(bool abandoned);
  const Status& status() const { return status_; }

 private:
  enum class Verb : std::uint8_t { say, copy, combine, copy_own, combine_own };
  struct Step {
    Verb verb;
    Share share;
    std::byte* to;
    const std::byte* bytes;
    SharedLane::Turn turn;
    int readers;
  };
  Share own(Bytes size) const { return {rank(), 0, all_of(size), {}, size}; }
  bool nobody_left() const { return lane_->engine().parts().board.changes() == 0; }
  // Of a call that is done at once: where the share is, if that rank says it soon, all of it at once and as it should. Null: a step finds out
  // more.
  const std::byte* whole_at_once(const Share& share) {
    if (!at_once_ || !status_.ok()) [[unlikely]]
      return nullptr;
    const LaneSlot* const slot = lane_->hear_soon(share.from, call_, share.round);
    if (slot == nullptr || slot->gave_up != 0 || slot->bytes != share.given ||
        slot->ready.load(std::memory_order_acquire) < share.offset.value + share.size.value) [[unlikely]]
      return nullptr;
    return slot->place_for(share.given.said) + share.offset.value;
  }
  void say_step(const SharedLane::Turn& turn, int round, const std::byte* from, const LaneBytes& size, int readers);
  void add(const Step& step);
  void give_up(const Status& why, Rank about);
  bool step(const Step& step);
  bool say_now(const Step& step);
  bool looks_in_vain();
  void look_for_readers(const Step& step);
  void use_own(const Step& step);
  bool take_now(const Step& step);
  const LaneSlot* hear(const Share& share);
  bool is_there(const LaneSlot& slot, std::uint64_t bytes, int from);
  void check(const LaneSlot& slot, const Share& share);
  bool in_vain(const Share& share);

  SharedLane* lane_;
  std::uint64_t call_;
  Combiner combiner_;
  Status status_;
  Rank about_;
  bool at_once_ = false;
  bool begun_ = false;  // and not ended
  bool look_around_ = false;
  std::vector<Step> steps_;
  std::size_t next_ = 0;
  unsigned looks_ = 0;
};

// The same as a step of a schedule.
std::unique_ptr<Action> as_action(std::unique_ptr<SharedCall> call, std::shared_ptr<SharedLane> lane);

}  // namespace ist
