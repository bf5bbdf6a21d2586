#include "request/engine.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "protocol/copy_beliefs.hpp"
#include "request/engine_at_once.hpp"
#include "request/mail.hpp"
#include "request/type_check.hpp"
#include "request/wait.hpp"

namespace ist {
namespace {

// Whether calls wait in vain is asked after so many looks that moved nothing: of those that spin they take a millisecond.
constexpr unsigned kDoubtEvery = 4096;
constexpr unsigned kDoubtEveryAsleep = 64;
// Arrivals of one path taken at once: bounded, so that a flood does not keep this side's own operations from moving.
constexpr int kMostAtOnce = 64;
// And while a ring is busy, which moves little then, too: of a window the first bytes move before all is announced, or asked for, which takes either side 80 to
// 170 ns each.
constexpr int kMostBesideRings = 16;
// How long linger() looks: so many times so often. Between the batches it asks whether another thread wants the lock.
constexpr int kLingers = 8;
constexpr int kLooksAtOnce = 8;
// At most as many messages of one rank may lie there: what a pair's slots have, and that rank may have cells.
constexpr std::uint64_t kMostOfOneRank = kMostPairSlots * PairSlot::kShares + kMostCells;

// Below this many bytes; none to this process itself, where a send also wakes threads.
Bytes below_at_once(const Link& link, Bytes slots_up_to, const MachineProfile& profile) {
  if (link.outgoing_slots == nullptr) return {};
  const auto carrier = [&](Bytes bytes) {
    return choose({bytes, KindId::host, link.same_process(), link.slot_limit, link.cell_limit}, profile);
  };
  const Bytes longest = smaller(link.slot_limit, slots_up_to);
  const bool slots = carrier(Bytes{}) == IST_CARRIER_SLOT && carrier(longest) == IST_CARRIER_SLOT;
  return slots && !link.same_process() ? longest + Bytes{1} : Bytes{};
}

// Whether the peer may read this process is asked the other way round, which a system forbids both or none.
void limit_slots(PeerState& to, Bytes up_to, const EngineParts& parts, bool watched) {
  Link* const link = to.link;
  if (link == nullptr) return;
  if (up_to < link->slot_limit && link->reads_peer()) to.slots_up_to = up_to;
  if (!watched) to.at_once_below = below_at_once(*link, to.slots_up_to, parts.machine);
}

}  // namespace

Engine::Engine(Parts parts)
    : parts_(std::move(parts)),
      heap_(parts_.kinds.host().shared_heap()),
      copies_(copy_choice_of(parts_.machine)),
      lock_(parts_.settings.single_threaded()),
      scratch_(parts_.kinds),
      order_(static_cast<int>(parts_.names.size())),
      peers_(parts_.names.size()),
      types_(parts_.settings.check ? std::make_unique<TypeCheck>(parts_.names.size()) : nullptr),
      watched_(parts_.trace != nullptr || types_ != nullptr) {
  for (const auto& path : parts_.paths)
    if (path->can_sleep()) sleeping_path_ = path.get();
  if (sleeping_path_ != nullptr || (parts_.processors == 1 && parts_.settings.wait != "spin"))
    waiters_.sleep_for_threads(parts_.kinds.find(KindId::opencl), sleeping_path_);
  // Ranks that take turns on the processors go on sooner with their bytes in a slot, whatever was measured where each had its own.
  const Bytes slots = sleeping_path_ == nullptr ? slots_up_to(parts_.machine, parts_.settings) : kNoLimit;
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    peers_[r].rank = Rank{static_cast<std::int32_t>(r)};
    for (const auto& path : parts_.paths) {
      if (peers_[r].link != nullptr) break;
      peers_[r].link = path->link(peers_[r].rank);
      peers_[r].path = path.get();
    }
    Link* const link = peers_[r].link;
    if (link != nullptr && link->invites != nullptr) peers_[r].inviter.emplace(link->invites);
    if (link != nullptr && link->invited != nullptr) peers_[r].guest.emplace(link->invited);
    if (link != nullptr) peers_[r].slot_limit = link->slot_limit, peers_[r].slot_limit_again = link->slot_limit_again;
    limit_slots(peers_[r], slots, parts_, watched_);
    reaches_all_ &= link != nullptr;
  }
  for (const auto& kind : parts_.kinds.all()) {
    if (kind->lending() == nullptr) continue;
    kind->lending()->set_limit(parts_.settings.mapped_limit);
    kind->lending()->set_bounce_limit(parts_.settings.bounce_limit);
  }
  if (parts_.settings.single_copy != "never") shown_above_ = parts_.settings.eager_limit;
  mail_ = Mail::make(*this);
}
Engine::~Engine() = default;

void Engine::end_trial(Rank with, double slots_up_to) {
  copies_ = copy_choice_of(parts_.machine);
  peer(with).traffic = {};
  if (!(slots_up_to > 0)) return;
  parts_.machine.slots_up_to = slots_up_to;
  for (PeerState& to : peers_) limit_slots(to, ist::slots_up_to(parts_.machine, parts_.settings), parts_, watched_);
}

Status Engine::check_peer(Rank rank) const {
  if (!world_failed_.ok()) return world_failed_;
  if (const Rank dead = parts_.board.first_dead(); dead.value >= 0) return gone(dead);
  if (parts_.board.fate(rank) != AbortBoard::Fate::present) return gone(rank);
  if (peers_[static_cast<std::size_t>(rank.value)].link == nullptr)
    return {IST_ERR_UNREACHABLE, "no path connects " + parts_.names[static_cast<std::size_t>(parts_.rank.value)] + " and " +
                                     parts_.names[static_cast<std::size_t>(rank.value)] +
                                     "; ranks on different hosts cannot exchange messages in this version"};
  return {};
}

void Engine::use_devices(const Piece& piece) {
  const std::uint32_t bit = 1U << static_cast<unsigned>(piece.kind);
  if ((locked_kinds_ & bit) != 0) return;
  locked_kinds_ |= bit;
  for (const auto& path : parts_.paths) {
    if (const Status locked = path->lock_memory(); !locked.ok())
      log::warning("shared cells stay pageable, device copies will be slower: " + locked.text());
  }
  if (mail_ && piece.kind == KindId::cuda) mail_->offer();
}

Result<Ticket> Engine::pending_work(const Piece& piece, bool asked_later) {
  if (piece.kind == KindId::host) return Ticket{};
  use_devices(piece);
  return asked_later ? parts_.kinds.in_order(piece) : parts_.kinds.ready(piece);
}

// Beside what has begun, or is over: where memory runs out for what comes, a later look comes to it.
void Engine::look_around() try {
  if (parts_.board.changes() == board_seen_) take_arrivals();
} catch (const std::bad_alloc&) {
  return;
}

Status Engine::too_many() { return {IST_ERR_MEMORY, "more than 1048576 operations are outstanding; wait for some of them"}; }

void Engine::activate(Operation& operation, std::uint32_t index) {
  if (operation.active) return;
  operation.active = true;
  active_.push_back(index);
}

void Engine::finish(Operation& operation, std::uint32_t index, const Status& status) {
  // A truncation found at the match stays, unless something worse happened since.
  status.ok() ? count(operation) : operation.outcome.fail(status);
  leave_blocks(operation);
  if (operation.laid != nullptr && begin_unpacking(operation, index)) return;
  if (!operation.still_read || !must_stay(operation, status)) end(operation, index);
}

// Before the state says that it is over.
std::optional<Way> Engine::way_taken(const Operation& operation) const {
  const auto way = way_of(operation.outcome.carrier);
  const auto* putting = std::get_if<state::Putting>(&operation.state);
  // A block that was lent may not have been used: the ring carries what comes before it is open.
  if (way == Way::device && (operation.in<state::Bouncing>() || (putting != nullptr && putting->by_block)))
    return Way::block;
  if (way == Way::direct && !peers_[static_cast<std::size_t>(operation.peer.value)].link->same_process())
    return Way::single_copy;
  return way;
}

// A message that has not gone the short way, where it is counted at once.
void Engine::count(const Operation& operation) {
  const Outcome& outcome = operation.outcome;
  if (operation.sends && (operation.envelope.flags & kEnvelopeGaveUp) != 0) return;
  const auto way = way_taken(operation);
  // A collective call as a whole; and what its sender gave up is no message. What is too long or of other types is one.
  const Code code = outcome.status.code();
  if (!way || *way == Way::nccl || (code != IST_OK && code != IST_ERR_TRUNCATE && code != IST_ERR_ARGUMENT)) return;
  PeerState& with = peer(operation.peer);
  (operation.sends ? with.traffic.sent_by(*way) : with.traffic.received_by(*way)).add(outcome.bytes);
}

void Engine::end(Operation& operation, std::uint32_t index) {
  if (watched_) end_watch(operation);
  operation.state = state::Done{};
  if (operation.offered != 0) end_offer(operation);
  if (operation.laid != nullptr) let_go_of_block(operation);
  wake_sleeper();
  if (operation.parent != 0) tell_parent(operation);
  // The callers still look at the operation: step_active releases it.
  if (operation.released) activate(operation, index);
}

Result<OperationId> Engine::start_complete(Outcome outcome, bool message) {
  const OperationId id = operations_.add();
  if (id.value == 0) return too_many();
  Operation& operation = operations_.at(id.index());
  operation.outcome = std::move(outcome);
  operation.message = message;
  operation.state = state::Done{};
  return id;
}

Outcome Engine::take(OperationId id) {
  Operation& operation = *operations_.find(id);
  Outcome outcome = std::move(operation.outcome);
  outcome.group = std::move(operation.group);
  let_go(id);
  return outcome;
}

// Another thread may have taken what is named here since it was looked up: then there is nothing left to do.
void Engine::forget(OperationId id) {
  Operation* const found = operations_.find(id);
  if (found == nullptr) return;
  Operation& operation = *found;
  if (auto* persistent = std::get_if<state::Persistent>(&operation.state)) {
    if (persistent->running.value != 0) forget(persistent->running);
    operations_.release(id.index());
  } else if (complete(operation)) {
    static_cast<void>(take(id));
  } else {
    operation.released = true;
  }
}

bool Engine::progress(Reach reach) {
  if (parts_.board.changes() != board_seen_) look_at_board();
  bool moved = false;
  const auto move_on = [&]() __attribute__((always_inline)) {
    if (posting_ > 0)
      for (PeerState& to : peers_) moved |= drain_outbox(to);
    if (!active_.empty()) moved |= step_active(reach);
    if (!unused_cells_.empty()) moved |= step_unused_cells();
    if (!left_copies_.empty()) step_left_copies();
    if (streams_busy_) moved |= step_streams(reach);
    if (!still_packed_.empty()) let_go_of_blocks();
  };
  try {
    moved = take_arrivals();
  } catch (...) {
    // A message for which there is no memory stays where it is, and what is under way moves on: its end may free some.
    move_on();
    throw;
  }
  move_on();
  if (moved) {
    fruitless_ = 0;
  } else if (++fruitless_ % (sleeping_path_ != nullptr ? kDoubtEveryAsleep : kDoubtEvery) == 0 && !operations_.all_plain()) {
    doubt_schedules();
  }
  return moved;
}

// The caller's own operation has begun, and is his: what memory runs out for is another one's, which stays where it is until somebody looks again.
void Engine::move_on_now_and_then() {
  if (looks_of_starts_.due()) look_for_nobody(*this, Reach::brief);
}

bool Engine::linger() {
  // Where ranks share processors, the peer may need this very one.
  if (sleeping_path_ != nullptr) return false;
  for (int batch = 0; batch < kLingers && !must_poll() && !lock_.contended(); ++batch)
    for (const auto& path : parts_.paths)
      if (!path->idle && path->arrival_within(kLooksAtOnce)) return true;
  return false;
}

bool Engine::take_arrivals(bool all) {
  bool moved = false;
  more_arrivals_ = false;
  if (early_of_) [[unlikely]]
    take_early(*early_of_);
  for (const auto& path : parts_.paths) {
    if (path->idle) continue;
    for (int i = 0;; ++i) {
      const auto arrival = path->next();
      if (!arrival) break;
      on_arrival(*path, *arrival);
      moved = true;
      const bool enough = !all && awaited_ != nullptr && awaited_->received;  // the rest can wait, its caller need not
      if (!all && awaited_ == nullptr && !streams_busy_ && !arrival->in_cell) i += take_plain_behind(*path, arrival->source);
      if (!enough && i < (streams_busy_ && !all ? kMostBesideRings : kMostAtOnce) - 1) continue;
      more_arrivals_ = !enough;  // some may be left, so that rings move little
      path->arrival_within(0);   // it stays shown no longer
      if (enough) return true;
      break;
    }
  }
  return moved;
}

// As many as the peers' slots and cells can hold: whatever was published before now is among them, also while others go on
// publishing. Where one of those stands between its two steps, what ranks that have left published may lie behind. It goes on, or
// dies, and then nobody is waited for any more.
bool Engine::take_last_arrivals() {
  for (const auto& path : parts_.paths) path->mark_arrivals();
  const std::uint64_t most = kMostOfOneRank * peers_.size() / kMostAtOnce + 1;
  for (std::uint64_t i = 0; i < most && take_arrivals(true); ++i) {
  }
  const bool hidden =
      std::any_of(parts_.paths.begin(), parts_.paths.end(), [](const auto& path) { return path->has_gap(); });
  if (!hidden || parts_.board.first_dead() != kNobody) return true;
  board_seen_ = parts_.board.changes() - 1;
  return false;
}

void Engine::wake_sleeper() {
  if (has_sleeper()) sleeping_path_->wake();
}

// Else it is complete, or something that comes moves it on.
bool Engine::needs_steps(const Operation& operation) {
  return operation.in<state::FillingCell>() || operation.in<state::Failing>() || operation.in<state::Cleared>() ||
         operation.in<state::Putting>() || operation.in<state::Fetching>() || operation.in<state::EmptyingCell>() ||
         operation.in<state::Delivering>() || operation.in<state::Unpacking>() || operation.in<state::Bouncing>() ||
         operation.in<state::Readying>() || operation.in<state::Reading>() || operation.in<state::Met>() ||
         operation.in_mail() || polls(operation);
}

bool Engine::step_active(Reach reach) {
  bool moved = false;
  std::size_t opencl = 0;
  for (std::size_t i = 0; i < active_.size() && !(moved && reach == Reach::brief);) {
    const std::uint32_t index = active_[i];
    Operation& operation = operations_.at(index);
    if (operation.in<state::Running>()) {
      moved |= step_schedule(operation, index);
    } else if (!complete(operation)) {
      moved |= operation.sends ? step_send(operation, index) : step_receive(operation, index);
    }
    if (needs_steps(operation)) {
      opencl += operation.piece.kind == KindId::opencl ? 1 : 0;
      ++i;
      continue;
    }
    operation.active = false;
    active_[i] = active_.back();
    active_.pop_back();
    if (complete(operation) && operation.released) operations_.release(index);
  }
  waiters_.on_threads(opencl > 0,
                      opencl > 0 && opencl == active_.size() && unused_cells_.empty() && posting_ == 0 && !streams_busy_);
  return moved;
}

bool Engine::step_streams(Reach reach) {
  const int most = more_arrivals_ || reach == Reach::brief ? kFewPerStep : kMostPerStep;
  bool moved = false;
  streams_busy_ = false;
  try {
    for (PeerState& other : peers_) {
      if (other.sender && !other.sender->idle()) moved |= other.sender->step(ended_, most);
      if (other.receiver && !other.receiver->idle()) moved |= step_receiver(other, most);
      streams_busy_ |= (other.sender && !other.sender->idle()) || (other.receiver && !other.receiver->idle());
    }
  } catch (...) {
    streams_busy_ = true;  // memory ran out: the next look goes on here, and tells what has ended
    throw;
  }
  finish_ended();
  return moved;
}

// Each is told once. Where memory ran out before these were told, the operations may have ended for another reason since.
void Engine::finish_ended() {
  for (const Finished& end : ended_) {
    Operation* operation = operations_.find_wire(end.operation);
    if (operation == nullptr || (!operation->in<state::Streaming>() && !operation->in<state::Bouncing>())) continue;
    if (operation->timed && !operation->sends && end.status.ok())
      copies_.took(CopyChoice::Way::ring, operation->outcome.bytes, end.seconds, end.both);
    if (end.placed && operation->laid != nullptr) operation->laid->gathered = true;
    finish(*operation, end.operation & 0xfffff, end.status);
  }
  ended_.clear();
}

void Engine::abandon_all(const Status& why) {
  if (parts_.trace != nullptr) trace_unfinished();
  for (std::uint32_t r = 0; r < peers_.size(); ++r) {
    if (peers_[r].sender) peers_[r].sender->abandon(why, ended_);
    if (peers_[r].receiver) peers_[r].receiver->abandon(why, ended_);
  }
  ended_.clear();
  ended_puts_ = true;
  for (PeerState& from : peers_)
    if (from.invited) retire(from);
  for (std::uint32_t index = 0; index < operations_.size(); ++index) {
    end_offer(operations_.at(index));
    if (auto* running = std::get_if<state::Running>(&operations_.at(index).state)) running->run->abandoned = true;
  }
  // Device copies already running touch buffers that are about to be given back: let them end.
  const auto copying = [this] {
    return std::any_of(active_.begin(), active_.end(), [this](std::uint32_t index) {
      const Operation& operation = operations_.at(index);
      const auto* running = std::get_if<state::Running>(&operation.state);
      return operation.in<state::FillingCell>() || operation.in<state::Putting>() || operation.in<state::Fetching>() ||
             operation.in<state::EmptyingCell>() || operation.in<state::Delivering>() || operation.in<state::Unpacking>() ||
             operation.in<state::SendingMail>() || (running != nullptr && !running->run->local.empty());
    });
  };
  while (copying()) step_active();
  for (std::uint32_t index = 0; index < operations_.size(); ++index) settle(operations_.at(index));
  while (!left_copies_.empty()) step_left_copies();
  while (!unused_cells_.empty()) std::erase_if(unused_cells_, [](UnusedCell& each) { return each.cell.step_unused(); });
}

}  // namespace ist
