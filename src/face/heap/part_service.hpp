// The parts of a heap or of a window that another PE does not reach: what others ask of this PE's part is done by a thread here, and what this PE
// asks of theirs by theirs.
//
// Who calls this : CollectiveHeap and Window, which own one where the reach is SpaceReach::owner, or where some device does not reach another PE's
//                  part; copies and words on such a heap or window.
// Threads        : calls from any. One thread per heap at PEs that another one may ask; it takes the engine's lock for each look, and sleeps where
//                  nobody has asked for a while: whoever asks rings (path/shm/doorbell.hpp).
// Ownership      : owns the thread and what is under way; looks at world, communicator and what is served, which outlive it.
// Errors         : of what was asked: the other PE's, told by the call or by quiet(). A PE that is gone: IST_ERR_PEER_DEAD or _LEFT.
//
// What is asked goes by messages, in a context of the heap's own, as do the bytes: between the caller's buffer and the owner's, of
// whatever kinds, by whatever carrier is cheapest, so that there is no second transport here. One receive is always open for each other
// PE, and no PE waits for what another one asks. The program of the owner makes no call meanwhile.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "collective/communicator.hpp"
#include "face/heap/part_messages.hpp"
#include "memory/piece.hpp"
#include "memory/spaces.hpp"
#include "memory/word_changes.hpp"
#include "path/shm/doorbell.hpp"
#include "request/wait.hpp"

namespace ist {

class World;

class PartService {
 public:
  // Memory of every PE's that all map, zero at first: the thread's bell of PE p is p strides behind `base`.
  struct Bells {
    static constexpr Bytes kSize{64};
    std::byte* base = nullptr;
    Bytes stride;
    Doorbell& of(Pe pe) const {
      return *reinterpret_cast<Doorbell*>(base + static_cast<std::uint64_t>(pe.value) * stride.value);
    }
    // After what it is rung for was published.
    void ring(Pe pe) const { of(pe).ring(); }
  };
  // This PE's part. Where the reach is SpaceReach::device its words are changed by the device, else by this thread's copies.
  struct Part {
    Pe pe;
    KindId kind;
    SpaceReach reach;
    std::function<Piece(Offset, Bytes)> piece;
  };
  PartService(World& world, const Communicator& comm, Part own, const Bells& bells);
  ~PartService();
  PartService(const PartService&) = delete;
  PartService& operator=(const PartService&) = delete;
  // By PEs: may that one ask this one for anything?
  Status start(const std::vector<bool>& asked_by);
  // The thread is over, and nobody is served any more.
  void stop();
  // That, and the world ends: what is under way is left as it is, since nobody moves it on.
  void leave();

  // Where, at another PE.
  struct Far {
    Pe pe;
    Offset offset;
  };
  // A word of the same PE's, changed once the bytes are there.
  struct Signal {
    Offset offset;
    WordChange change;
  };
  struct Asked;
  // What is waited for together, and the first error of what was over before.
  struct Batch {
    std::list<std::unique_ptr<Asked>> asked;
    Status failed;
  };
  // Now; after end() of that batch, which one thread has; or, with neither, after quiet(). Until then `near` stays as it is.
  struct When {
    bool now = false;
    Batch* batch = nullptr;
  };
  // `near` is checked.
  Status put(const Far& to, const Piece& near, const Signal* signal, const When& when);
  Status get(const Piece& near, const Far& from, const When& when);
  Status end(Batch& batch);
  // What was there; of this PE's own words, too. They are changed by this thread and the caller's alone, one at a time; where devices change
  // words, by the device of their PE, so that kernels may change them as well.
  Result<std::uint64_t> change(const Far& word, Bytes size, const WordChange& change);
  Status quiet();

  // Something asked of another PE, and not waited for yet.
  struct Asked {
    PartRequest request;
    PartAnswer answer;
    std::vector<OperationId> operations;  // started, in that order
  };

 private:
  // What another PE asks.
  struct Lane {
    enum class State {
      listening,  // for the next request
      moving,     // bytes into or out of the own part
      answering,
      ended  // that PE is gone
    };
    Rank rank;
    State state = State::ended;
    PartRequest request;
    PartAnswer answer;
    OperationId operation;
    bool over = false;  // it was complete when it was started
  };
  Result<std::unique_ptr<Asked>> ask(const PartRequest& request, Pe pe, const Piece* near);
  Status start_asking(Asked& asked, Rank rank, const Piece* near);
  Status finish(Asked& asked);
  void keep(std::unique_ptr<Asked> asked, Batch& batch);
  Status end_or_keep(std::unique_ptr<Asked> asked, const When& when);
  void let_go(Asked& asked);
  Result<std::uint64_t> change_here(Offset offset, Bytes size, const WordChange& change);

  // What the thread does.
  void run();
  void rest(Patience& patience, bool moved, bool polls);
  // With nothing to do, until somebody rings, or for so long as what rang too early may wait: a nap at first, 20 ms later.
  void sleep();
  bool is_idle() const;
  bool step(Lane& lane);
  bool is_over(const Lane& lane) const;
  void listen(Lane& lane);
  void begin(Lane& lane);
  void end(Lane& lane, const Status& moved);
  Status receive(Lane& lane, const Piece& into, std::int32_t tag);
  Status send(Lane& lane, const Piece& from, std::int32_t tag);

  World& world_;
  Engine& engine_;
  const Communicator& comm_;
  const Part own_;
  const Bells bells_;
  const Scope scope_;
  std::atomic<std::uint32_t> next_{0};
  std::mutex words_;  // of the own part
  std::mutex mutex_;
  Batch open_;  // until quiet()
  bool left_ = false;
  std::list<Lane> lanes_;  // the thread's own
  int fruitless_ = 0;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace ist
