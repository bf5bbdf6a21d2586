// What a program knows of its calls that were offered to NCCL: which are over, by what it has done, and by no clock.
//
// Who calls this : Nccl has one; nccl_call.cpp offers calls, and asks; face/ tells what the program waits for, tests, cancels and frees.
// Threads        : all under the engine's lock, but for any().
// Ownership      : what is known of a communicator is shared with its team, and outlives that.
// Errors         : none.
//
// A program knows a call to be over that it has waited for, and with it those of that communicator before. That a test, or a wait for any of several,
// has found a call over it need not have looked at: where it has not, what follows from that would follow from timing. So such a call counts as
// open, over or not, and whatever is done with its request later, until a later one of that communicator was waited for.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "request/engine.hpp"
#include "request/operation_id.hpp"

namespace ist {

class NcclKnown {
 public:
  // Calls by their numbers, in the order in which they were offered.
  struct Team {
    std::uint64_t opener = 0;  // which made NCCL's communicator
    std::uint64_t heard = 0;   // the last one that is known to be over
  };
  struct Call {
    std::shared_ptr<Team> team;
    OperationId operation;
    std::thread::id by;
    bool settled;  // it was known that NCCL is there
    bool awaited;  // the program goes on only when it is over
    std::uint64_t number = 0;
    bool tested = false;
  };

  // False: there are too many that nobody waits for.
  bool has_room() const { return calls_.size() < kMany; }
  void drop_those_over(Engine& engine) {
    std::erase_if(calls_, [&](const Call& one) { return engine.find(one.operation) == nullptr; });
  }
  std::uint64_t offered(Call call) {
    call.number = ++last_;
    calls_.push_back(std::move(call));
    any_.store(true, std::memory_order_relaxed);
    return last_;
  }
  // Has any been, ever? Also without the lock.
  bool any() const { return any_.load(std::memory_order_relaxed); }
  // The program waits for that operation, whichever it is; `though_tested`: and would if a test had found it over.
  void awaited(OperationId operation, bool though_tested) {
    for (Call& one : calls_)
      if (one.operation.value == operation.value && (though_tested || !one.tested)) one.awaited = true;
  }
  void tested(OperationId operation) {
    for (Call& one : calls_)
      if (one.operation.value == operation.value) one.tested = true;
  }
  // Takes in what has been waited for, and is over.
  void hear(Engine& engine) {
    for (const Call& one : calls_)
      if (one.awaited && engine.find(one.operation) == nullptr) one.team->heard = std::max(one.team->heard, one.number);
    std::erase_if(calls_, [](const Call& one) { return one.number <= one.team->heard; });
  }
  // Nobody is told when this one is over, which the program cancels or frees. False: it is none of these, or counts as open anyway.
  bool let_go(OperationId operation) {
    return std::erase_if(
               calls_, [operation](const Call& one) { return one.operation.value == operation.value && !one.tested; }) != 0;
  }
  // Has this thread offered one of another team's that it does not know to be over? `settled`: of a call that is; then one that is not.
  bool others_open(const Team& team, bool settled) const {
    return std::any_of(calls_.begin(), calls_.end(), [&](const Call& one) {
      return one.by == std::this_thread::get_id() && !(settled && one.settled) && one.team.get() != &team;
    });
  }

 private:
  static constexpr std::size_t kMany = 1024;
  std::vector<Call> calls_;
  std::uint64_t last_ = 0;
  std::atomic<bool> any_{false};
};

}  // namespace ist
