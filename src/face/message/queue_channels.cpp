#include "face/message/queue_channels.hpp"

#include <algorithm>

#include "base/outcome.hpp"
#include "base/quiet_thread.hpp"
#include "face/message/layout_calls.hpp"
#include "memory/memory_kind.hpp"
#include "request/type_check.hpp"

namespace ist {
namespace {

// Looks before the thread naps, where each rank has a processor; peers then ring no bell.
constexpr int kLooks = 200;
constexpr std::chrono::microseconds kNap{20};
// PoCL does not call back for what was terminated, so that now and then somebody has to ask.
constexpr std::chrono::milliseconds kGlances{5};
// The receive may stand behind the send in the same queue, so that a send that fits must never wait for it. The engine need not lose its
// patience: nothing of the user's is pending on the bytes any more, at most a kernel of this library's that packs them, which takes
// long where a device is busy or compiles it.
constexpr SendMode kQueueMode{false, false, true};

Status given_up(const std::string& what) {
  return {IST_ERR_PENDING, what + " when the world was destroyed, and was given up; wait for the queue before"};
}

}  // namespace

QueueChannels::~QueueChannels() { stop(); }

Result<Queues*> QueueChannels::kind() const {
  const auto opencl = engine_.parts().kinds.usable(IST_KIND_OPENCL);
  if (!opencl.ok()) return opencl.status();
  return (*opencl)->queues();
}

// ---- what calls do ----

Status QueueChannels::start_thread() {
  if (engine_.parts().settings.single_threaded())
    return {IST_ERR_SETTING,
            "a thread of the library's own moves the messages of OpenCL queues, which ISTHMUS_THREADS=\"single\" does not "
            "allow: "
            "leave that out"};
  const std::lock_guard lock(mutex_);
  if (thread_.joinable()) return {};
  auto thread = quiet_thread("messages in OpenCL queues", [this] { run(); });
  if (!thread.ok()) return thread.status();
  thread_ = std::move(*thread);
  return {};
}

Result<QueueChannels::Channel*> QueueChannels::channel(const ChannelName& name) {
  const Status clash = [&] {
    const std::lock_guard lock(engine_.lock());
    return channels_.use_in_queues(name);
  }();
  Channel* found = nullptr;
  Status trouble;
  {
    const std::lock_guard lock(mutex_);
    auto& known = known_[StreamChannels::key_of(name)];
    if (!known) {
      Scope scope = name.comm->scope();
      scope.context |= kQueueContext;
      known = std::make_unique<Channel>(Channel{StreamChannels::key_of(name), std::move(scope), words_for(name), {}});
    }
    found = known.get();
    trouble = std::exchange(found->trouble, {});
  }
  if (!clash.ok()) return clash;
  constexpr const char* kNothingPut = "; this call has put nothing into the queue, and the next one will";
  if (trouble.code() == IST_ERR_TRUNCATE)
    return Status{IST_ERR_TRUNCATE, trouble.text() + ", which it filled" + kNothingPut};
  if (trouble.code() == IST_ERR_ARGUMENT) return Status{IST_ERR_ARGUMENT, trouble.text() + kNothingPut};
  if (!trouble.ok()) return trouble;
  const AbortBoard& board = engine_.parts().board;
  if (const Rank dead = board.first_dead(); dead != kNobody) return engine_.died(dead);
  // What a rank had sent when it left is still there to be received.
  if (name.side == ChannelSide::sends) IST_TRY(channels_.peer_is_there(name));
  return found;
}

Status QueueChannels::put(const Call& call) {
  const auto queues = kind();
  if (!queues.ok()) return queues.status();
  if (!call.in && !call.out) return (*queues)->pass(call.queue, call.events);
  IST_TRY(start_thread());
  Turn turn;
  std::vector<Piece> pieces;
  for (const auto* half : {&call.in, &call.out}) {
    if (!half->has_value()) continue;
    const auto found = channel((*half)->name);
    if (!found.ok()) return found.status();
    turn.messages.push_back({*found, (*half)->piece, (*half)->work, (*half)->types});
    pieces.push_back((*half)->piece);
  }
  const std::uint64_t number = [&] {
    const std::lock_guard lock(mutex_);
    in_queues_.emplace(++last_turn_, std::move(turn));
    return last_turn_;
  }();
  auto place = (*queues)->enter(call.queue, call.events, pieces, [this, number] { has_come(number); });
  {
    const std::lock_guard lock(mutex_);
    if (place.ok()) {
      in_queues_.at(number).place = std::move(*place);
    } else {
      in_queues_.erase(number);
      come_.erase(number);
    }
  }
  // Also where it came before this call had its place, and the thread, told too early, sleeps again.
  if (place.ok()) wake_thread();
  return place.status();
}

Status QueueChannels::prepare(const ChannelName& name) {
  IST_TRY(start_thread());
  const auto found = channel(name);
  if (!found.ok()) return found.status();
  const auto here = [this, &name] { return channels_.both_use_queues(name); };
  Patience patience{engine_, here};
  while (true) {
    bool moved = false;
    bool polls = false;
    {
      const std::lock_guard lock(engine_.lock());
      moved = engine_.progress();
      if (here()) return channels_.use_in_queues(name);
      IST_TRY(channels_.peer_is_there(name));
      polls = engine_.must_poll();
    }
    patience.after_look(moved, polls);
  }
}

void QueueChannels::has_come(std::uint64_t number) {
  {
    const std::lock_guard lock(mutex_);
    if (!in_queues_.contains(number)) return;  // it was seen to have come
    come_.insert(number);
  }
  wake_thread();
}

// It sleeps here, or where messages are waited for.
void QueueChannels::wake_thread() {
  news_.notify_one();
  if (engine_.sleeping_path() != nullptr) engine_.sleeping_path()->wake();
}

// ---- what the thread does ----

bool QueueChannels::news() const {
  const auto can_begin = [this](std::uint64_t number) { return in_queues_.at(number).place != nullptr; };
  return stop_ || std::any_of(come_.begin(), come_.end(), can_begin);
}

void QueueChannels::run() {
  const auto over = [this] {
    const std::lock_guard lock(mutex_);
    return news();
  };
  Patience patience{engine_, over, Patience::Whose::thread};
  for (;;) {
    glance();
    for (Turn& turn : take_come()) begin(std::move(turn));
    bool polls = false;
    const bool moved = !under_way_.empty() && look(polls);
    wait(patience, moved, polls);
    const std::lock_guard lock(mutex_);
    if (stop_) return;
  }
}

void QueueChannels::wait(Patience& patience, bool moved, bool polls) {
  fruitless_ = moved ? 0 : fruitless_ + 1;
  if (moved) return patience.after_look(true, polls);
  if (!under_way_.empty() && engine_.sleeping_path() != nullptr) return patience.after_look(false, polls);
  if (!under_way_.empty() && fruitless_ < kLooks) return std::this_thread::yield();
  std::unique_lock lock(mutex_);
  if (!under_way_.empty())
    news_.wait_for(lock, kNap, [this] { return news(); });
  else if (!in_queues_.empty())
    news_.wait_for(lock, kGlances, [this] { return news(); });
  else
    news_.wait(lock, [this] { return stop_ || !in_queues_.empty(); });
}

// Only this thread takes turns out of in_queues_: they can be asked without the lock, which a driver must not be called under.
void QueueChannels::glance() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_glance_) return;
  next_glance_ = now + kGlances;
  std::vector<std::pair<std::uint64_t, QueueTurn*>> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, turn] : in_queues_)
      if (turn.place != nullptr) all.emplace_back(number, turn.place.get());
  }
  for (const auto& [number, place] : all) {
    const auto came = place->has_come();
    if (came.ok() && !*came) continue;
    const std::lock_guard lock(mutex_);
    come_.insert(number);
  }
}

std::vector<QueueChannels::Turn> QueueChannels::take_come() {
  std::vector<Turn> come;
  const std::lock_guard lock(mutex_);
  for (auto number = come_.begin(); number != come_.end();) {
    const auto found = in_queues_.find(*number);
    if (found->second.place == nullptr) {  // its call has not come back yet
      ++number;
      continue;
    }
    come.push_back(std::move(found->second));
    in_queues_.erase(found);
    number = come_.erase(number);
  }
  return come;
}

void QueueChannels::begin(Turn turn) {
  const auto came = turn.place->has_come();
  if (came.ok()) lay_out(turn);
  {
    const std::lock_guard lock(engine_.lock());
    const Status started = came.ok() ? outcome_of([&] { return start(turn); }) : came.status();
    if (!started.ok()) give_up(turn, started);
  }
  under_way_.push_back(std::move(turn));
}

// What is packed by the processor is so here. A message for which there is no block goes without its bytes, so that those behind it meet the
// ones that are meant for them.
void QueueChannels::lay_out(Turn& turn) {
  for (Message& message : turn.messages) {
    if (!message.work) continue;
    const StreamChannels::Key& key = message.channel->key;
    const Status made = outcome_of([&] {
      auto block = key.side == ChannelSide::receives ? to_be_received(engine_, *message.work)
                                                     : to_be_sent(engine_, *message.work, Rank{key.peer}, kQueueMode);
      if (block.ok()) message.laid = std::move(*block);
      return block.status();
    });
    if (made.ok()) continue;
    message.piece = message.piece.part(Offset{}, Bytes{});
    message.types.reset();
    tell(message, made);
  }
}

Status QueueChannels::start(Turn& turn) {
  for (Message& message : turn.messages) {
    bool done = false;
    const auto id = start(message, done);
    if (!id.ok()) return id.status();
    message.operation = *id;
    message.over = done;
  }
  return {};
}

Result<OperationId> QueueChannels::start(Message& message, bool& done) {
  const StreamChannels::Key& key = message.channel->key;
  const Scope& scope = message.channel->scope;
  const bool receives = key.side == ChannelSide::receives;
  const TypeCheck::Stated types{engine_.types(), [&] { return std::move(message.types); }};
  if (message.laid != nullptr && receives)
    return engine_.start_receive_laid(std::move(message.laid), key.peer, key.tag, scope);
  if (message.laid != nullptr)
    return engine_.start_send_laid(std::move(message.laid), Rank{key.peer}, key.tag, scope, &done, kQueueMode);
  return receives ? engine_.start_receive(message.piece, key.peer, key.tag, scope)
                  : engine_.start_send(message.piece, Rank{key.peer}, key.tag, scope, &done, kQueueMode);
}

// One look at everything; true if anything moved.
bool QueueChannels::look(bool& polls) {
  bool moved = false;
  std::vector<Turn> over;
  {
    const std::lock_guard lock(engine_.lock());
    moved = look_for_nobody(engine_);
    for (Turn& turn : under_way_) look_at(turn);
    polls = engine_.must_poll();
  }
  const auto is_over = [](const Turn& turn) {
    return std::all_of(turn.messages.begin(), turn.messages.end(), [](const Message& message) { return message.over; });
  };
  for (Turn& turn : under_way_)
    if (is_over(turn)) over.push_back(std::move(turn));
  std::erase_if(under_way_, [](const Turn& turn) { return turn.place == nullptr; });
  // With no lock held: the driver may call back from inside.
  for (Turn& turn : over) {
    turn.place->end();
    if (turn.left) left_.push_back(std::move(turn));
  }
  return moved || !over.empty();
}

void QueueChannels::look_at(Turn& turn) {
  for (Message& message : turn.messages) {
    if (message.over) continue;
    if (Engine::complete(*engine_.find(message.operation))) {
      const Status status = engine_.take(message.operation).status;
      end(message, status);
    } else if (channels_.clashes() != 0) {
      if (const Status clash = channels_.clash_at(message.channel->key); !clash.ok()) return give_up(turn, clash);
    }
  }
}

void QueueChannels::end(Message& message, const Status& why) {
  message.over = true;
  if (!why.ok()) tell(message, why);
}

// What a message has to say of itself waits for the next call on its channel.
void QueueChannels::tell(const Message& message, const Status& why) {
  const std::lock_guard lock(mutex_);
  Channel& channel = *message.channel;
  if (channel.trouble.ok()) channel.trouble = {why.code(), channel.words + ": " + why.text()};
}

// None of its messages will come about any more, but for a receive that has begun. A send stays with the engine.
void QueueChannels::give_up(Turn& turn, const Status& why) {
  for (Message& message : turn.messages) {
    if (message.over) continue;
    const bool started = message.operation.value != 0;
    if (started && message.channel->key.side == ChannelSide::receives) {
      if (!engine_.cancel_receive(message.operation)) continue;
    } else if (started) {
      engine_.forget(message.operation);
      turn.left = true;
    }
    end(message, why);
  }
}

// ---- the end ----

void QueueChannels::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  news_.notify_all();
  if (!thread_.joinable()) return;
  if (engine_.sleeping_path() != nullptr) engine_.sleeping_path()->wake();
  thread_.join();
}

Status QueueChannels::close() {
  for (auto& [number, turn] : in_queues_) under_way_.push_back(std::move(turn));
  in_queues_.clear();
  for (Turn& turn : under_way_) {
    {
      const std::lock_guard lock(engine_.lock());
      for (Message& message : turn.messages) {
        if (message.over) continue;
        if (message.operation.value != 0 && Engine::complete(*engine_.find(message.operation)))
          end(message, engine_.take(message.operation).status);
        else
          end(message, given_up("a message in a queue was not over"));
      }
    }
    turn.place->end();
  }
  under_way_.clear();
  Status status;
  for (const auto& [key, channel] : known_)
    if (status.ok()) status = channel->trouble;
  return status;
}

}  // namespace ist
