// How far a schedule has come.
//
// Who calls this : the engine alone.
// Threads        : under the world's lock.
// Ownership      : owns the schedule, and copies and kernels that it started.
// Errors         : the first one, in status; from then on every message of the schedule says that this rank gave up.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "memory/transfer.hpp"
#include "request/schedule.hpp"

namespace ist {

struct ScheduleRun {
  // A message that was sent or received, and what it said.
  struct Ended {
    Schedule::StepId step;
    Status status;
    Bytes bytes;
    std::optional<Rank> about;  // the sender gave up, because of that rank
  };
  // A copy or reduction under way.
  struct Local {
    Schedule::StepId step;
    std::uint64_t done = 0;  // bytes, on the host
    Ticket ticket;
    std::optional<Transfer> transfer;
  };
  std::unique_ptr<Schedule> schedule;
  OperationId call;                     // as it was started
  std::vector<Schedule::StepId> ready;  // to be started, from next_ready on, in this order
  std::size_t next_ready = 0;
  std::vector<Ended> ended;
  std::vector<Local> local;
  std::uint32_t remaining = 0;  // steps that are not complete
  std::uint32_t known = 0;      // of the schedule's steps; an action may write down more
  Status status;
  Rank about;                                          // the rank that is the cause of the failure
  std::chrono::steady_clock::time_point doubted = {};  // since when it seems to wait in vain
  bool abandoned = false;                              // the world is being destroyed: nothing starts any more
  bool cancelled = false;  // the user asked for that; where nothing had failed, status and about say that this rank gave up

  // What an action wrote down since: it is among the steps from here on.
  void take_in() {
    if (schedule->size() == known) return;
    const std::uint32_t all = remaining + schedule->size() - known;
    ended.reserve(all);
    ready.reserve(schedule->size());
    schedule->sort_needs();
    for (remaining = all; known < schedule->size(); ++known)
      if (schedule->at(known).unmet == 0) ready.push_back(known);
  }
};

}  // namespace ist
