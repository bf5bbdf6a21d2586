// What the ranks of a communicator say to each other in memory that all of them see, in the place of messages.
//
// Who calls this : shared_call, plan.hpp and the short ways of calls (face/message/collective_at_once.hpp); the communicator has one, if all of its ranks are on this host and had one left.
// Threads        : as LaneTurns; the waits without the engine's lock, doubts and reasons under it.
// Ownership      : looks at the world's engine and paths, which outlive it.
// Errors         : of a wait: that rank is gone, or a rank makes another call.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/pause.hpp"
#include "path/shm/lane_turns.hpp"
#include "request/engine.hpp"

namespace ist {

class SharedLane : public LaneTurns {
 public:
  // The calls of a program that fits together are the same on all ranks; of one that does not these differ.
  struct Note {
    std::uint64_t what = 0;
    Bytes bytes;
  };

  // As readers of what is said: the ranks above this one. The others may be gone.
  static constexpr int kThoseBehind = -2;

  // `what`, from the lowest bit on: which call it is; what else all give alike, such as a root; why this rank gave the call up before it knew how
  // much all have, or 0. What call, detail and no failure are is the same on all ranks.
  static constexpr std::uint64_t what(std::uint32_t call, int detail, Code gave_up) {
    return call | static_cast<std::uint64_t>(static_cast<std::uint32_t>(detail)) << kDetailFrom |
           static_cast<std::uint64_t>(gave_up) << kCodeFrom;
  }
  static constexpr std::uint64_t kCall = 0xff;
  static constexpr unsigned kDetailFrom = 8;
  static constexpr unsigned kCodeFrom = 40;
  static constexpr std::uint64_t kCodes = 0xff;
  // In `what`: a call that begins with words between all ranks, which may go on as soon as it has all of them.
  static constexpr std::uint64_t kAsks = std::uint64_t{1} << 63U;

  // `lanes`: by rank of the communicator.
  SharedLane(Engine& engine, const Scope& scope, std::vector<Lane*> lanes);

  Engine& engine() const { return engine_; }
  Rank to_world(int rank) const { return group_ ? group_->to_world(rank) : Rank{rank}; }

  // What this rank is about to do, for those that wait for it in vain.
  void note(std::uint64_t call, const Note& mine);
  bool is_free(const Turn& turn) {
    return LaneTurns::is_free(turn, [this](int rank) { return is_gone(rank); });
  }
  bool idle() {
    return LaneTurns::idle([this](int rank) { return is_gone(rank); });
  }
  // Writes it, and wakes those that may sleep. at_once: without the engine's lock, by who makes the communicator's calls.
  void say(const Turn& turn, const std::byte* bytes, const LaneBytes& size, std::uint32_t gave_up, bool at_once);

  // As hear(), of what is said soon; null: not yet. Between looks the line is left to who says it: of 256 B, between two ranks with a line in 0.06 us, a
  // broadcast takes 0.095 us so and 0.106 without, a reduce 0.105 and 0.115 (AMD EPYC, Zen 5, medians of five runs in turn), on cores of an Intel Xeon an
  // allreduce 0.51 and 0.61 (medians of seven; 2026-11-29).
  const LaneSlot* hear_soon(int from, std::uint64_t call, int round) {
    const LaneSlot* slot = hear(from, call, round);
    for (int look = 1; look < brief_looks_ && slot == nullptr; ++look) {
      pause_briefly();
      slot = hear(from, call, round);
    }
    return slot;
  }
  // Returns when `ready` is true; an error: what it waits for, of `from`, will not come.
  template <class Ready>
  Status wait(const Ready& ready, int from, std::uint64_t call) {
    for (int look = 0; look < brief_looks_; ++look) {
      if (ready()) return {};
      pause_briefly();
    }
    return wait_long(ready, from, call);
  }
  // The same of what is not there soon.
  Status wait_long(const std::function<bool()>& ready, int from, std::uint64_t call);
  // Returns when nobody needs any more what stands there; an error: that may never be.
  Status wait_until_free(const Turn& turn);
  // For those who hold the lock.
  Status doubt_of_slot(std::uint64_t call) const;
  // Is that rank among those readers, and gone? And why, under the engine's lock.
  bool is_lost(int reader, int readers) const {
    const bool reads = readers == kThoseBehind ? reader > rank() : reader != rank() && (readers < 0 || readers == reader);
    return reads && is_gone(reader);
  }
  Status lost(int reader) const;
  // Behind a call that was done at once: moves on what else is under way, and looks who is gone, now and then.
  void move_on_others();
  // Will nothing come of that rank any more, or does a rank make another call?
  Status doubt(int from, std::uint64_t call);
  // The latter alone. `asks`: and it does not even answer what this one asks.
  Status compare(std::uint64_t call, bool asks = false) const;

 private:
  bool is_gone(int rank) const { return engine_.parts().board.fate(to_world(rank)) != AbortBoard::Fate::present; }
  Status makes_another(int rank) const;

  Engine& engine_;
  std::shared_ptr<const Group> group_;
  int brief_looks_;
  std::vector<Link*> sleepers_;  // to those of the others who may sleep
  unsigned calls_ = 0;           // done at once
  // Of two ranks: of what is said at once, and of the rest. What goes past the caches several would have to wait for.
  std::array<HandingCopy, 2> handing_;
};

// The lanes of one rank, which its communicators have in turn.
class LanePool {
 public:
  explicit LanePool(Engine& engine) : engine_(engine) {}
  // Those that are free, one bit each, which no other call is offered until settle().
  std::uint32_t offer();
  void settle(std::uint32_t offered);
  // The one of that number for a communicator of which every rank was offered it and has not settled yet; null where its ranks do not
  // see each other's memory. Of the world it is 0.
  std::shared_ptr<SharedLane> make(const Scope& scope, int index);
  // The communicator goes.
  void drop(std::shared_ptr<SharedLane> lane);
  static constexpr int kNone = -1;
  // The first of those that all have.
  static int first_of(std::uint32_t all);

 private:
  Engine& engine_;
  std::mutex mutex_;
  std::uint32_t offered_ = 0;
  std::array<std::shared_ptr<SharedLane>, kLanes> lanes_;
};

}  // namespace ist
