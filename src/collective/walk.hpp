// The steps of a small blocking call on host memory, run as an algorithm writes them down: nothing is kept of most of them.
//
// Who calls this : Plan, in the place of a schedule. The messages are the same: other ranks may run the same call either way.
// Threads        : one; takes the engine's lock for each message.
// Ownership      : owns the sends that have not gone yet.
// Errors         : as of a schedule: the first failure is the result; the messages that follow say so, and what comes is
//                  forgotten, so that nobody waits for this rank.
//
// A receive waits until a step needs it, or until the end. That never closes a circle: sends up to the eager limit go without their
// receives, and an algorithm that walks writes nothing down that the others need before it can go on after what itself needs
// of them. But what a rank sends from a device may be announced, and its next step may need that it has gone: so where a wait takes long
// all receives that were put in are started. Longer sends may want a receive to go, to make room in a pair's slots at least: calls that have
// them (Plan::walk_longer) wait for sends at the end alone, after all receives.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <new>
#include <type_traits>
#include <vector>

#include "collective/communicator.hpp"
#include "request/schedule.hpp"

namespace ist {

class Walk {
 public:
  using Step = Schedule::StepId;
  // `call`: its number. `asks`: what it is for is that the ranks ask each other, so that another call that asks, too, is no reason to doubt.
  Walk(const Communicator& comm, const Combiner& combiner, std::uint64_t call, bool asks = false)
      : comm_(comm), combiner_(combiner), call_(call), asks_(asks) {}
  // Of one that was left by an exception: receives that were posted, and not yet waited for, are given up.
  ~Walk();
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  Step send(const Piece& from, Rank to, std::int32_t tag, std::initializer_list<Step> needs);
  Step receive(const Piece& to, Rank from, std::int32_t tag, std::initializer_list<Step> needs);
  Step copy(const Piece& to, const Piece& from, std::initializer_list<Step> needs);
  // to = from (op) to
  Step combine(const Piece& to, const Piece& from, std::initializer_list<Step> needs);
  // Returns when the step is over.
  void fulfil(Step step);
  // Room for partial results, until the end; null: there is none left here.
  std::byte* room(Bytes bytes);
  // Than what is eager: no step needs a send, and where several messages come all of their receives are started before the first is waited for, since
  // what comes without one is copied once more.
  // shows: what lies in memory that the others see they copy from there, and it goes into no slot.
  void is_longer(bool shows) {
    longer_ = true;
    shows_ = shows;
  }
  void keep(PinnedPool::Block block) { blocks_.push_back(std::move(block)); }
  void fail(const Status& why) { give_up(why, comm_.engine().rank()); }
  // Ends what is left, and tells how the call ended.
  Status end();

 private:
  struct Message {
    Piece piece;
    Rank peer;
    std::int32_t tag = 0;
    OperationId sent;         // null: a receive
    OperationId posted = {};  // of a receive that was started ahead
    bool over = false;
  };
  // In the order in which they were put in. Those of a call on few ranks take no memory from the heap.
  class Messages {
   public:
    std::size_t size() const { return few_ + rest_.size(); }
    // For one more, which then goes in without an exception.
    void make_room() {
      if (few_ == kFew && rest_.size() == rest_.capacity()) rest_.reserve(2 * rest_.size() + kFew);
    }
    Message& operator[](std::size_t at) {
      return at < kFew ? std::launder(reinterpret_cast<Message*>(room_.data()))[at] : rest_[at - kFew];
    }
    void push_back(const Message& message) {
      if (few_ == kFew) return rest_.push_back(message);
      ::new (room_.data() + few_ * sizeof(Message)) Message(message);
      ++few_;
    }

   private:
    static constexpr std::size_t kFew = 8;
    static_assert(std::is_trivially_copyable_v<Message>);
    std::size_t few_ = 0;
    std::vector<Message> rest_;
    alignas(Message) std::array<std::byte, kFew * sizeof(Message)> room_;
  };
  void fulfil(std::initializer_list<Step> needs) {
    for (const Step step : needs) fulfil(step);
  }
  void give_up(const Status& why, Rank about);
  Status uneven(const Message& message, Bytes came) const;
  std::function<Status()> doubt() const;  // null: nobody tells what it makes
  void receive_now(const Message& message);
  std::size_t open_receives();
  void post_all();
  void wait_for_send(const Message& message);

  const Communicator& comm_;
  const Combiner& combiner_;
  std::uint64_t call_;
  bool asks_;
  bool longer_ = false;
  bool shows_ = false;
  bool ending_ = false;
  Status status_;
  Rank about_;
  Messages messages_;  // a step's number is its place here; what is over at once has none
  std::vector<PinnedPool::Block> blocks_;
  std::size_t used_ = 0;
  alignas(64) std::array<std::byte, 4096> room_;
};

}  // namespace ist
