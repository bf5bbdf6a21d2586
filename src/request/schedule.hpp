// What one rank does in a collective operation: sends, receives, reductions and copies, each after those it needs.
//
// Who calls this : collective/ fills it in; the engine runs it.
// Threads        : one fills it in; run under the world's lock.
// Ownership      : owns its scratch memory and the readiness of the user's buffers; the pieces are views.
// Errors         : what goes wrong while it is filled in is kept, and told to the other ranks when it runs: a rank that
//                  cannot take part still answers everybody, so that nobody waits for it.
#pragma once

#include <isthmus/collective.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "memory/fold.hpp"
#include "memory/pinned_pool.hpp"
#include "memory/reduction.hpp"
#include "memory/scratch_pool.hpp"
#include "request/action.hpp"
#include "request/group.hpp"
#include "request/laid_out.hpp"

namespace ist {

// A reduction as the user asked for it: one of the library's, or a function of the user's on host memory.
struct Combiner {
  Reduction reduction = Reduction::sum;
  ist_type type = IST_BYTE;
  ist_op_function function = nullptr;  // null: one of the library's
  void* user = nullptr;
  bool commutative = true;
};

// into = with (op) into, on the processor
void combine_on_host(const Combiner& combiner, std::byte* into, const std::byte* with, Bytes bytes);

class Schedule {
 public:
  using StepId = std::uint32_t;
  static constexpr StepId kNone = ~StepId{0};  // needs nothing; skipped in a list of needs

  enum class Verb : std::uint8_t { send, receive, combine, copy, act };
  struct Step {
    Verb verb = Verb::copy;
    Piece to;                 // received into, copied to, combined into
    Piece from;               // sent, copied, combined with: the left operand
    Rank peer;                // send, receive
    std::int32_t tag = 0;     // the same on both sides; act: which action
    std::uint32_t unmet = 0;  // needs that are not complete
    // send, receive: also after a failure as it was written down, so that what ranks agree on reaches all of them
    bool regardless = false;
    std::uint32_t fold = 0;  // receive: 1 + the number of what is done with the bytes
  };

  // Messages travel in this scope; texts name `call`.
  Schedule(std::string call, Scope scope, std::int32_t first_tag)
      : call_(std::move(call)), scope_(std::move(scope)), first_tag_(first_tag) {}

  // Numbers that keep the messages between two ranks apart within one call.
  static constexpr std::int32_t kTags = 2047;
  static std::int32_t tag(std::int32_t first_tag, std::int32_t number) { return first_tag + number % kTags; }
  StepId send(const Piece& from, Rank to, std::int32_t number, std::initializer_list<StepId> needs) {
    return add({Verb::send, {}, from, to, tag(number), 0}, needs);
  }
  StepId receive(const Piece& to, Rank from, std::int32_t number, std::initializer_list<StepId> needs) {
    return add({Verb::receive, to, {}, from, tag(number), 0}, needs);
  }
  // What comes is combined as `fold` says, and is in `room`, of the same size, only where it cannot be combined as it comes.
  StepId receive(const Fold& fold, const Piece& room, Rank from, std::int32_t number, std::initializer_list<StepId> needs) {
    folds_.push_back(fold);
    return add({Verb::receive, room, {}, from, tag(number), 0, false, static_cast<std::uint32_t>(folds_.size())}, needs);
  }
  const Fold* fold_of(const Step& step) const { return step.fold == 0 ? nullptr : &folds_[step.fold - 1]; }
  // to = from (op) to
  StepId combine(const Piece& to, const Piece& from, std::initializer_list<StepId> needs) {
    return add({Verb::combine, to, from, {}, 0, 0}, needs);
  }
  StepId copy(const Piece& to, const Piece& from, std::initializer_list<StepId> needs) {
    return add({Verb::copy, to, from, {}, 0, 0}, needs);
  }
  // An action may write further steps down, which begin when it is over.
  StepId act(std::unique_ptr<Action> action, std::initializer_list<StepId> needs) {
    actions_.push_back(std::move(action));
    return add({Verb::act, {}, {}, {}, static_cast<std::int32_t>(actions_.size() - 1), 0}, needs);
  }
  Action& action(const Step& step) { return *actions_[static_cast<std::size_t>(step.tag)]; }
  StepId regardless(StepId message) {
    steps_[message].regardless = true;
    return message;
  }
  // One more need of a step that is there already.
  void need(StepId step, StepId needed) {
    if (needed == kNone) return;
    needs_.emplace_back(needed, step);
    ++steps_[step].unmet;
  }
  void set_combiner(const Combiner& combiner) { combiner_ = combiner; }
  // The schedule keeps them until it is over.
  Piece keep(PinnedPool::Block block) {
    blocks_.push_back(std::move(block));
    return own_host_piece(blocks_.back().data(), blocks_.back().size());
  }
  Piece keep(ScratchPool::Block block) {
    device_blocks_.push_back(std::move(block));
    return device_blocks_.back().piece();
  }
  void keep(std::unique_ptr<LaidOut> laid) { laid_.push_back(std::move(laid)); }
  // What is unpacked when every step is over.
  std::unique_ptr<LaidOut> take_unpacked() {
    const auto found = std::find_if(laid_.begin(), laid_.end(), [](const auto& laid) { return laid->work.unpacks; });
    if (found == laid_.end()) return nullptr;
    std::unique_ptr<LaidOut> laid = std::move(*found);
    laid_.erase(found);
    return laid;
  }
  // Of a call that did not end well: a kernel that packs may still be behind the user's work.
  void let_go_of_blocks_later() {
    for (const auto& laid : laid_) laid->device.let_go_later();
  }
  // Asked now and then while nothing moves: why it never will. `asks`: while it tells others what all must hear.
  void doubt_by(std::function<Status(bool asks)> doubt) { doubt_ = std::move(doubt); }
  Status doubt(bool asks) const { return doubt_ ? doubt_(asks) : Status{}; }
  // Called under the engine's lock when the call has its name, and none of its steps has begun.
  void tell_of_start(std::function<void(OperationId)> hears) { hears_of_start_ = std::move(hears); }
  void start_as(OperationId call) const {
    if (hears_of_start_) hears_of_start_(call);
  }
  // Nothing starts before this has finished.
  void wait_for(Ticket ticket) {
    if (!ticket.empty()) before_.push_back(std::move(ticket));
  }
  // The first failure is this rank's result.
  void fail(const Status& why) {
    if (failure_.ok()) failure_ = why;
  }

  // Of what is not done yet nothing will be: no other rank does its part of it either.
  void call_off() { called_off_ = true; }
  bool called_off() const { return called_off_; }

  // What the operation's status tells.
  void set_carrier(ist_carrier carrier) { carrier_ = carrier; }
  ist_carrier carrier() const { return carrier_; }

  const std::string& call() const { return call_; }
  const Scope& scope() const { return scope_; }
  const Combiner& combiner() const { return combiner_; }
  const Status& failure() const { return failure_; }
  std::int32_t tag(std::int32_t number) const { return tag(first_tag_, number); }
  std::vector<Ticket>& before() { return before_; }
  Step& at(StepId step) { return steps_[step]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(steps_.size()); }
  // Those that need `step`; valid once every step is there and sort_needs() was called.
  std::span<const StepId> followers(StepId step) const {
    return {followers_.data() + first_follower_[step], first_follower_[step + 1] - first_follower_[step]};
  }
  void sort_needs();

 private:
  StepId add(const Step& step, std::initializer_list<StepId> needs);

  std::string call_;
  Scope scope_;
  std::int32_t first_tag_;
  Combiner combiner_;
  Status failure_;
  std::function<Status(bool)> doubt_;
  std::function<void(OperationId)> hears_of_start_;
  ist_carrier carrier_ = IST_CARRIER_NONE;
  bool called_off_ = false;
  std::vector<Ticket> before_;
  std::vector<Step> steps_;
  std::vector<std::pair<StepId, StepId>> needs_;  // the second needs the first
  std::vector<std::unique_ptr<Action>> actions_;
  std::vector<Fold> folds_;
  std::vector<StepId> followers_;
  std::vector<std::uint32_t> first_follower_;
  std::vector<PinnedPool::Block> blocks_;
  std::vector<ScratchPool::Block> device_blocks_;
  std::vector<std::unique_ptr<LaidOut>> laid_;  // of each side at most one
};

}  // namespace ist
