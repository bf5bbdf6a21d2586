#include "collective/nccl_team.hpp"

#include <algorithm>
#include <utility>

#include "collective/nccl_call.hpp"

namespace ist {
namespace {

// In the internal context of the communicator, where calls have negative tags and those that make communicators lower ones.
constexpr std::int32_t kPartingTag = (1 << 16) + 8;
// NCCL takes hundreds of calls before the next has to wait for one of them to end.
constexpr std::size_t kFewUnderWay = 32;
constexpr std::size_t kMostShapes = 4096;
constexpr int kAbortsBesideCalls = 21901;
constexpr std::chrono::microseconds kLookAtNccl{200};

Status said(const nccl::Api& api, const std::string& call, const std::string& communicator, const std::string& words) {
  return {IST_ERR_DEVICE,
          call + " for communicator \"" + communicator + "\": NCCL " + api.version_text() + " says \"" + words + "\""};
}

}  // namespace

// When every rank has done with the communicator, or is gone.
class NcclTeam::Closer : public Action {
 public:
  explicit Closer(std::shared_ptr<NcclTeam> team) : team_(std::move(team)) {}
  Result<bool> step(Moment&) override {
    team_->close();
    return team_->closed();
  }

 private:
  std::shared_ptr<NcclTeam> team_;
};

NcclTeam::NcclTeam(Nccl& nccl, Engine& engine, const Scope& scope, const std::string& name, const CollectiveProfile& machine,
                   int number)
    : nccl_(nccl),
      twin_(engine, scope, name, machine),
      number_(number),
      calls_wait_(number == 0 && nccl.api().version >= kAbortsBesideCalls) {
  nccl_.add(this);
}

NcclTeam::~NcclTeam() {
  nccl_.remove(this);
  close();
}

// Streams that came before the program heard of it may have kept NCCL from being there, or not.
bool NcclTeam::learn(bool streams_used) {
  settled_ |= state_ == State::open && !streams_used && !nccl_.any_let_go() && known_of_it_->heard >= known_of_it_->opener;
  return settled_;
}

Result<nccl::UniqueId> NcclTeam::make_id() {
  if (id_) return *id_;
  nccl::UniqueId made{};
  const nccl::Code result = nccl_.api().ncclGetUniqueId(&made);
  if (result != nccl::Code::success) return failed("ncclGetUniqueId", result);
  id_ = made;
  return made;
}

Status NcclTeam::failed(const char* call, nccl::Code code) const {
  return said(nccl_.api(), call, twin_.name(), nccl_.api().words(code, comm_));
}

void NcclTeam::enter(NcclCall* call) {
  waiting_.push_back(call);
  calls_.push_back(call);
}

void NcclTeam::forget(NcclCall* call) {
  end_turn(call);
  std::erase(calls_, call);
  if (retired_ && calls_.empty()) part();
}

void NcclTeam::farewell() {
  const Status why{IST_ERR_PEER_LEFT, "this rank destroyed its world"};
  for (NcclCall* call : calls_) call->tell_others(why);
  // Its calls will not end well, so there is no parting from the others either.
  if (!calls_.empty() && broken_.ok()) broken_ = why;
}

void NcclTeam::retire() {
  if (std::exchange(retired_, true)) return;
  nccl_.keep(shared_from_this());
  if (calls_.empty()) part();
}

// Everybody tells everybody; the closer comes after that, also where some messages found nobody.
void NcclTeam::part() {
  if (state_ != State::open || !broken_.ok() || parting_ || closing_ || busy()) return;
  auto schedule = std::make_unique<Schedule>("ist_comm_free", twin_.internal(), kPartingTag);
  const auto over = schedule->act(std::make_unique<Closer>(shared_from_this()), {});
  for (int rank = 0; rank < twin_.size(); ++rank) {
    if (rank == twin_.rank()) continue;
    const Piece nothing = host_piece(nullptr, Bytes{});
    schedule->need(over, schedule->receive(nothing, twin_.to_world(rank), number_, {}));
    schedule->need(over, schedule->send(nothing, twin_.to_world(rank), number_, {}));
  }
  parting_ = true;
  Engine& engine = twin_.engine();
  const auto started = engine.start_schedule(std::move(schedule));
  if (started.ok()) engine.forget(*started);
}

// The driver tells nobody when a user's stream is through, so whoever waits for the parting looks again.
bool NcclTeam::parted() {
  if (retired_ && calls_.empty()) part();
  if (retired_ && !parting_ && !closing_ && broken_.ok() && busy()) return false;
  return !parting_ || (closing_ && closed());
}

Status NcclTeam::begin_opening(int device, const nccl::UniqueId& id, std::vector<std::uint64_t> identities,
                               std::shared_ptr<void> setup) {
  state_ = State::opening;
  identities_ = std::move(identities);
  deadline_ = nccl_.deadline();
  auto stream = nccl_.kinds().find(KindId::cuda)->guests()->open_stream(device);
  if (!stream.ok()) return stream.status();
  stream_ = std::move(*stream);
  opening_ = std::make_shared<Opening>(calls_wait_);
  const Status begun = nccl_.in_background([opening = opening_, stream = stream_, &api = nccl_.api(), id,
                                            ranks = twin_.size(), rank = twin_.rank(), setup = std::move(setup)] {
    const Status current = stream->within([&] { make(api, ranks, rank, id, *opening); });
    if (!current.ok()) opening->words = current.text();
    opening->over.store(true, std::memory_order_release);
  });
  if (!begun.ok()) opening_->over.store(true, std::memory_order_release);
  return begun;
}

// The parent has done its part.
void NcclTeam::end_opening(bool everywhere) {
  state_ = everywhere ? State::open : State::off;
  if (!everywhere || opening_ == nullptr || opening_->parent == nullptr) return;
  const auto abort = [parent = opening_->parent, stream = stream_, &api = nccl_.api()] {
    static_cast<void>(stream->within([&] { api.ncclCommAbort(parent); }));
  };
  if (nccl_.in_background(abort).ok()) opening_->parent = nullptr;
}

bool NcclTeam::wait_until_ready(const nccl::Api& api, nccl::Comm comm, const char* call, Opening& opening) {
  opening.call = call;
  while (!opening.given_up.load(std::memory_order_acquire)) {
    nccl::Code error = nccl::Code::success;
    const nccl::Code asked = api.ncclCommGetAsyncError(comm, &error);
    if (asked != nccl::Code::success) error = asked;
    if (error == nccl::Code::success) return true;
    if (error != nccl::Code::in_progress) {
      opening.words = api.words(error, comm);
      return false;
    }
    std::this_thread::sleep_for(kLookAtNccl);
  }
  return false;
}

void NcclTeam::make(const nccl::Api& api, int ranks, int rank, const nccl::UniqueId& id, Opening& opening) {
  const auto begun = [&](nccl::Code result, const char* call) {
    opening.call = call;
    if (result == nccl::Code::success || result == nccl::Code::in_progress) return true;
    opening.words = api.words(result, nullptr);
    return false;
  };
  nccl::Config waits_for_nothing;
  nccl::Config waits;
  waits.blocking = 1;
  constexpr const char* kInit = "ncclCommInitRankConfig";
  constexpr const char* kSplit = "ncclCommSplit";
  if (!begun(api.ncclCommInitRankConfig(&opening.parent, ranks, id, rank, &waits_for_nothing), kInit) ||
      !wait_until_ready(api, opening.parent, kInit, opening))
    return;
  if (!opening.calls_wait) {
    opening.comm = std::exchange(opening.parent, nullptr);
    return;
  }
  // NCCL may write the child down until the parent is ready, or aborted.
  if (begun(api.ncclCommSplit(opening.parent, 0, rank, &opening.comm, &waits), kSplit) &&
      wait_until_ready(api, opening.parent, kSplit, opening) && opening.comm != nullptr)
    static_cast<void>(wait_until_ready(api, opening.comm, kSplit, opening));
}

Result<bool> NcclTeam::opened() {
  const auto no = [this](const std::string& call, const std::string& words) {
    return said(nccl_.api(), call, twin_.name(), words);
  };
  if (!opening_->over.load(std::memory_order_acquire)) {
    // Asked only where NCCL has nothing to say: a program may look again long after it was ready.
    if (std::chrono::steady_clock::now() > deadline_)
      return no("making its communicator", "nothing, for as long as ISTHMUS_BOOT_TIMEOUT");
    return false;
  }
  if (!opening_->words.empty()) return no(opening_->call, opening_->words);
  if (opening_->comm == nullptr) return no("ncclCommSplit", "nothing");
  comm_ = opening_->comm;
  return true;
}

nccl::Code NcclTeam::Handing::exchange_parts(const NcclWork& work, nccl::Stream stream) const {
  nccl::Code code = api.ncclGroupStart();
  for (int peer = 0; peer < ranks; ++peer) {
    const std::size_t place = static_cast<std::size_t>(peer) * work.count;
    if (code == nccl::Code::success)
      code = api.ncclSend(work.send.address() + place, work.count, work.type, peer, comm, stream);
    if (code == nccl::Code::success)
      code = api.ncclRecv(work.recv.address() + place, work.count, work.type, peer, comm, stream);
  }
  const nccl::Code ended = api.ncclGroupEnd();
  return code != nccl::Code::success ? code : ended;
}

nccl::Code NcclTeam::Handing::call(const NcclWork& work, nccl::Stream stream) const {
  const std::byte* send = work.send.address();
  std::byte* recv = work.recv.address();
  switch (work.what) {
    case ChosenCall::bcast:
      return api.ncclBroadcast(send, recv, work.count, work.type, work.root, comm, stream);
    case ChosenCall::reduce:
      return api.ncclReduce(send, recv, work.count, work.type, work.operation, work.root, comm, stream);
    case ChosenCall::allreduce:
      return api.ncclAllReduce(send, recv, work.count, work.type, work.operation, comm, stream);
    case ChosenCall::reduce_scatter:
      return api.ncclReduceScatter(send, recv, work.count, work.type, work.operation, comm, stream);
    case ChosenCall::allgather:
      return api.ncclAllGather(send, recv, work.count, work.type, comm, stream);
    case ChosenCall::alltoall:
      break;
    case ChosenCall::barrier:
    case ChosenCall::scan:
    case ChosenCall::gather:
    case ChosenCall::scatter:
      return nccl::Code::invalid_argument;  // never asked for
  }
  return exchange_parts(work, stream);
}

Status NcclTeam::start(const NcclWork& work, const std::vector<Ticket>& after) {
  for (const Ticket& ticket : after) IST_TRY(stream_->follow(ticket));
  return put(work, stream_->handle());
}

Status NcclTeam::Handing::put(const NcclWork& work, std::uint64_t stream) const {
  nccl::Code code = nccl::Code::success;
  bool entered = false;
  IST_TRY(own->launch(stream, [&] {
    Stage expected = Stage::outside;
    entered = stage.compare_exchange_strong(expected, Stage::inside);
    if (entered) code = call(work, reinterpret_cast<nccl::Stream>(stream));
  }));
  if (!entered)
    return {IST_ERR_DEVICE, "NCCL was given up on communicator \"" + name + "\" before the call was handed over"};
  if (code == nccl::Code::success || code == nccl::Code::in_progress) return {};
  return said(api, "a collective call", name, api.words(code, comm));
}

Status NcclTeam::put(const NcclWork& work, std::uint64_t stream) {
  handing_.reset();
  handed_ = {work.what, work.count, work.type, work.operation, work.root};
  auto handing = std::make_shared<Handing>(nccl_.api(), comm_, stream_, twin_.size(), twin_.name());
  // Without a wait for other ranks, under the engine's lock: connected, and with room for more.
  if (!calls_wait_ || (known_.contains(handed_) && calls_.size() <= kFewUnderWay)) return handing->put(work, stream);
  IST_TRY(nccl_.in_background([handing, work, stream] {
    handing->result = handing->put(work, stream);
    handing->over.store(true, std::memory_order_release);
  }));
  handing_ = std::move(handing);
  return {};
}

Result<bool> NcclTeam::started() {
  if (handing_) {
    if (!handing_->over.load(std::memory_order_acquire)) return false;
    const Status result = handing_->result;
    handing_.reset();
    if (!result.ok()) return result;
    if (known_.size() >= kMostShapes) known_.clear();
    known_.insert(handed_);
  }
  nccl::Code error = nccl::Code::success;
  const nccl::Code asked = nccl_.api().ncclCommGetAsyncError(comm_, &error);
  if (asked != nccl::Code::success) error = asked;
  if (error == nccl::Code::in_progress) return false;
  if (error != nccl::Code::success) return failed("a collective call", error);
  return true;
}

Status NcclTeam::remember(std::uint64_t stream) {
  auto marked = stream_->mark(stream);
  if (!marked.ok()) return marked.status();
  last_ = std::move(*marked);
  return {};
}

bool NcclTeam::busy() {
  if (last_.empty()) return false;
  const auto over = last_.kind()->finished(last_);
  if (over.ok() && !*over) return true;
  last_ = {};
  return false;
}

void NcclTeam::break_off(const Status& why) {
  if (!closing_ && given_up_.ok() && busy()) given_up_ = why;
  if (broken_.ok()) broken_ = why;
  close();
}

// A call that still waits for other ranks ends with an error in its thread when the communicator is aborted.
void NcclTeam::close() {
  if (closing_ || !opening_) return;
  closing_ = std::make_shared<std::atomic<bool>>(false);
  opening_->given_up.store(true, std::memory_order_release);
  const auto end = [opening = opening_, handing = std::move(handing_), stream = std::move(stream_), &api = nccl_.api(),
                    closing = closing_] {
    while (!opening->over.load(std::memory_order_acquire)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const auto abort = [&](nccl::Comm comm) {
      if (comm != nullptr) static_cast<void>(stream->within([&] { api.ncclCommAbort(comm); }));
    };
    if (handing != nullptr) handing->stage.exchange(Handing::Stage::given_up);
    const nccl::Comm child = opening->comm;
    abort(child);
    abort(opening->parent);
    if (child == nullptr) abort(opening->comm);  // written down only now
    // The thread that was inside of it comes out.
    while (handing != nullptr && !handing->over.load(std::memory_order_acquire))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    closing->store(true, std::memory_order_release);
  };
  if (!nccl_.in_background(end).ok()) end();
}

}  // namespace ist
