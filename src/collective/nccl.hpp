// Whether NCCL may carry collective calls in this world, and for which groups of ranks: by what every rank said at the start.
//
// Who calls this : face/ makes one per world, and communicators ask it; nccl_team.cpp, nccl_call.cpp.
// Threads        : read-only after learn(), but for the threads it runs for teams and the list of teams.
// Ownership      : owns those threads, and waits for them at its end; looks at the kinds. Outlives the engine.
// Errors         : none stops a world: why NCCL is off is kept in words.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/settings.hpp"
#include "collective/choose.hpp"
#include "collective/nccl_api.hpp"
#include "memory/kinds.hpp"
#include "request/group.hpp"
#include "request/operation_id.hpp"

namespace ist {

class Communicator;
class Engine;
class NcclTeam;
struct Combiner;

// Would a call be offered to NCCL, and why or why not, in words. Offered is not yet carried: the buffers of all ranks must be
// CUDA memory that NCCL can use, which they tell each other when the call is made.
struct NcclAnswer {
  bool offered = false;
  std::string why;
};

class Nccl {
 public:
  // Loads the library where it could be of use: not if the setting says never, or without CUDA devices or other ranks.
  Nccl(const Settings& settings, const Kinds& kinds, int ranks);
  ~Nccl();
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  // What this rank tells the others of itself, and what all have told, by rank.
  std::string card() const;
  void learn(const std::vector<std::string>& cards);
  // Why it cannot serve these ranks, null: all; the same answer on each of them.
  Status serves(const Group* group) const;
  // The same, but for GPUs: whether each of them has found it, and one version of it.
  Status installed(const Group* group) const;
  // How many GPUs they see together, also where it is off.
  int devices(const Group* group) const;
  // May the device memory of all of them be opened by the others? Else messages between GPUs go through the host.
  bool opens(const Group* group) const;
  // By the numbers that the ranks share. `combiner`: of a reduction, else null. bytes: of the vector, or of all parts that a
  // rank has.
  NcclAnswer explain(const Group* group, ChosenCall what, const Combiner* combiner, Bytes bytes,
                     const CollectiveProfile& machine) const;
  // Why it is off on this rank; ok if it is not.
  const Status& off() const { return off_; }

  const nccl::Api& api() const { return api_; }
  const Kinds& kinds() const { return kinds_; }
  double patience() const { return patience_; }  // seconds that making a communicator may take
  // The same for a GPU in every process that sees it.
  std::uint64_t identity(int device) const;

  // Runs it in a thread of its own; an error: there is none to be had.
  Status in_background(std::function<void()> body);
  // Both under the engine's lock. The world ends: every call under way is told to the other ranks as given up, and the others
  // are told that this rank has done with NCCL. parted(): all of them have said so too.
  void farewell();
  bool parted();
  // No engine's lock is held; what has ended of the teams before is let go of, too.
  void add(NcclTeam* team);
  void remove(NcclTeam* team);
  // Under the engine's lock: the team's communicator is gone, and what is under way of it may hold it last. A team takes that lock at its end, so it
  // stays until the next one comes, or all end.
  void keep(std::shared_ptr<NcclTeam> team);
  void let_go_of_teams();
  // A call that was offered to NCCL. Held weakly, the place of a team that has ended is no other team's.
  struct Offered {
    std::weak_ptr<const NcclTeam> team;
    OperationId call;
    std::thread::id by;
    bool settled;              // NCCL was there by what the program had done
    bool awaited;              // the program waits until it is over, whatever it finds
    std::uint64_t number = 0;  // in the order in which they are offered
  };
  // All under the engine's lock. Has this thread offered a call of another team's that the program does not know to be over? Where that team is settled:
  // one of a team that is not. It knows that of what it has waited for, and of the calls of that team before. That a test has found one over it need not
  // have looked at, and where it has not, what follows from it would follow from timing. A call that it cancels or frees counts for who is not settled, for good.
  std::uint64_t offered(Engine& engine, Offered call);
  void hear(Engine& engine);
  // The program waits for it. Any operation of the world's.
  void awaited(OperationId call);
  bool others_open(const NcclTeam& team, bool settled);
  void unwatched(Engine& engine, OperationId call);
  bool any_unwatched() const { return any_unwatched_; }
  bool any_offered() const { return any_offered_.load(std::memory_order_relaxed); }

 private:
  std::vector<NcclTeam*> teams();
  struct Facts {
    std::uint64_t version = 0;  // 0: it is off there
    std::vector<std::uint64_t> devices;
    bool opens = false;
  };
  struct Worker {
    std::thread thread;
    std::shared_ptr<std::atomic<bool>> over;
  };
  const Kinds& kinds_;
  const double patience_;
  const bool opens_;
  Status off_;
  nccl::Api api_;
  std::vector<Facts> facts_;  // by rank
  std::mutex mutex_;          // guards what follows
  std::vector<Worker> workers_;
  std::vector<NcclTeam*> teams_;
  std::vector<std::shared_ptr<NcclTeam>> kept_;
  // Under the engine's lock; some whose outcome was taken, too.
  std::vector<Offered> offered_;
  bool any_unwatched_ = false;
  std::uint64_t last_offered_ = 0;
  std::atomic<bool> any_offered_{false};
};

// The library as `isthmus info` shows it: of a world of several ranks.
Result<nccl::Api> find_nccl(const Settings& settings, const Kinds& kinds);

// Is this operation on this type one of NCCL's?
bool nccl_knows(const Combiner& combiner);

// The same of a communicator.
NcclAnswer explain_nccl(const Communicator& comm, ChosenCall what, const Combiner* combiner, Bytes bytes);

}  // namespace ist
