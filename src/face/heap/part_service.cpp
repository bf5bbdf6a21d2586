#include "face/heap/part_service.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/outcome.hpp"
#include "base/quiet_thread.hpp"
#include "face/heap/device_words.hpp"
#include "face/message/calls.hpp"

namespace ist {
namespace {

constexpr std::int32_t kRequests = 0;  // tag of requests
// Who asks numbers what he asks. What he sends with it has that number as its tag; what comes back has one that nobody else's number is,
// since two PEs that ask each other number by themselves.
constexpr std::uint32_t kNumbers = 1U << 29U;
constexpr std::int32_t bytes_for(std::int32_t number) { return number | static_cast<std::int32_t>(kNumbers); }
constexpr std::int32_t answer_to(std::int32_t number) { return number | static_cast<std::int32_t>(2 * kNumbers); }
// Not waited for, at one PE; beyond it the oldest is.
constexpr std::size_t kMostAsked = 64;
// Looks before the thread naps, where each rank has a processor; peers then ring no bell.
constexpr int kServiceLooks = 200;
constexpr std::chrono::microseconds kServiceNap{20};
constexpr std::chrono::microseconds kServiceLongNap{100};  // while nothing is under way
// Looks before it sleeps longer than a nap; what its sender could not hand over when it rang is found after so long.
constexpr int kServiceLooksAwake = kServiceLooks + 500;
constexpr int kServiceLooksBetween = 5;
// Looks of who asked, between which it gives way, before it waits as for any message.
constexpr int kAskerLooks = 5000;
constexpr std::chrono::microseconds kServiceSleep{20000};

template <class T>
Piece piece_of(T& value) {
  return host_piece(&value, Bytes{sizeof value});
}

template <class T>
T changed(T was, const WordChange& change) {
  const T operand = static_cast<T>(change.operand);
  switch (change.what) {
    case WordChange::What::set:
    case WordChange::What::swap:
    case WordChange::What::store:
      return operand;
    case WordChange::What::add:
      return static_cast<T>(was + operand);
    case WordChange::What::bitwise_and:
      return was & operand;
    case WordChange::What::bitwise_or:
      return was | operand;
    case WordChange::What::bitwise_xor:
      return was ^ operand;
    case WordChange::What::compare_swap:
      return was == static_cast<T>(change.expected) ? operand : was;
    case WordChange::What::fetch:
      break;
  }
  return was;
}

}  // namespace

PartService::PartService(World& world, const Communicator& comm, Part own, const Bells& bells)
    : world_(world),
      engine_(comm.engine()),
      comm_(comm),
      own_(std::move(own)),
      bells_(bells),
      scope_{comm.scope().context | kQueueContext, comm.scope().group} {}

Status PartService::start(const std::vector<bool>& asked_by) {
  for (int pe = 0; pe < comm_.size(); ++pe) {
    if (pe == comm_.rank() || !asked_by[static_cast<std::size_t>(pe)]) continue;
    lanes_.emplace_back().rank = comm_.to_world(pe);
    listen(lanes_.back());
  }
  if (lanes_.empty()) return {};
  auto thread = quiet_thread("a heap that its PEs serve", [this] { run(); });
  if (!thread.ok()) return thread.status();
  thread_ = std::move(*thread);
  return {};
}

void PartService::stop() {
  stop_ = true;
  if (!thread_.joinable()) return;
  if (engine_.sleeping_path() != nullptr) engine_.sleeping_path()->wake();
  bells_.ring(own_.pe);
  thread_.join();
}

void PartService::leave() {
  stop();
  left_ = true;
}

// Whoever asked has had his answer. Where the world is over the engine has let go of everything, and finishes nothing any more.
PartService::~PartService() {
  stop();
  if (left_) return;
  static_cast<void>(end(open_));
  for (Lane& lane : lanes_) {
    if (lane.state == Lane::State::ended || lane.over) continue;
    {
      const std::lock_guard lock(engine_.lock());
      if (lane.state == Lane::State::listening && engine_.cancel_receive(lane.operation)) continue;
    }
    wait_for_end(engine_, lane.operation);
  }
}

// ---- what this PE asks ----

// The request last: where something before it cannot be started, nobody is asked.
Status PartService::start_asking(Asked& asked, Rank rank, const Piece* near) {
  const std::lock_guard lock(engine_.lock());
  const std::int32_t tag = asked.request.tag;
  const auto receive = [&](const Piece& into, std::int32_t with) {
    const auto id = engine_.start_receive(into, rank.value, with, scope_);
    if (id.ok()) asked.operations.push_back(*id);
    return id.status();
  };
  const auto send = [&](const Piece& from, std::int32_t with) {
    bool done = false;
    const auto id = engine_.start_send(from, rank, with, scope_, &done);
    if (id.ok() && !done) asked.operations.push_back(*id);
    return id.status();
  };
  IST_TRY(receive(piece_of(asked.answer), answer_to(tag)));
  if (near != nullptr)
    IST_TRY(asked.request.what == PartRequest::What::get ? receive(*near, bytes_for(tag)) : send(*near, tag));
  return send(piece_of(asked.request), kRequests);
}

Result<std::unique_ptr<PartService::Asked>> PartService::ask(const PartRequest& request, Pe pe, const Piece* near) {
  auto asked = std::make_unique<Asked>(Asked{request, {}, {}});
  asked->request.tag = static_cast<std::int32_t>(1 + next_.fetch_add(1, std::memory_order_relaxed) % (kNumbers - 1));
  Status started = start_asking(*asked, comm_.to_world(pe.value), near);
  if (started.ok()) {
    bells_.ring(pe);
    return asked;
  }
  let_go(*asked);
  return started;
}

// What the other PE will not come to, since it could not, is over by this.
void PartService::let_go(Asked& asked) {
  for (const OperationId each : asked.operations) end_own(engine_, each);
  asked.operations.clear();
}

// The answer comes when everything else is over, but for the bytes where it says that they will not come. Where memory runs out for something else, nothing of it is under way
// when that is told.
Status PartService::finish(Asked& asked) try {
  const OperationId answer = asked.operations.front();
  asked.operations.erase(asked.operations.begin());
  // The thread that was rung for may have been put behind this one, on the same processor, and a wait spins for some 1 ms before it gives way.
  const auto has_come = [&] {
    const std::lock_guard lock(engine_.lock());
    look_for_nobody(engine_);
    return Engine::complete(*engine_.find(answer));
  };
  for (int looks = 0; looks < kAskerLooks && !has_come(); ++looks) std::this_thread::yield();
  Status outcome = wait_for_own(engine_, answer).status;
  if (outcome.ok()) outcome = asked.answer.status();
  if (!outcome.ok()) {
    let_go(asked);
    return outcome;
  }
  while (!asked.operations.empty()) {
    const OperationId each = asked.operations.front();
    asked.operations.erase(asked.operations.begin());
    if (Status moved = wait_for_own(engine_, each).status; !moved.ok() && outcome.ok()) outcome = std::move(moved);
  }
  return outcome;
} catch (const std::bad_alloc&) {
  let_go(asked);
  throw;
}

void PartService::keep(std::unique_ptr<Asked> asked, Batch& batch) {
  batch.asked.push_back(std::move(asked));
  if (batch.asked.size() <= kMostAsked) return;
  const std::unique_ptr<Asked> oldest = std::move(batch.asked.front());
  batch.asked.pop_front();
  if (Status outcome = finish(*oldest); !outcome.ok() && batch.failed.ok()) batch.failed = std::move(outcome);
}

Status PartService::end(Batch& batch) {
  Status failed = std::exchange(batch.failed, {});
  for (const auto& each : batch.asked)
    if (Status outcome = finish(*each); !outcome.ok() && failed.ok()) failed = std::move(outcome);
  batch.asked.clear();
  return failed;
}

Status PartService::end_or_keep(std::unique_ptr<Asked> asked, const When& when) {
  if (when.now) return finish(*asked);
  if (when.batch != nullptr) {
    keep(std::move(asked), *when.batch);
    return {};
  }
  const std::lock_guard lock(mutex_);
  keep(std::move(asked), open_);
  return {};
}

// Under the mutex all the time: what another thread waits for here is not over for this one either.
Status PartService::quiet() {
  const std::lock_guard lock(mutex_);
  return end(open_);
}

Status PartService::put(const Far& to, const Piece& near, const Signal* signal, const When& when) {
  PartRequest request{PartRequest::What::put, 0, to.offset.value, near.size.value, 0, 0, {}};
  if (signal != nullptr) {
    request.what = PartRequest::What::signal;
    request.word = signal->offset.value;
    request.word_size = sizeof(std::uint64_t);
    request.change = signal->change;
  }
  auto asked = ask(request, to.pe, &near);
  return asked.ok() ? end_or_keep(std::move(*asked), when) : asked.status();
}

Status PartService::get(const Piece& near, const Far& from, const When& when) {
  auto asked = ask({PartRequest::What::get, 0, from.offset.value, near.size.value, 0, 0, {}}, from.pe, &near);
  return asked.ok() ? end_or_keep(std::move(*asked), when) : asked.status();
}

Result<std::uint64_t> PartService::change(const Far& word, Bytes size, const WordChange& change) {
  if (word.pe == own_.pe) return change_here(word.offset, size, change);
  auto asked = ask({PartRequest::What::change, 0, 0, 0, word.offset.value, size.value, change}, word.pe, nullptr);
  if (!asked.ok()) return asked.status();
  IST_TRY(finish(**asked));
  return (*asked)->answer.before;
}

// By the device, which devices of others that reach the word are atomic with; a store takes none. Where every part is served all changes come
// this way, and nobody else is to be atomic with them.
Result<std::uint64_t> PartService::change_here(Offset offset, Bytes size, const WordChange& change) {
  const std::lock_guard lock(words_);
  const Piece word = own_.piece(offset, size);
  if (own_.reach == SpaceReach::device) {
    if (change.what == WordChange::What::store) {
      IST_TRY(copy_pieces(world_, word, host_piece(&change.operand, size)));
      return std::uint64_t{0};
    }
    IST_TRY(can_change_words(world_, own_.kind));
    return change_on_device(world_, word, change);
  }
  std::uint64_t before = 0;
  IST_TRY(copy_pieces(world_, host_piece(&before, size), word));
  const bool four = size == Bytes{sizeof(std::uint32_t)};
  const std::uint64_t after = four ? changed(static_cast<std::uint32_t>(before), change) : changed(before, change);
  if (after != before) IST_TRY(copy_pieces(world_, word, host_piece(&after, size)));
  return before;
}

// ---- what the thread does ----

void PartService::run() {
  const auto news = [this] {
    return stop_ || std::any_of(lanes_.begin(), lanes_.end(), [this](const Lane& lane) { return is_over(lane); });
  };
  Patience patience{engine_, news, Patience::Whose::thread};
  while (!stop_) {
    bool moved = false;
    bool polls = false;
    {
      const std::lock_guard lock(engine_.lock());
      moved = look_for_nobody(engine_);
      polls = engine_.must_poll();
    }
    for (Lane& lane : lanes_) {
      const Status stepped = outcome_of([&] {
        moved = step(lane) || moved;
        return Status{};
      });
      if (!stepped.ok()) lane.state = Lane::State::ended;
    }
    rest(patience, moved, polls);
  }
}

void PartService::rest(Patience& patience, bool moved, bool polls) {
  if (moved) fruitless_ = 0;
  if (engine_.sleeping_path() != nullptr) return patience.after_look(moved, polls);
  // What has moved often goes on at once; who asked may be waiting for this very processor otherwise.
  if (moved) return;
  if (++fruitless_ < kServiceLooks) return std::this_thread::yield();
  if (!polls && is_idle()) return sleep();
  std::this_thread::sleep_for(polls ? kServiceNap : kServiceLongNap);
}

bool PartService::is_idle() const {
  return std::none_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) {
    return lane.state == Lane::State::moving || lane.state == Lane::State::answering;
  });
}

// No request is slept over. Who asks publishes the request, fences, and looks whether the bell says asleep; this thread says so, fences, and looks
// at all that could have been published. Both fences are seq_cst (doorbell.hpp): one of the two sees the other. What was asked before the bell was
// announced is found by the look behind it; what is asked later finds the bell, and rings.
void PartService::sleep() {
  const bool naps = fruitless_ < kServiceLooksAwake;
  Doorbell& bell = bells_.of(own_.pe);
  bell.announce();
  bool news = stop_;
  if (!news) {
    const std::lock_guard lock(engine_.lock());
    news = look_for_nobody(engine_) ||
           std::any_of(lanes_.begin(), lanes_.end(), [this](const Lane& lane) { return is_over(lane); });
  }
  if (!news) bell.wait(naps ? kServiceLongNap : kServiceSleep);
  bell.retract();
  if (!naps) fruitless_ = kServiceLooksAwake - kServiceLooksBetween;
}

// Under the lock.
bool PartService::is_over(const Lane& lane) const {
  return lane.state != Lane::State::ended && (lane.over || Engine::complete(*engine_.find(lane.operation)));
}

// True: it has moved on.
bool PartService::step(Lane& lane) {
  Status outcome;
  {
    const std::lock_guard lock(engine_.lock());
    if (!is_over(lane)) return false;
    if (!std::exchange(lane.over, false)) outcome = engine_.take(lane.operation).status;
  }
  if (lane.state == Lane::State::moving) {
    end(lane, outcome);
  } else if (lane.state == Lane::State::answering) {
    listen(lane);
  } else if (outcome.ok()) {
    begin(lane);
  } else {
    lane.state = Lane::State::ended;
  }
  return true;
}

void PartService::listen(Lane& lane) {
  const bool open = receive(lane, piece_of(lane.request), kRequests).ok();
  lane.state = open ? Lane::State::listening : Lane::State::ended;
}

void PartService::begin(Lane& lane) {
  const PartRequest& request = lane.request;
  if (request.what == PartRequest::What::change) return end(lane, {});
  const Piece own = own_.piece(Offset{request.offset}, Bytes{request.size});
  lane.state = Lane::State::moving;
  const Status started =
      request.what == PartRequest::What::get ? send(lane, own, bytes_for(request.tag)) : receive(lane, own, request.tag);
  if (!started.ok()) end(lane, started);
}

void PartService::end(Lane& lane, const Status& moved) {
  const PartRequest& request = lane.request;
  lane.answer = {};
  Status outcome = moved;
  if (outcome.ok() && request.word_size != 0) {
    const auto before = change_here(Offset{request.word}, Bytes{request.word_size}, request.change);
    if (before.ok()) lane.answer.before = *before;
    outcome = before.status();
  }
  lane.answer.tell(outcome);
  const bool told = send(lane, piece_of(lane.answer), answer_to(request.tag)).ok();
  lane.state = told ? Lane::State::answering : Lane::State::ended;
}

Status PartService::receive(Lane& lane, const Piece& into, std::int32_t tag) {
  const std::lock_guard lock(engine_.lock());
  const auto id = engine_.start_receive(into, lane.rank.value, tag, scope_);
  if (id.ok()) lane.operation = *id;
  return id.status();
}

Status PartService::send(Lane& lane, const Piece& from, std::int32_t tag) {
  const std::lock_guard lock(engine_.lock());
  const auto id = engine_.start_send(from, lane.rank, tag, scope_, &lane.over);
  if (id.ok()) lane.operation = *id;
  return id.status();
}

}  // namespace ist
