#include "collective/walk.hpp"

#include <cassert>
#include <mutex>

#include "memory/host/handing_copy.hpp"
#include "request/engine_at_once.hpp"
#include "request/wait.hpp"

namespace ist {

Walk::~Walk() {
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    const Message& message = messages_[i];
    const OperationId under_way = message.sent.value != 0 ? message.sent : message.posted;
    // One that a message has met already still writes into memory that goes with this, and of one that is sent others may read.
    if (!message.over && under_way.value != 0) end_own(comm_.engine(), under_way);
  }
}

void Walk::give_up(const Status& why, Rank about) {
  if (!status_.ok()) return;
  status_ = why;
  about_ = about;
}

Walk::Step Walk::send(const Piece& from, Rank to, std::int32_t tag, std::initializer_list<Step> needs) {
  fulfil(needs);
  messages_.make_room();
  Engine& engine = comm_.engine();
  const Scope& scope = comm_.internal();
  bool done = false;
  const auto sent = [&]() -> Result<OperationId> {
    const std::lock_guard lock(engine.lock());
    if (!status_.ok()) return engine.start_giving_up(to, tag, scope, {status_.code(), about_}, &done);
    done = !(shows_ && engine.lies_in_heap(from)) &&
           engine.send_at_once<false>(from.address(), from.size, to, tag, scope.context, true);
    return done ? OperationId{} : engine.start_send(from, to, tag, scope, &done, {.shows = shows_});
  }();
  if (!sent.ok()) give_up(sent.status(), sent.status().code() == IST_ERR_PEER_LEFT ? to : engine.rank());
  if (!sent.ok() || done) return Schedule::kNone;
  messages_.push_back({from, to, tag, *sent});
  return static_cast<Step>(messages_.size() - 1);
}

Walk::Step Walk::receive(const Piece& to, Rank from, std::int32_t tag, std::initializer_list<Step> needs) {
  fulfil(needs);
  messages_.push_back({to, from, tag, {}});
  return static_cast<Step>(messages_.size() - 1);
}

Walk::Step Walk::copy(const Piece& to, const Piece& from, std::initializer_list<Step> needs) {
  fulfil(needs);
  if (status_.ok() && to.size > Bytes{}) copy_across(to.address(), from.address(), to.size.value);
  return Schedule::kNone;
}

Walk::Step Walk::combine(const Piece& to, const Piece& from, std::initializer_list<Step> needs) {
  fulfil(needs);
  if (status_.ok() && to.size > Bytes{}) combine_on_host(combiner_, to.address(), from.address(), to.size);
  return Schedule::kNone;
}

void Walk::fulfil(Step step) {
  if (step == Schedule::kNone || messages_[step].over) return;
  Message& message = messages_[step];
  message.over = true;
  if (message.sent.value != 0) {
    assert(!longer_ || ending_);
    wait_for_send(message);
  } else {
    receive_now(message);
  }
}

// Its receiver may have doubted the call, because of what a third rank did, and asks for it no more.
void Walk::wait_for_send(const Message& message) {
  Status vain;
  const Outcome outcome = wait_in_doubt(comm_.engine(), message.sent, doubt(), vain);
  if (!vain.ok()) return give_up(vain, comm_.engine().rank());
  if (outcome.status.ok()) return;
  give_up(outcome.status, outcome.status.code() == IST_ERR_PEER_LEFT ? message.peer : comm_.engine().rank());
}

std::size_t Walk::open_receives() {
  std::size_t open = 0;
  for (std::size_t i = 0; i < messages_.size(); ++i)
    open += !messages_[i].over && messages_[i].sent.value == 0 && messages_[i].posted.value == 0 ? 1 : 0;
  return open;
}

void Walk::post_all() {
  Engine& engine = comm_.engine();
  const Scope& scope = comm_.internal();
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    Message& message = messages_[i];
    if (message.over || message.sent.value != 0 || message.posted.value != 0) continue;
    const std::lock_guard lock(engine.lock());
    const Piece to = status_.ok() ? message.piece : host_piece(nullptr, Bytes{});
    const auto id = engine.start_receive(to, message.peer.value, message.tag, scope);
    if (id.ok()) message.posted = *id;  // else it is told when it is waited for
  }
}

std::function<Status()> Walk::doubt() const {
  if (comm_.lane() == nullptr) return nullptr;
  return [this] { return comm_.lane()->compare(call_, asks_); };
}

Status Walk::uneven(const Message& message, Bytes came) const {
  return asks_ ? comm_.engine().unanswered(message.peer) : comm_.engine().uneven(message.peer, came, message.piece.size);
}

void Walk::receive_now(const Message& message) {
  Engine& engine = comm_.engine();
  const Scope& scope = comm_.internal();
  OperationId posted = message.posted;
  if (status_.ok() && posted.value == 0) {
    BriefReceive brief{message.piece.address(), message.piece.size, scope.context, message.peer, message.tag, &scope};
    const bool received = [&] {
      const std::lock_guard lock(engine.lock());
      return engine.receive_brief(brief);
    }();
    if (received && brief.bytes == message.piece.size) return;
    if (received) return give_up(uneven(message, brief.bytes), engine.rank());
    posted = brief.posted;
  }
  AwaitedReceive receive{message.piece.address(),
                         status_.ok() ? message.piece.size : Bytes{},
                         {scope.context, message.peer.value, message.tag},
                         scope.group.get()};
  WhileNothingComes meanwhile;
  meanwhile.doubt = doubt();
  meanwhile.long_wait = [this] { post_all(); };
  Status status = posted.value != 0 ? wait_for_receive(engine, posted, receive, meanwhile.doubt)
                                    : receive_and_wait(engine, receive, scope, meanwhile);
  if (status.ok()) status = receive.outcome.status;
  if (status.ok() && receive.outcome.bytes == message.piece.size) return;
  if (status.ok() || (asks_ && status.code() == IST_ERR_TRUNCATE))
    return give_up(uneven(message, receive.outcome.bytes), engine.rank());
  const Rank cause = status.code() == IST_ERR_PEER_LEFT ? message.peer : engine.rank();
  give_up(status, receive.outcome.about.value_or(cause));
}

std::byte* Walk::room(Bytes bytes) {
  constexpr std::size_t kAligned = 64;
  const std::size_t wanted = (bytes.value + kAligned - 1) / kAligned * kAligned;
  if (wanted > room_.size() - used_) return nullptr;
  std::byte* found = room_.data() + used_;
  used_ += wanted;
  return found;
}

Status Walk::end() {
  ending_ = true;
  if (longer_ && open_receives() > 1) post_all();
  // Receives first: others may wait for room that they make.
  for (const bool sends : {false, true})
    for (Step step = 0; step < messages_.size(); ++step)
      if ((messages_[step].sent.value != 0) == sends) fulfil(step);
  return status_;
}

}  // namespace ist
