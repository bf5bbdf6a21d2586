// Running the schedule of a collective operation: steps start when what they need is complete.
#include <algorithm>
#include <utility>

#include "memory/host/handing_copy.hpp"
#include "request/engine.hpp"

namespace ist {
namespace {

// Bytes that the processor copies or combines at once, so that one long vector does not keep the engine from everybody else.
constexpr std::uint64_t kAtOnce = 1 << 20;  // a whole number of elements of any type

// Only what was vain at two looks so far apart, and at none between, is vain.
constexpr std::chrono::milliseconds kDoubtFor{250};

// Made before it is needed.
const Status& no_memory() {
  static const Status none{IST_ERR_MEMORY, "no host memory is left; free some, or receive what has arrived"};
  return none;
}

bool on_host(const Schedule::Step& step) { return step.to.kind == KindId::host && step.from.kind == KindId::host; }

// Cancelled, and nothing else was wrong.
bool is_given_up(const ScheduleRun& run) { return run.cancelled && run.status.code() == IST_ERR_PENDING; }

}  // namespace

Result<OperationId> Engine::start_schedule(std::unique_ptr<Schedule> schedule) {
  const OperationId id = operations_.add();
  if (id.value == 0) {
    schedule->let_go_of_blocks_later();
    return too_many();
  }
  no_memory();
  schedule->sort_needs();
  auto run = std::make_unique<ScheduleRun>();
  run->remaining = run->known = schedule->size();
  run->ready.reserve(run->remaining);
  for (Schedule::StepId step = 0; step < schedule->size(); ++step)
    if (schedule->at(step).unmet == 0) run->ready.push_back(step);
  run->ended.reserve(run->remaining);  // so that no end is lost where memory runs out
  run->status = schedule->failure();
  run->about = parts_.rank;
  run->schedule = std::move(schedule);
  run->call = id;
  run->schedule->start_as(id);
  Operation& operation = operations_.at(id.index());
  operation.group = run->schedule->scope().group;
  operation.outcome = {Status{}, Rank{kAnySource}, kAnyTag, IST_CARRIER_NONE, Bytes{}, nullptr, false};
  operation.state = state::Running{std::move(run)};
  if (parts_.trace != nullptr) trace_begin(operation);
  step_schedule(operation, id.index());
  if (polls(operation)) activate(operation, id.index());
  return id;
}

bool Engine::polls(const Operation& operation) {
  const auto* running = std::get_if<state::Running>(&operation.state);
  if (running == nullptr) return false;
  const ScheduleRun& run = *running->run;
  return !run.local.empty() || run.next_ready < run.ready.size() || !run.schedule->before().empty();
}

// True if anything moved. Where every step is complete, so is the operation.
bool Engine::step_schedule(Operation& operation, std::uint32_t index) {
  ScheduleRun& run = *std::get<state::Running>(operation.state).run;
  bool moved = false;
  if (run.abandoned) return step_local(run);
  if (!user_is_ready(run)) return false;
  moved |= start_ready(run, index);
  if (step_local(run)) {
    moved = true;
    start_ready(run, index);
  }
  if (run.remaining > 0) return (run.cancelled && go_on_alone(operation, index)) || moved;
  const Status status = is_given_up(run) ? Status{} : std::move(run.status);
  operation.outcome.cancelled = is_given_up(run);
  operation.outcome.carrier = run.schedule->carrier();
  if (run.cancelled || !status.ok()) run.schedule->let_go_of_blocks_later();
  if (auto laid = status.ok() && !run.cancelled ? run.schedule->take_unpacked() : nullptr; laid != nullptr) {
    operation.outcome.bytes = laid->work.packed.size;  // until they are unpacked
    operation.laid = std::move(laid);
    operation.laid->of_call = true;
    if (parts_.trace != nullptr) operation.traced.call = parts_.trace->keep(run.schedule->call());
  }
  finish(operation, index, status);  // the run is gone from here on
  return true;
}

// A call that the user has cancelled, and that needs no more of the user's memory: it is complete, and what is left of it, words between
// ranks, another operation that nobody waits for.
bool Engine::go_on_alone(Operation& operation, std::uint32_t index) {
  if (operation.released) return false;
  ScheduleRun& run = *std::get<state::Running>(operation.state).run;
  const auto works = [&](const ScheduleRun::Local& local) {
    const Schedule::Step& step = run.schedule->at(local.step);
    return step.verb != Schedule::Verb::act || !run.schedule->action(step).lets_go();
  };
  if (std::any_of(run.local.begin(), run.local.end(), works)) return false;
  const std::vector<std::uint32_t> parts = parts_of(index);
  const auto reads_or_writes = [&](std::uint32_t i) {
    const Operation& part = operations_.at(i);
    return part.piece.size > Bytes{} && !run.schedule->at(part.step).regardless;
  };
  if (std::any_of(parts.begin(), parts.end(), reads_or_writes)) return false;
  const OperationId id = operations_.add();
  if (id.value == 0) return false;
  Operation& rest = operations_.at(id.index());
  for (const std::uint32_t i : parts) operations_.at(i).parent = id.index() + 1;
  const Status status = is_given_up(run) ? Status{} : run.status;
  rest.group = operation.group;
  rest.outcome = {Status{}, Rank{kAnySource}, kAnyTag, IST_CARRIER_NONE, Bytes{}, nullptr, false};
  rest.released = true;
  rest.state = std::move(std::get<state::Running>(operation.state));
  rest.traced = std::exchange(operation.traced, {});
  activate(rest, id.index());
  operation.outcome.cancelled = status.ok();
  finish(operation, index, status);
  return true;
}

// Starts what is ready, and what becomes so: a step may be complete at once. An action may give back what the user's queues
// held, for the steps that it wrote down: those wait for it.
bool Engine::start_ready(ScheduleRun& run, std::uint32_t parent) {
  bool moved = false;
  const auto may_start = [&run] { return run.next_ready < run.ready.size() && run.schedule->before().empty(); };
  while (!run.ended.empty() || may_start()) {
    moved = true;
    while (!run.ended.empty()) {
      const ScheduleRun::Ended ended = std::move(run.ended.back());
      run.ended.pop_back();
      end_step(run, ended);
    }
    while (may_start()) {
      if (!start_step(run, run.ready[run.next_ready], parent)) return moved;
      ++run.next_ready;
    }
  }
  return moved;
}

// The work that was pending on the user's buffers when the call was made.
bool Engine::user_is_ready(ScheduleRun& run) {
  std::erase_if(run.schedule->before(), [&](Ticket& ticket) {
    const auto ready = is_finished(ticket);
    if (!ready.ok()) give_up(run, ready.status(), parts_.rank);
    return !ready.ok() || *ready;
  });
  return run.schedule->before().empty();
}

// `about`: the rank that is the cause.
void Engine::give_up(ScheduleRun& run, const Status& why, Rank about) {
  if (!run.status.ok()) return;
  run.status = why;
  run.about = about;
}

std::vector<std::uint32_t> Engine::parts_of(std::uint32_t schedule) {
  std::vector<std::uint32_t> parts;
  for (std::uint32_t index = 0; index < operations_.size(); ++index)
    if (const Operation* const part = operations_.whole_at(index);
        part != nullptr && part->parent == schedule + 1 && !complete(*part))
      parts.push_back(index);
  return parts;
}

// Calls that will never end because another rank makes another one: what they wait for is given up, and so are they; also what one that
// gave up waits for since, as its later steps began.
void Engine::doubt_schedules() {
  for (std::uint32_t index = 0; index < operations_.size(); ++index) {
    Operation* const operation = operations_.whole_at(index);
    auto* const running = operation != nullptr ? std::get_if<state::Running>(&operation->state) : nullptr;
    if (running == nullptr) continue;
    ScheduleRun& run = *running->run;
    Status vain = run.schedule->doubt(false);
    std::vector<std::uint32_t> parts;
    if (!vain.ok()) {
      parts = parts_of(index);
      // While it tells others what all must hear, whatever else becomes of the call.
      const auto agrees = [&](std::uint32_t part) { return run.schedule->at(operations_.at(part).step).regardless; };
      if (std::any_of(parts.begin(), parts.end(), agrees)) vain = run.schedule->doubt(true);
    }
    // A message may be on its way that says so itself.
    const auto now = std::chrono::steady_clock::now();
    if (vain.ok() || run.doubted == std::chrono::steady_clock::time_point{}) run.doubted = vain.ok() ? decltype(now){} : now;
    if (vain.ok() || now - run.doubted < kDoubtFor) continue;
    run.doubted = {};
    give_up(run, vain, parts_.rank);
    for (const std::uint32_t part : parts) {
      Operation& message = operations_.at(part);
      if (message.in<state::Posted>())
        matcher_.withdraw(operations_.id_of(part).wire());
      else if (!message.sends || !take_back(message, part))
        continue;
      if (message.in<state::Announced>())
        peer(message.peer).note_given_up(message.envelope.sequence, {run.status.code(), run.about});
      finish(message, part, vain);
    }
  }
}

void Engine::complete_step(ScheduleRun& run, Schedule::StepId step) {
  --run.remaining;
  for (const Schedule::StepId follower : run.schedule->followers(step))
    if (--run.schedule->at(follower).unmet == 0) run.ready.push_back(follower);
}

// A message of a step was sent or received, or failed.
void Engine::end_step(ScheduleRun& run, const ScheduleRun::Ended& ended) {
  const Schedule::Step& step = run.schedule->at(ended.step);
  const bool receives = step.verb == Schedule::Verb::receive;
  const bool is_short = run.status.ok() && receives && ended.status.ok() && ended.bytes != step.to.size;
  if (step.regardless && receives && (is_short || ended.status.code() == IST_ERR_TRUNCATE)) {
    give_up(run, unanswered(step.peer), parts_.rank);
  } else if (!ended.status.ok()) {
    const bool left = ended.status.code() == IST_ERR_PEER_LEFT;
    give_up(run, ended.status, ended.about.value_or(left ? step.peer : parts_.rank));
  } else if (is_short) {
    give_up(run, uneven(step.peer, ended.bytes, step.to.size), parts_.rank);
  }
  complete_step(run, ended.step);
}

// What all tell each other before they choose who carries a call is of one size, which no user gave.
Status Engine::unanswered(Rank from) const {
  return {IST_ERR_TRUNCATE,
          parts_.names[static_cast<std::size_t>(from.value)] +
              " did not answer what this rank first asks all ranks of such a call; all ranks must give the "
              "same counts and types, or one of them makes another call"};
}

Status Engine::uneven(Rank from, Bytes came, Bytes expected) const {
  return {IST_ERR_TRUNCATE, parts_.names[static_cast<std::size_t>(from.value)] + " gave " + std::to_string(came.value) +
                                " bytes where this rank expects " + std::to_string(expected.value) +
                                "; all ranks must give the same counts and types, or one of them makes another call"};
}

Result<OperationId> Engine::start_giving_up(Rank dest, std::int32_t tag, const Scope& scope, const GivenUp& why,
                                            bool* done) {
  IST_TRY(check_peer(dest));
  const Piece nothing = host_piece(nullptr, Bytes{});
  return send_ready(nothing, Ticket{}, {dest, tag, scope, carrier_of(nothing, peer(dest), false), false, &why}, done);
}

// What has failed still tells and hears everybody, so that nobody waits for this rank: its messages say that it gave up, and
// what comes is forgotten.
// False: it has not begun, as the host's memory has run out. The call has failed; what is left of it tells the others so once there is some again.
bool Engine::start_step(ScheduleRun& run, Schedule::StepId id, std::uint32_t parent) try {
  if (run.local.size() == run.local.capacity()) run.local.reserve(2 * run.local.size() + 2);
  begin_step(run, id, parent);
  return true;
} catch (const std::bad_alloc&) {
  give_up(run, no_memory(), parts_.rank);
  if (run.schedule->at(id).verb != Schedule::Verb::act) return false;
  complete_step(run, id);  // nobody knows how far an action came
  return true;
}

void Engine::begin_step(ScheduleRun& run, Schedule::StepId id, std::uint32_t parent) {
  const Schedule::Step& step = run.schedule->at(id);
  if (run.schedule->called_off()) return complete_step(run, id);
  switch (step.verb) {
    case Schedule::Verb::send:
    case Schedule::Verb::receive:
      return start_message(run, id, parent);
    case Schedule::Verb::combine:
    case Schedule::Verb::copy:
      if (!run.status.ok() || step.to.size == Bytes{}) return complete_step(run, id);
      return start_local(run, id);
    case Schedule::Verb::act:
      if (!step_action(run, id)) run.local.push_back({id, 0, Ticket{}, std::nullopt});
  }
}

void Engine::start_message(ScheduleRun& run, Schedule::StepId id, std::uint32_t parent) {
  const Schedule::Step& step = run.schedule->at(id);
  const Scope& scope = run.schedule->scope();
  const bool gave_up = !run.status.ok() && !step.regardless;
  bool done = false;
  Result<OperationId> started = OperationId{};
  if (step.verb == Schedule::Verb::receive) {
    started = receive_ready(gave_up ? host_piece(nullptr, Bytes{}) : step.to, Ticket{}, step.peer.value, step.tag, scope,
                            gave_up ? nullptr : folded(step.to, run.schedule->fold_of(step)));
  } else if (gave_up) {
    started = start_giving_up(step.peer, step.tag, scope, {run.status.code(), run.about}, &done);
  } else if (const Status reachable = check_peer(step.peer); !reachable.ok()) {
    started = reachable;
  } else {
    const bool shown = is_shown(step.from, peer(step.peer));
    started = send_ready(step.from, Ticket{},
                         {step.peer, step.tag, scope, carrier_of(step.from, peer(step.peer), shown), shown}, &done);
  }
  if (!started.ok() || done) return end_step(run, {id, started.status(), step.to.size, std::nullopt});
  Operation& operation = operations_.at(started->index());
  if (complete(operation)) {
    const Outcome outcome = take(*started);
    return end_step(run, {id, outcome.status, outcome.bytes, outcome.about});
  }
  operation.released = true;
  operation.parent = parent + 1;
  operation.step = id;
}

// An operation that a schedule started is complete.
void Engine::tell_parent(Operation& operation) {
  const std::uint32_t parent = operation.parent - 1;
  Operation& schedule = operations_.at(parent);
  auto& run = *std::get<state::Running>(schedule.state).run;
  run.ended.push_back({operation.step, operation.outcome.status, operation.outcome.bytes, operation.outcome.about});
  activate(schedule, parent);
}

void Engine::start_local(ScheduleRun& run, Schedule::StepId id) {
  const Schedule::Step& step = run.schedule->at(id);
  ScheduleRun::Local local{id, 0, Ticket{}, std::nullopt};
  if (on_host(step)) {
    if (!step_on_host(run, local)) run.local.push_back(std::move(local));
    return;
  }
  if (step.verb == Schedule::Verb::copy) {
    local.transfer.emplace(parts_.kinds, parts_.pool, step.to, step.from, Ticket{}, Ticket{});
  } else {
    const Combiner& combiner = run.schedule->combiner();
    auto ticket = parts_.kinds.find(step.to.kind)
                      ->arithmetic()
                      ->combine(combiner.reduction, combiner.type, step.to, step.from, Ticket{});
    if (!ticket.ok()) {
      give_up(run, ticket.status(), parts_.rank);
      return complete_step(run, id);
    }
    local.ticket = std::move(*ticket);
  }
  run.local.push_back(std::move(local));
}

// True if the step is complete.
bool Engine::step_on_host(ScheduleRun& run, ScheduleRun::Local& local) {
  const Schedule::Step& step = run.schedule->at(local.step);
  const std::uint64_t bytes = std::min(kAtOnce, step.to.size.value - local.done);
  std::byte* to = step.to.address() + local.done;
  const std::byte* from = step.from.address() + local.done;
  if (step.verb == Schedule::Verb::copy) {
    copy_across(to, from, bytes);
  } else {
    combine_on_host(run.schedule->combiner(), to, from, Bytes{bytes});
  }
  local.done += bytes;
  if (local.done < step.to.size.value) return false;
  complete_step(run, local.step);
  return true;
}

// True if the step is complete.
bool Engine::step_on_device(ScheduleRun& run, ScheduleRun::Local& local) {
  const auto finished = local.transfer ? local.transfer->step() : is_finished(local.ticket);
  if (finished.ok() && !*finished) return false;
  if (!finished.ok()) give_up(run, finished.status(), parts_.rank);
  complete_step(run, local.step);
  return true;
}

// True if the step is complete; what it wrote down then belongs to the run.
bool Engine::step_action(ScheduleRun& run, Schedule::StepId id) {
  Schedule& schedule = *run.schedule;
  Action::Moment now{*this, schedule, run.status, run.call, run.abandoned};
  const auto over = schedule.action(schedule.at(id)).step(now);
  if (!schedule.failure().ok()) give_up(run, schedule.failure(), parts_.rank);
  if (!over.ok()) give_up(run, over.status(), parts_.rank);
  run.take_in();
  if (over.ok() && !*over) return false;
  complete_step(run, id);
  return true;
}

bool Engine::step_local(ScheduleRun& run) {
  bool moved = false;
  for (std::size_t i = 0; i < run.local.size();) {
    ScheduleRun::Local& local = run.local[i];
    const Schedule::Step& step = run.schedule->at(local.step);
    const bool acts = step.verb == Schedule::Verb::act;
    const bool host = !acts && on_host(step);
    moved |= host;
    if (!(acts ? step_action(run, local.step) : host ? step_on_host(run, local) : step_on_device(run, local))) {
      ++i;
      continue;
    }
    moved = true;
    std::swap(local, run.local.back());
    run.local.pop_back();
  }
  return moved;
}

}  // namespace ist
