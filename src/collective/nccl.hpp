// Whether NCCL may carry collective calls in this world, and for which groups of ranks: by what every rank said at the start.
//
// Who calls this : face/ makes one per world, and communicators ask it; nccl_team.cpp, nccl_call.cpp.
// Threads        : read-only after learn(), but for the threads it runs for teams, the list of teams, and what is said to be under the engine's lock.
// Ownership      : owns those threads, and waits for them at its end; looks at the kinds. Outlives the engine.
// Errors         : none stops a world: why NCCL is off is kept in words.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/settings.hpp"
#include "collective/choose.hpp"
#include "collective/nccl_api.hpp"
#include "collective/nccl_known.hpp"
#include "memory/kinds.hpp"
#include "request/group.hpp"
#include "request/operation_id.hpp"

namespace ist {

class Communicator;
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
  // Of the making of a communicator that begins now.
  std::chrono::steady_clock::time_point deadline() const {
    return std::chrono::steady_clock::now() +
           std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(patience_));
  }
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
  // All of it under the engine's lock, but for any().
  NcclKnown& known() { return known_; }
  // Where the program cancels or frees one that was offered, or tests very many and waits for none, no further communicator of NCCL's is made, and those
  // stay that it knows of.
  std::uint64_t offered(Engine& engine, NcclKnown::Call call);
  void let_go(Engine& engine, OperationId operation);
  bool any_let_go() const { return any_let_go_; }

 private:
  std::vector<NcclTeam*> teams();
  void stop_making();
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
  const double patience_;  // seconds
  const bool opens_;
  Status off_;
  nccl::Api api_;
  std::vector<Facts> facts_;  // by rank
  std::mutex mutex_;          // guards what follows
  std::vector<Worker> workers_;
  std::vector<NcclTeam*> teams_;
  std::vector<std::shared_ptr<NcclTeam>> kept_;
  // Under the engine's lock:
  NcclKnown known_;
  bool any_let_go_ = false;
};

// The library as `isthmus info` shows it: of a world of several ranks.
Result<nccl::Api> find_nccl(const Settings& settings, const Kinds& kinds);

// Is this operation on this type one of NCCL's?
bool nccl_knows(const Combiner& combiner);

// The same of a communicator.
NcclAnswer explain_nccl(const Communicator& comm, ChosenCall what, const Combiner* combiner, Bytes bytes);

}  // namespace ist
