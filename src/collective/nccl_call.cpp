#include "collective/nccl_call.hpp"

#include <algorithm>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/log.hpp"

namespace ist {

namespace {

constexpr std::chrono::microseconds kLookAtDevices{100};

}  // namespace

class NcclCall::Stepper : public Action {
 public:
  Stepper(std::shared_ptr<NcclCall> call, Step next) : call_(std::move(call)), step_(next) {}
  Result<bool> step(Moment& now) override { return (*call_.*step_)(now); }

 private:
  std::shared_ptr<NcclCall> call_;
  Step step_;
};

NcclCall::NcclCall(std::shared_ptr<NcclTeam> team, const NcclWork& work, const Combiner& combiner, ByMessages by_messages)
    : team_(std::move(team)),
      work_(work),
      combiner_(combiner),
      by_messages_(std::move(by_messages)),
      votes_(static_cast<std::size_t>(team_->twin().size())),
      made_(votes_.size()) {}

Schedule::StepId NcclCall::act(Schedule& schedule, Step step, std::initializer_list<Schedule::StepId> needs) {
  return schedule.act(std::make_unique<Stepper>(shared_from_this(), step), needs);
}

bool NcclCall::buffers_fit(int& device) const {
  Guests* guests = team_->nccl().kinds().find(KindId::cuda)->guests();
  for (const Piece* piece : {&work_.send, &work_.recv}) {
    if (piece->size == Bytes{}) continue;  // a reduction's result, on a rank that gets none
    if (piece->kind != KindId::cuda || (device >= 0 && piece->device != device)) return false;
    device = piece->device;
    if (guests == nullptr || !guests->admits(*piece).ok()) return false;
  }
  return device >= 0;
}

// Does the result tell in which order NCCL combines? Then whether it does must follow from what the program does alone. Two
// ranks have one order; of minima and maxima NaN tells, with any number of ranks.
bool NcclCall::order_shows() const {
  const bool floats = work_.type == nccl::Type::float16 || work_.type == nccl::Type::bfloat16 ||
                      work_.type == nccl::Type::float32 || work_.type == nccl::Type::float64;
  const bool either = work_.operation == nccl::Operation::sum || work_.operation == nccl::Operation::product;
  return floats && team_->twin().machine().fixed_order != 0 && (votes_.size() > 2 || !either);
}

// Where the program does not know yet that NCCL is there, whether it is must make no difference: the engines of other ranks decide when it is.
bool NcclCall::may_say_yes(Vote& vote, bool& fresh) {
  Guests& guests = *team_->nccl().kinds().find(KindId::cuda)->guests();
  const bool streams_used = guests.streams_used();
  const std::lock_guard lock(team_->twin().engine().lock());
  if (!team_->broken().ok()) return false;
  fresh = team_->state() == NcclTeam::State::fresh;
  NcclKnown& known = team_->nccl().known();
  known.hear(team_->twin().engine());
  settled_ = team_->learn(streams_used);
  // Beside the making of another communicator, a kernel of this call's would be in its way.
  if (known.others_open(*team_->known(), settled_)) return false;
  if (settled_) return true;
  if (team_->nccl().any_let_go()) return false;
  settles_ = waits_ && !streams_used;
  vote.opens = order_shows() && !waits_ ? 1 : 0;
  return !streams_used;
}

// No means no more than that: this call goes by messages.
NcclCall::Vote NcclCall::cast(const Status& so_far) {
  Vote vote;
  vote.present = 1;
  int device = -1;
  bool fresh = false;
  if (!so_far.ok() || !work_.usable || !buffers_fit(device) || !may_say_yes(vote, fresh)) return vote;
  if (fresh && team_->twin().rank() == 0) {
    const auto id = team_->make_id();
    if (!id.ok()) {
      log::once(log::Level::warning, id.status().text() + "; collective calls go by messages");
      return vote;
    }
    vote.id = *id;
  }
  vote.identity = team_->nccl().identity(device);
  vote.yes = 1;
  return vote;
}

void NcclCall::write(Plan& plan) {
  Schedule& schedule = plan.schedule();
  after_ = std::move(schedule.before());
  schedule.before().clear();
  tag_ = schedule.tag(kTrouble);
  waits_ = plan.waits();
  votes_[static_cast<std::size_t>(plan.rank())] = cast(schedule.failure());
  schedule.tell_of_start([this, by = std::this_thread::get_id()](OperationId call) { enter(call, by); });
  const auto decided = act(schedule, &NcclCall::decide, {});
  for (int distance = 1; distance < plan.size(); ++distance) {
    const int from = (plan.rank() - distance + plan.size()) % plan.size();
    const int to = (plan.rank() + distance) % plan.size();
    const auto heard = plan.receive(place_of(votes_[static_cast<std::size_t>(from)]), from, kVote, {});
    const auto told = plan.send(place_of(votes_[static_cast<std::size_t>(plan.rank())]), to, kVote, {});
    schedule.need(decided, schedule.regardless(heard));
    schedule.need(decided, schedule.regardless(told));
  }
}

NcclCall::~NcclCall() { leave(); }

// In the order of the calls, whatever else comes before their steps.
void NcclCall::enter(OperationId call, std::thread::id by) {
  under_way_ = true;
  team_->enter(this);
  if (votes_[static_cast<std::size_t>(team_->twin().rank())].yes != 0)
    number_ = team_->nccl().offered(team_->twin().engine(), {team_->known(), call, by, settled_, waits_});
}

void NcclCall::leave() {
  if (std::exchange(under_way_, false)) team_->forget(this);
}

bool NcclCall::agreed() const {
  std::set<std::uint64_t> identities;
  for (const Vote& vote : votes_) {
    if (vote.yes == 0) return false;
    identities.insert(vote.identity);
  }
  return identities.size() == votes_.size();
}

// Of the ranks' GPUs.
std::vector<std::uint64_t> NcclCall::identities() const {
  std::vector<std::uint64_t> all;
  for (const Vote& vote : votes_) all.push_back(vote.identity);
  return all;
}

// By what every rank has heard alike, so that all decide alike.
Result<bool> NcclCall::decide(Action::Moment& now) {
  if (now.abandoned) {
    leave();
    return true;
  }
  if (!team_->is_turn(this)) return false;
  if (Status voted = all_voted(votes_); !voted.ok()) {
    leave();
    return voted;
  }
  const NcclTeam::State state = team_->state();
  const bool same = state != NcclTeam::State::open || identities() == team_->identities();
  if (!agreed() || state == NcclTeam::State::off || !same) return go_by_messages(now);
  if (state == NcclTeam::State::fresh) {
    open(now);
  } else if (any_only_opens()) {
    return go_by_messages(now);
  } else {
    act(now.schedule, &NcclCall::run, {});
  }
  return true;
}

bool NcclCall::any_only_opens() const {
  return std::any_of(votes_.begin(), votes_.end(), [](const Vote& vote) { return vote.opens != 0; });
}

bool NcclCall::go_by_messages(Action::Moment& now) {
  leave();
  // One that has failed, or was cancelled, touches nothing of the user's.
  if (now.status.ok())
    for (Ticket& ticket : after_) now.schedule.wait_for(std::move(ticket));
  after_.clear();
  Plan late{team_->twin(), now.schedule, combiner_};
  by_messages_(late);
  return true;
}

// The first time: every rank makes NCCL's communicator, and tells whether it could. One that could not would keep the others
// waiting inside of NCCL, so who hears of that gives up too.
void NcclCall::open(Action::Moment& now) {
  team_->known()->opener = number_;
  quiet_by_ = team_->nccl().deadline();
  Plan late{team_->twin(), now.schedule, combiner_};
  const auto begun = act(now.schedule, &NcclCall::begin, {});
  const auto mine = act(now.schedule, &NcclCall::wait_for_opening, {});
  Made& said = made_[static_cast<std::size_t>(late.rank())];
  for (int distance = 1; distance < late.size(); ++distance) {
    const int from = (late.rank() - distance + late.size()) % late.size();
    const int to = (late.rank() + distance) % late.size();
    const Bytes size{sizeof said};
    const auto heard = late.receive(host_piece(&made_[static_cast<std::size_t>(from)], size), from, kMade, {});
    const auto told = late.send(host_piece(&said, size), to, kMade, {mine});
    now.schedule.need(begun, now.schedule.regardless(heard));
    now.schedule.need(begun, now.schedule.regardless(told));
  }
}

// May NCCL set itself up now? It waits for what other threads of this process have given it to do for other communicators: that may wait for
// other ranks, and must not be held up.
Result<bool> NcclCall::may_begin() {
  Guests& guests = *team_->nccl().kinds().find(KindId::cuda)->guests();
  if (guests.streams_used()) return true;  // which begin_opening() says
  const auto now = std::chrono::steady_clock::now();
  if (now < next_look_) return false;
  next_look_ = now + kLookAtDevices;
  if (guests.quiet()) return true;
  if (now < quiet_by_) return false;
  return Status{
      IST_ERR_PENDING,
      "NCCL waits for devices when it sets itself up, and collective calls that it carries for other communicators "
      "have been under way on rank " +
          std::to_string(team_->twin().rank()) + " for as long as ISTHMUS_BOOT_TIMEOUT"};
}

Status NcclCall::begin_opening() {
  setup_ = team_->nccl().kinds().find(KindId::cuda)->guests()->begin_setup();
  if (setup_ == nullptr)
    return {IST_ERR_PENDING, "NCCL waits for devices when it sets itself up, and streams of rank " +
                                 std::to_string(team_->twin().rank()) + " may wait for other ranks by now"};
  int device = -1;
  buffers_fit(device);
  return team_->begin_opening(device, votes_[0].id, identities(), setup_);
}

// It has begun, and this rank has it, or never will.
Result<bool> NcclCall::opened(const Status& so_far) {
  if (!begun_) {
    IST_TRY(so_far);
    auto may = may_begin();
    if (!may.ok() || !*may) return may;
    IST_TRY(begin_opening());
    begun_ = true;
  }
  return team_->opened();
}

Result<bool> NcclCall::wait_for_opening(Action::Moment& now) {
  const Status gone{IST_ERR_PEER_LEFT, "this rank destroyed its world"};
  auto mine = failure_.ok() ? opened(now.abandoned ? gone : now.status) : Result<bool>{failure_};
  if (mine.ok() && !*mine) {
    const auto failed = std::find(made_.begin(), made_.end(), Made::no);
    if (failed != made_.end())
      mine = Status{IST_ERR_DEVICE, "rank " + std::to_string(failed - made_.begin()) + " of \"" + team_->twin().name() +
                                        "\" could not make a communicator of NCCL's"};
    else if (now.abandoned)
      mine = gone;
    else if (!now.status.ok())
      mine = now.status;
    else
      return false;
  }
  setup_.reset();
  made_[static_cast<std::size_t>(team_->twin().rank())] = mine.ok() ? Made::yes : Made::no;
  if (!mine.ok()) {
    failure_ = mine.status();
    team_->break_off(failure_);
  }
  return !now.abandoned || team_->closed();
}

Result<bool> NcclCall::begin(Action::Moment& now) {
  const bool everywhere = std::all_of(made_.begin(), made_.end(), [](Made made) { return made == Made::yes; });
  team_->end_opening(everywhere);
  if (everywhere && any_only_opens()) return go_by_messages(now);
  if (everywhere) {
    act(now.schedule, &NcclCall::run, {});
    return true;
  }
  const Status why =
      failure_.ok() ? Status{IST_ERR_DEVICE, "another rank could not make its communicator of NCCL's"} : failure_;
  team_->break_off(why);
  log::once(log::Level::warning, why.text() + "; collective calls on \"" + team_->twin().name() + "\" go by messages");
  return go_by_messages(now);
}

void NcclCall::tell_others(const Status& why) {
  const Communicator& comm = team_->twin();
  Engine& engine = comm.engine();
  for (int rank = 0; rank < comm.size(); ++rank) {
    if (rank == comm.rank()) continue;
    bool done = false;
    const auto told = engine.start_giving_up(comm.to_world(rank), tag_, comm.internal(), {why.code(), engine.rank()}, &done);
    if (told.ok() && !done) engine.forget(*told);
  }
}

// Why this call cannot end well any more.
Status NcclCall::look_around(Action::Moment& now) const {
  if (now.abandoned) return {IST_ERR_PEER_LEFT, "this rank destroyed its world"};
  if (const Rank dead = now.engine.parts().board.first_dead(); dead > kNobody) return now.engine.gone(dead);
  const Scope& scope = team_->twin().internal();
  if (now.engine.probe(kAnySource, tag_, scope) == nullptr) return {};
  const auto id = now.engine.start_receive(host_piece(nullptr, Bytes{}), kAnySource, tag_, scope);
  return id.ok() ? now.engine.take(*id).status : id.status();
}

void NcclCall::fail(const Status& why) {
  failure_ = why;
  stage_ = Stage::ending;
  team_->break_off(why);
}

Result<bool> NcclCall::run(Action::Moment& now) {
  if (stage_ != Stage::ending) {
    // Whoever told has told everybody; of a death all ranks know.
    if (const Status heard = look_around(now); !heard.ok()) fail(heard);
  }
  if (stage_ != Stage::ending) {
    const Status& known = now.status.ok() ? team_->broken() : now.status;
    auto over = known.ok() ? move_on(now) : Result<bool>{known};
    if (over.ok()) return over;
    tell_others(over.status());
    fail(over.status());
  }
  if (!team_->closed()) return false;
  if (!ticket_.empty()) {
    const auto finished = ticket_.kind()->finished(ticket_);
    if (finished.ok() && !*finished) return false;
  }
  leave();
  return failure_;
}

Result<bool> NcclCall::move_on(Action::Moment& now) {
  if (stage_ == Stage::ready) {
    IST_TRY(team_->start(work_, after_));
    stage_ = Stage::starting;
  }
  auto started = team_->started();
  if (!started.ok()) return started;
  if (stage_ == Stage::starting) {
    if (!*started) return false;
    auto ticket = team_->mark();
    if (!ticket.ok()) return ticket.status();
    ticket_ = std::move(*ticket);
    after_.clear();
    stage_ = Stage::running;
    team_->end_turn(this);
    team_->twin().note(Algorithm::nccl);
    now.schedule.set_carrier(IST_CARRIER_NCCL);
  }
  auto finished = ticket_.kind()->finished(ticket_);
  if (!finished.ok() || !*finished) return finished;
  now.engine.nccl_traffic().sent_by(Way::nccl).add(work_.send.size);
  now.engine.nccl_traffic().received_by(Way::nccl).add(work_.recv.size);
  if (settles_) team_->settle();
  leave();
  return true;
}

}  // namespace ist
