// A collective call that may be NCCL's: the ranks agree on it by messages, and it is either handed over or goes by messages.
//
// Who calls this : the algorithms, with what both ways need.
// Threads        : offering: the caller's; the rest under the engine's lock, as actions of the call's schedule.
// Ownership      : the schedule's actions own it; it holds the team, and what the user's queues held.
// Errors         : the call's own, on every rank. A rank that fails after the agreement tells the others, whose kernels would
//                  wait for it for ever.
//
// What travels, beside NCCL's own: each rank tells each other one whether its buffers are CUDA memory, and of which GPU. All
// said yes, of different GPUs: then, the first time, each tells whether it could make NCCL's communicator, and only where all
// could is it used. Every rank hears the same, and decides the same.
//
// Making it waits for whatever runs on the GPU, and holds up whatever is to run there. So no rank says yes to that while a call on another communicator
// that this thread has offered to NCCL is open, or once streams may wait for other ranks; and what other threads have offered it lets end first.
// After that NCCL's kernels are on the device, also where kernels are loaded lazily (its ncclCommInitRank asks each for its attributes), and a
// call of its waits for nothing but its own kind. What a rank says follows from what its program has done, and from no clock: where the order of
// combining shows, a call that does not wait leaves NCCL to the calls after it, since nothing that the program does tells when its ranks come to make
// NCCL's communicator.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "collective/collectives.hpp"
#include "collective/nccl_team.hpp"
#include "request/action.hpp"

namespace ist {

// Writes the call down as messages.
using ByMessages = std::function<void(Plan&)>;

// The plan then does all that is needed, one way or the other. bytes: moved as they are; elements: combined as the plan's
// combiner says, of a type that nccl_knows().
void offer_bytes(Plan& plan, NcclWork work, Bytes bytes, ByMessages by_messages);
// Fills in so many elements of the combiner's type, and its operation; nccl_knows() it.
void set_elements(NcclWork& work, const Combiner& combiner, std::uint64_t count);
void offer_elements(Plan& plan, NcclWork work, const Elements& elements, ByMessages by_messages);

class NcclCall : public std::enable_shared_from_this<NcclCall> {
 public:
  NcclCall(std::shared_ptr<NcclTeam> team, const NcclWork& work, const Combiner& combiner, ByMessages by_messages);
  ~NcclCall();
  NcclCall(const NcclCall&) = delete;
  NcclCall& operator=(const NcclCall&) = delete;

  // Writes the agreement and what follows it into the plan.
  void write(Plan& plan);
  // The agreement of a rank whose buffers are no CUDA memory, in a plan that may_refuse(): it says so, hears the others and goes on by messages, in
  // the plan itself. That spares a call between host memories the schedule and its steps (two ranks, 32 KiB: 4 us of 12; H200's host, 2026-11-27).
  static void refuse(Plan& plan, const ByMessages& by_messages);
  // This rank cannot go on, and whoever waits for it in NCCL must not.
  void tell_others(const Status& why);

 private:
  // Numbers of the messages, which go with the call's tag.
  static constexpr int kVote = 0;
  static constexpr int kMade = 1;
  static constexpr int kTrouble = 2;

  struct Vote {
    std::uint32_t present = 0;  // 1 in every vote; 0: none came, but word that the rank wrote down another call
    std::uint32_t yes = 0;
    std::uint32_t opens = 0;  // for the calls after it: this one goes by messages
    std::uint32_t reserved = 0;
    std::uint64_t identity = 0;  // of the GPU
    nccl::UniqueId id{};         // of the first rank, while there is no communicator
  };
  // What a rank tells of its communicator.
  enum class Made : std::uint32_t { unknown = 0, yes = 1, no = 2 };
  // After the agreement, on this rank.
  enum class Stage : std::uint8_t {
    ready,     // to be handed over
    starting,  // NCCL has not put it into the stream yet
    running,   // the stream has it
    ending     // failed: the kernel is being ended
  };
  using Step = Result<bool> (NcclCall::*)(Action::Moment& now);
  class Stepper;

  Vote cast(const Status& so_far);
  bool may_say_yes(Vote& vote, bool& fresh);
  bool buffers_fit(int& device) const;
  bool order_shows() const;
  static Piece place_of(Vote& vote) { return host_piece(&vote, Bytes{sizeof vote}); }
  Schedule::StepId act(Schedule& schedule, Step step, std::initializer_list<Schedule::StepId> needs);

  void enter(OperationId call, std::thread::id by);
  Result<bool> decide(Action::Moment& now);
  Result<bool> wait_for_opening(Action::Moment& now);
  Result<bool> begin(Action::Moment& now);
  Result<bool> run(Action::Moment& now);

  static Status all_voted(const std::vector<Vote>& votes);
  void leave();
  bool agreed() const;
  bool any_only_opens() const;
  std::vector<std::uint64_t> identities() const;
  bool go_by_messages(Action::Moment& now);
  void open(Action::Moment& now);
  Result<bool> may_begin();
  Status begin_opening();
  Result<bool> opened(const Status& so_far);
  Status look_around(Action::Moment& now) const;
  Result<bool> move_on(Action::Moment& now);
  void fail(const Status& why);

  std::shared_ptr<NcclTeam> team_;
  NcclWork work_;
  Combiner combiner_;
  ByMessages by_messages_;
  bool waits_ = false;         // it is a blocking call
  std::uint64_t number_ = 0;   // among all that were offered
  bool settled_ = false;       // its program knew when it made it that NCCL is there
  bool settles_ = false;       // and knows when it is over
  std::vector<Ticket> after_;  // what the user's queues held
  std::int32_t tag_ = 0;       // by which a rank that fails tells the others
  std::vector<Vote> votes_;    // by rank
  std::vector<Made> made_;     // by rank
  Stage stage_ = Stage::ready;
  std::shared_ptr<void> setup_;                      // while NCCL sets itself up
  bool begun_ = false;                               // that has begun
  std::chrono::steady_clock::time_point next_look_;  // whether it may begin
  std::chrono::steady_clock::time_point quiet_by_;
  bool under_way_ = false;  // the team knows it
  Ticket ticket_;
  Status failure_;
};

}  // namespace ist
