// Promises kept by events: a stable table of slots, each with one event that is used again and again, and the lanes.
//
// Who calls this : cuda_kind.cpp, with the kind's lock held ask() alone needs none.
// Threads        : none of its own.
// Ownership      : owns the events; the lanes belong to their context.
// Errors         : returned, naming the driver's call. Nothing is allocated once enough tickets and lanes exist.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "memory/cuda/cuda_context.hpp"
#include "memory/cuda/cuda_sights.hpp"

namespace ist {

// What is asked after, and told of the lane.
struct CudaRecord {
  CUevent event = nullptr;
  CudaContext* context = nullptr;
  CudaLane* lane = nullptr;  // null: work of the user's, not ours
  // In its lane: how many copies were recorded when this one was begun, and its own number once it is recorded, else 0.
  std::uint64_t begun_after = 0;
  std::uint64_t number = 0;
};

struct CudaTicket : CudaRecord {
  enum class State : std::uint8_t {
    spare,   // the event is free
    live,    // somebody holds the id
    dropped  // nobody does, but the work may still run
  };
  std::uint32_t index = 0;
  std::uint32_t generation = 0;  // grows with each use, so that an old id finds nothing
  State state = State::spare;
  // Of work in the user's queue that nobody has asked about, nor recorded the event for: that is yet to be done.
  bool unasked = false;
  // A copy of ours that went into the user's queue.
  bool queued = false;
  CUstream queue = nullptr;           // of the last two
  CudaSight sight;                    // of a copy; for who holds the id
  std::optional<std::uint16_t> word;  // that it has for that

  std::uint64_t id() const { return (std::uint64_t{generation} << 32) | index; }
};

class CudaTickets {
 public:
  CudaTickets(const CudaApi& api, CudaSights& sights) : api_(api), sights_(sights) {}
  ~CudaTickets();
  CudaTickets(const CudaTickets&) = delete;
  CudaTickets& operator=(const CudaTickets&) = delete;

  // A ticket with a free event of that context, which must be current.
  Result<CudaTicket*> take(CudaContext& context, CudaLane* lane);
  // The live ticket of this id, or null.
  CudaTicket* find(std::uint64_t id);
  // Its event is recorded behind its work: from now on it is in the order of its lane.
  static void recorded(CudaTicket& ticket);
  // What is known of it without asking the driver, whose every answer takes more than a microsecond: copies in a lane are over one
  // after the other, and what was not over a moment ago, nor what comes after it, need not be asked after again.
  enum class Known : std::uint8_t { nothing, over, not_yet };
  static Known known(const CudaTicket& ticket);
  // A copy of the one that is worth asking after instead, if there is one: it was recorded last, so that with it nearly all others of
  // the lane are over.
  static std::optional<CudaRecord> last_behind(const CudaTicket& ticket);
  // The driver's answers.
  static void is_over(const CudaRecord& ticket);
  static void is_not_over(const CudaRecord& ticket);
  // Has its work happened? May be asked of a live ticket without the lock.
  CUresult ask(const CudaRecord& ticket) const;
  // The work is known to have finished (or the event was never recorded): the event is free again.
  void recycle(CudaTicket& ticket);
  // Nobody waits any more; the event is free again once it has happened.
  void drop(CudaTicket& ticket);
  // A lane of that context, which must be current: an idle one, else a new one, else the one with the least in it. So a
  // copy that waits for a user's kernel does not hold up unrelated copies behind it. Few, because a device runs only so many
  // streams apart (CUDA_DEVICE_MAX_CONNECTIONS, 8 unless set): with more, the driver lets unrelated ones wait for each other.
  Result<CudaLane*> choose_lane(CudaContext& context, CopyDirection direction);
  // Events ever made.
  std::size_t size() const { return table_.size(); }

 private:
  static constexpr std::size_t kMostLanes = 4;
  void sweep();

  const CudaApi& api_;
  CudaSights& sights_;
  std::deque<CudaTicket> table_;  // addresses stay
  std::vector<CudaTicket*> dropped_;
};

}  // namespace ist
