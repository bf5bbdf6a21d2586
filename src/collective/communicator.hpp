// Who talks with whom: some ranks of a world in an order of their own, and a context that keeps their messages apart.
//
// Who calls this : face/, which owns one per handle; the files beside it.
// Threads        : the object never changes, but for what it keeps in atomics; the calls are collective, one at a time per
//                  communicator.
// Ownership      : looks at the engine, which outlives it; shares its group with the operations started on it.
// Errors         : of the first message that failed. Every member of the parent hears of a rank that was lost on the way.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collective/choose.hpp"
#include "collective/shared_lane.hpp"
#include "request/engine.hpp"

namespace ist {

// Beside kInternalContext: what OpenCL queues send and receive, which meets no other messages.
inline constexpr std::uint32_t kQueueContext = 0x40000000U;

// A grid over the ranks of a communicator, the last dimension running fastest, as in MPI.
struct Grid {
  std::vector<int> dims;
  std::vector<bool> periods;
  std::vector<int> coords_of(int rank) const;
  // None outside a dimension that is not periodic.
  std::optional<int> rank_of(const std::vector<int>& coords) const;
};

class Nccl;
class NcclTeam;

// What the communicators of one world share; it outlives them.
struct WithWorld {
  Nccl* nccl = nullptr;
  LanePool* lanes = nullptr;
};

class Communicator {
 public:
  // `machine`: what algorithms are chosen by, the same on every rank. `world`: what it has of that, if it is to be used.
  // `lane`: null on every rank, or on none.
  Communicator(Engine& engine, Scope scope, std::string name, const CollectiveProfile& machine, const WithWorld& world = {},
               std::shared_ptr<SharedLane> lane = nullptr);
  ~Communicator();
  // What its end has to do with the engine, which may be gone before it.
  void end();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  Engine& engine() const { return *engine_; }
  int size() const { return size_; }
  int rank() const { return from_world(engine_->rank()); }
  Rank to_world(int rank) const { return scope_.group ? scope_.group->to_world(rank) : Rank{rank}; }
  int from_world(Rank rank) const { return scope_.group ? scope_.group->from_world(rank) : rank.value; }
  const Scope& scope() const { return scope_; }
  const Scope& internal() const { return internal_; }
  // "world", "split of world, colour 2"
  const std::string& name() const { return name_; }
  const CollectiveProfile& machine() const { return machine_; }
  // Which algorithm carries a call. The last answer for each call is kept, since most calls are like the one before.
  Algorithm algorithm(ChosenCall call, Bytes bytes, bool commutative) const {
    constexpr std::uint64_t kAnswer = 0x7f;
    if (bytes.value >> 56U != 0) return choose(call, {size(), bytes}, commutative, machine_);
    const std::uint64_t asked = bytes.value << 8U | (commutative ? kAnswer + 1 : 0);
    std::atomic<std::uint64_t>& last = answers_[static_cast<std::size_t>(call)];
    const std::uint64_t known = last.load(std::memory_order_relaxed);
    if ((known & ~kAnswer) == asked && (known & kAnswer) != 0) return static_cast<Algorithm>((known & kAnswer) - 1);
    const Algorithm chosen = choose(call, {size(), bytes}, commutative, machine_);
    last.store(asked | (static_cast<std::uint64_t>(chosen) + 1), std::memory_order_relaxed);
    return chosen;
  }
  // Of equal parts, each of so many bytes.
  Algorithm algorithm_of_parts(ChosenCall call, Bytes part) const {
    std::uint64_t all = 0;
    if (__builtin_mul_overflow(part.value, static_cast<std::uint64_t>(size_), &all)) all = ~std::uint64_t{0};
    return algorithm(call, Bytes{all}, true);
  }
  // How many collective calls were made before this one: the same on every rank. Of one communicator they are made one at a time.
  std::uint64_t count_call() const {
    const std::uint64_t number = calls_.load(std::memory_order_relaxed);
    calls_.store(number + 1, std::memory_order_relaxed);
    return number;
  }
  // Where its ranks say to each other what is short, in memory that all of them see; null: nowhere.
  const std::shared_ptr<SharedLane>& lane() const { return lane_; }
  // May its calls take their short ways? Not where each is looked at by itself, as where there is a trace or arguments are compared.
  bool is_brief() const { return brief_; }
  // As it was given, whether this one has a lane or not.
  const CollectiveProfile& machine_of_world() const { return machine_of_world_; }
  // The numbers of a call that goes by messages.
  CollectiveProfile by_messages() const;
  const WithWorld& with_world() const { return world_; }
  Nccl* nccl() const { return world_.nccl; }
  // Null where NCCL cannot serve these ranks, by what all of them know.
  const std::shared_ptr<NcclTeam>& nccl_team() const { return nccl_team_; }
  // Is a call worth asking all ranks whether NCCL may have it? What is ruled out when the communicator is made costs a look at
  // one pointer; else the last answer for each call is kept.
  bool may_go_by_nccl(ChosenCall call, Bytes bytes) const { return nccl_team_ != nullptr && nccl_pays_for(call, bytes); }
  // A call on CUDA memory that NCCL would carry better, were it there: said once.
  void warn_without_nccl(ChosenCall call, Bytes bytes) const {
    if (nccl_team_ == nullptr && world_.nccl != nullptr && bytes >= kLong) say_without_nccl(call, bytes);
  }
  // What carried the last call for which there was a choice, here on this rank.
  void note(Algorithm algorithm) const { last_.store(algorithm, std::memory_order_relaxed); }
  Algorithm last_algorithm() const;
  const std::optional<Grid>& grid() const { return grid_; }
  void set_grid(Grid grid) { grid_ = std::move(grid); }

 private:
  // That NCCL is missing is said of calls from this size on.
  static constexpr Bytes kLong = kibibytes(64);
  bool nccl_pays_for(ChosenCall call, Bytes bytes) const;
  void say_without_nccl(ChosenCall call, Bytes bytes) const;
  Engine* engine_;
  Scope scope_;
  int size_;
  Scope internal_;
  std::string name_;
  CollectiveProfile machine_of_world_;
  CollectiveProfile machine_;
  std::optional<Grid> grid_;
  WithWorld world_;
  std::shared_ptr<SharedLane> lane_;
  bool brief_;
  bool ended_ = false;
  std::shared_ptr<NcclTeam> nccl_team_;
  mutable std::atomic<std::uint64_t> calls_{0};
  mutable std::atomic<Algorithm> last_{Algorithm::none};
  // By call, in one word each: bytes, whether the order is free, and the algorithm's number plus one; 0: nothing yet.
  mutable std::array<std::atomic<std::uint64_t>, kChosenCalls> answers_{};
  // By call: bytes, whether NCCL pays, and 1; 0: nothing yet. Unused without a team.
  mutable std::array<std::atomic<std::uint64_t>, kNcclCalls> nccl_answers_{};
};

// Numbers contexts. Ids are never used twice: they are those of the rank that gave them out, and its count of them.
class ContextSource {
 public:
  ContextSource(Rank rank, int size);
  // From any thread. 0: all are used up.
  std::uint32_t next();

 private:
  std::uint32_t first_;
  std::uint32_t end_;
  std::atomic<std::uint32_t> next_;
};
inline constexpr std::uint32_t kWorldContext = 0;
inline constexpr std::uint32_t kSelfContext = 1;  // of every rank with itself

inline constexpr std::int32_t kNoColour = -1;
inline constexpr std::int32_t kMostGroupTag = (1 << 30) - 1;  // what create_group() takes

// What split() is given; the first rank sorts for all.
struct Choice {
  std::int32_t colour = kNoColour;  // kNoColour: in no new communicator
  std::int32_t key = 0;
};

// One new communicator per colour, ranks in the order of key, then of rank in the parent. Null for kNoColour. `wrong`: why this rank cannot take
// part, which is what it gets back; the others hear that it cannot, and it waits for no answer of theirs.
Result<std::unique_ptr<Communicator>> split(const Communicator& parent, const Choice& choice, ContextSource& contexts,
                                            const std::string& what, const Status& wrong = {});
// The same among some ranks of the parent alone, ascending and the same list at each: no other one calls.
Result<std::unique_ptr<Communicator>> split_among(const Communicator& parent, const std::vector<int>& ranks,
                                                  const Choice& choice, ContextSource& contexts, const std::string& what,
                                                  const Status& wrong = {});
// Collective over `members` alone, ranks of the parent, this one among them; `tag`, 0 to kMostGroupTag, keeps simultaneous calls apart.
Result<std::unique_ptr<Communicator>> create_group(const Communicator& parent, const std::vector<int>& members,
                                                   std::int32_t tag, ContextSource& contexts);
// What the first of them does where it cannot: it tells the others why.
void refuse_group(const Communicator& parent, const std::vector<int>& members, std::int32_t tag, Code why);

}  // namespace ist
