#include "collective/shared_call.hpp"

#include <algorithm>
#include <mutex>

#include "memory/host/handing_copy.hpp"

namespace ist {
namespace {

// In one word: why a rank gave up, and because of whom. 0: it did not.
constexpr unsigned kRankBits = 24;
std::uint32_t in_one_word(Code code, Rank about) {
  return static_cast<std::uint32_t>(code) << kRankBits | (static_cast<std::uint32_t>(about.value) & ((1U << kRankBits) - 1));
}

// An action looks after so many steps whether it waits in vain.
constexpr unsigned kDoubtEverySteps = 256;

}  // namespace

// One that could not even be started leaves the lane as if it had been.
SharedCall::~SharedCall() {
  for (; next_ < steps_.size(); ++next_)
    if (steps_[next_].verb == Verb::say) lane_->skip(steps_[next_].turn);
  if (begun_) lane_->end_later(call_);
}

void SharedCall::give_up(const Status& why, Rank about) {
  if (!status_.ok()) return;
  status_ = why;
  about_ = about;
}

void SharedCall::add(const Step& step) {
  if (at_once_) {
    this->step(step);
  } else {
    steps_.push_back(step);
  }
}

void SharedCall::say_step(const SharedLane::Turn& turn, int round, const std::byte* from, const LaneBytes& size,
                          int readers) {
  try {
    add({Verb::say, {lane_->rank(), round, size, {}, Bytes{size.said}}, nullptr, from, turn, readers});
  } catch (...) {
    lane_->skip(turn);  // nothing was said: that is the last thing a step does
    throw;
  }
}

bool SharedCall::step(const Step& step) {
  switch (step.verb) {
    case Verb::say:
      return say_now(step);
    case Verb::copy_own:
    case Verb::combine_own:
      use_own(step);
      return true;
    default:
      return take_now(step);
  }
}

void SharedCall::use_own(const Step& step) {
  if (!status_.ok() || step.share.size == Bytes{}) return;
  if (step.verb == Verb::copy_own) {
    copy_across(step.to, step.bytes, step.share.size.value);
  } else {
    combine_on_host(combiner_, step.to, step.bytes, step.share.size);
  }
}

bool SharedCall::say_now(const Step& step) {
  bool free = lane_->is_free(step.turn);
  if (!free) {
    if (!at_once_ && !looks_in_vain()) return false;
    const Status vain = at_once_ ? lane_->wait_until_free(step.turn) : lane_->doubt_of_slot(call_);
    if (!at_once_ && vain.ok()) return false;
    free = vain.ok();
    if (!free) give_up(vain, lane_->engine().rank());
  }
  if (lane_->engine().parts().board.changes() != 0) look_for_readers(step);
  if (free) {
    lane_->say(step.turn, step.bytes, step.share.given, status_.ok() ? 0 : in_one_word(status_.code(), about_), at_once_);
  } else {
    lane_->skip(step.turn);  // in vain: nobody must find anything else there
  }
  return true;
}

// Of an action: is it time to ask whether it waits in vain?
bool SharedCall::looks_in_vain() { return lane_->engine().parts().board.changes() != 0 || ++looks_ % kDoubtEverySteps == 0; }

// One that has said its word before it went has done its part, or says whose fault it was.
void SharedCall::look_for_readers(const Step& step) {
  Engine& engine = lane_->engine();
  std::unique_lock lock(engine.lock(), std::defer_lock);
  if (at_once_) lock.lock();
  for (int reader = 0; reader < lane_->size(); ++reader) {
    if (!lane_->is_lost(reader, step.readers)) continue;
    const LaneSlot* const said = lane_->hear(reader, call_, step.share.round);
    if (said != nullptr) {
      check(*said, {reader, step.share.round, said->bytes, {}, {}});
    } else if (const Status lost = lane_->lost(reader); !lost.ok()) {
      give_up(lost, lost.code() == IST_ERR_PEER_LEFT ? lane_->to_world(reader) : engine.rank());
    }
  }
}

// Null: not yet, or never. At once whole_at_once() has looked for it.
const LaneSlot* SharedCall::hear(const Share& share) {
  const LaneSlot* slot = lane_->hear(share.from, call_, share.round);
  if (slot != nullptr || !at_once_) return slot;
  const Status there = lane_->wait_long(
      [&] {
        slot = lane_->hear(share.from, call_, share.round);
        return slot != nullptr;
      },
      share.from, call_);
  if (!there.ok()) give_up(there, there.code() == IST_ERR_PEER_LEFT ? lane_->to_world(share.from) : lane_->engine().rank());
  return slot;
}

bool SharedCall::is_there(const LaneSlot& slot, std::uint64_t bytes, int from) {
  const auto ready = [&] { return slot.ready.load(std::memory_order_acquire) >= bytes; };
  if (ready()) return true;
  if (!at_once_) return false;
  const Status there = lane_->wait(ready, from, call_);
  if (!there.ok()) give_up(there, lane_->engine().rank());
  return there.ok();
}

void SharedCall::check(const LaneSlot& slot, const Share& share) {
  if (!status_.ok()) return;
  Engine& engine = lane_->engine();
  if (slot.gave_up != 0) {
    const Rank about{static_cast<std::int32_t>(slot.gave_up & ((1U << kRankBits) - 1))};
    give_up(engine.gave_up(about, static_cast<Code>(slot.gave_up >> kRankBits)), about);
  } else if (slot.bytes != share.given) {
    give_up(engine.uneven(lane_->to_world(share.from), Bytes{slot.bytes.in_all}, Bytes{share.given.in_all}), engine.rank());
  }
}

bool SharedCall::take_now(const Step& step) {
  const Share& share = step.share;
  // Its own word it may have skipped.
  if (share.from == lane_->rank() && !status_.ok()) return true;
  const LaneSlot* const slot = hear(share);
  if (slot == nullptr) return at_once_ || in_vain(share);
  check(*slot, share);
  if (!status_.ok() || share.size == Bytes{}) return true;
  if (!at_once_ && !is_there(*slot, share.offset.value + share.size.value, share.from)) return in_vain(share);
  const std::byte* const said = slot->place_for(share.given.said);
  const std::uint64_t most = at_once_ ? kLanePart.value : share.size.value;
  for (std::uint64_t done = 0; done < share.size.value;) {
    const std::uint64_t part = std::min(most, share.size.value - done);
    const std::uint64_t place = share.offset.value + done;
    if (!is_there(*slot, place + part, share.from)) return true;
    if (step.verb == Verb::copy) {
      copy_across(step.to + done, said + place, part);
    } else {
      combine_on_host(combiner_, step.to + done, said + place, Bytes{part});
    }
    done += part;
  }
  return true;
}

// Of a step that is not over: true if it never will be.
bool SharedCall::in_vain(const Share& share) {
  if (!looks_in_vain()) return false;
  const int from = share.from;
  const Status vain = lane_->doubt(from, call_);
  if (vain.ok()) return false;
  // What it said before it went counts: it is looked for once more.
  const LaneSlot* const slot = lane_->hear(from, call_, share.round);
  if (slot != nullptr) {
    const bool is_other = slot->gave_up != 0 || slot->bytes != share.given;  // which tells more
    if (is_other || slot->ready.load(std::memory_order_acquire) >= share.offset.value + share.size.value) return false;
  }
  give_up(vain, vain.code() == IST_ERR_PEER_LEFT ? lane_->to_world(from) : lane_->engine().rank());
  return true;
}

Status SharedCall::end() {
  lane_->end(call_);
  if (look_around_) {
    const std::lock_guard lock(lane_->engine().lock());
    lane_->engine().look_around();
  }
  lane_->move_on_others();
  return status_;
}

// One that is abandoned says nothing any more: that this rank leaves is what the others are to hear.
bool SharedCall::go_on(bool abandoned) {
  if (abandoned) {
    begun_ = false;
    return true;
  }
  while (next_ < steps_.size()) {
    if (!step(steps_[next_])) return false;
    ++next_;
  }
  lane_->end_later(call_);
  begun_ = false;
  return true;
}

namespace {

class SharedAction final : public Action {
 public:
  SharedAction(std::unique_ptr<SharedCall> call, std::shared_ptr<SharedLane> lane)
      : lane_(std::move(lane)), call_(std::move(call)) {}
  Result<bool> step(Moment& now) override {
    if (!now.status.ok()) call_->fail(now.status);
    if (!call_->go_on(now.abandoned)) return false;
    if (!call_->status().ok()) return call_->status();
    return true;
  }
  // It says that it gave up; what the others say it waits for, and takes none of it.
  bool lets_go() const override { return true; }

 private:
  std::shared_ptr<SharedLane> lane_;  // goes last
  std::unique_ptr<SharedCall> call_;
};

}  // namespace

std::unique_ptr<Action> as_action(std::unique_ptr<SharedCall> call, std::shared_ptr<SharedLane> lane) {
  return std::make_unique<SharedAction>(std::move(call), std::move(lane));
}

}  // namespace ist
