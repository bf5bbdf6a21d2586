#include "collective/shared_lane.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <utility>

#include "base/thread_sanitizer.hpp"
#include "collective/choose.hpp"
#include "request/wait.hpp"

namespace ist {
namespace {

static_assert(static_cast<std::uint64_t>(CollectiveProfile{}.shared_up_to) <= kLaneRoom.value);

// As long as a receive looks in slots alone, a moment between two looks; where ranks share processors hardly at all.
constexpr int kBriefLooks = 128;
constexpr int kBriefLooksShared = 8;
// A wait asks after so many looks, again and again, whether it is in vain.
constexpr unsigned kDoubtEveryLooks = 64;

Link* link_to(Engine& engine, Rank rank) {
  for (const auto& path : engine.parts().paths)
    if (Link* const link = path->link(rank); link != nullptr) return link;
  return nullptr;
}

Lane* lane_of(Engine& engine, Rank rank, int index) {
  for (const auto& path : engine.parts().paths)
    if (Lane* const lane = path->lane(rank, static_cast<std::size_t>(index)); lane != nullptr) return lane;
  return nullptr;
}

}  // namespace

SharedLane::SharedLane(Engine& engine, const Scope& scope, std::vector<Lane*> lanes)
    : LaneTurns(std::move(lanes), scope.group ? scope.group->from_world(engine.rank()) : engine.rank().value, scope.context),
      engine_(engine),
      group_(scope.group),
      brief_looks_(engine.sleeping_path() != nullptr ? kBriefLooksShared : kBriefLooks) {
  for (int other = 0; other < size(); ++other) {
    Link* const link = other == rank() ? nullptr : link_to(engine, to_world(other));
    if (link != nullptr && link->may_sleep) sleepers_.push_back(link);
  }
}

void SharedLane::note(std::uint64_t call, const Note& mine) {
  LaneNote& note = this->mine().notes[call % kLaneNotes];
  note.call.store(0, std::memory_order_relaxed);
  note.what.store(mine.what, std::memory_order_release);
  note.bytes.store(mine.bytes.value, std::memory_order_release);
  note.call.store(marked(call), std::memory_order_release);
}

void SharedLane::say(const Turn& turn, const std::byte* bytes, const LaneBytes& size, std::uint32_t gave_up, bool at_once) {
  // Another thread of this rank may receive what another rank sent because of this word, and that order goes through the other process.
  precedes(&engine_);
  write(turn, bytes, size, gave_up, this->size() == 2 ? &handing_[at_once ? 0 : 1] : nullptr);
  for (const Link* sleeper : sleepers_) sleeper->ring();
}

Status SharedLane::wait_long(const std::function<bool()>& ready, int from, std::uint64_t call) {
  Patience patience{engine_, ready};
  for (unsigned look = 1;; ++look) {
    bool moved = false;
    bool must_poll = false;
    Status vain;
    {
      const std::lock_guard lock(engine_.lock());
      moved = look_for_nobody(engine_);
      must_poll = engine_.must_poll();
      if (look % kDoubtEveryLooks == 0 || engine_.parts().board.changes() != 0) vain = doubt(from, call);
    }
    // What a rank said before it went, or before it made another call, counts.
    if (ready()) return {};
    if (!vain.ok()) return vain;
    if (must_poll)
      patience.after_look_at_words(moved);
    else
      patience.after_look(moved, false);
  }
}

// Nobody's bell rings for it.
Status SharedLane::wait_until_free(const Turn& turn) {
  const auto free = [this, &turn] { return is_free(turn); };
  Patience patience{engine_, free};
  for (unsigned look = 1; !free(); ++look) {
    bool moved = false;
    {
      const std::lock_guard lock(engine_.lock());
      moved = look_for_nobody(engine_);
      if (look % kDoubtEveryLooks == 0) IST_TRY(doubt_of_slot(turn.call));
    }
    patience.after_look_at_words(moved);
  }
  return {};
}

Status SharedLane::doubt_of_slot(std::uint64_t call) const {
  if (const Rank dead = engine_.parts().board.first_dead(); dead != kNobody) return engine_.died(dead);
  return compare(call);
}

Status SharedLane::lost(int reader) const { return engine_.check_source(to_world(reader).value, group_.get()); }

void SharedLane::move_on_others() {
  constexpr unsigned kOften = 16;
  if (++calls_ % kOften != 0) return;
  const std::lock_guard lock(engine_.lock());
  look_for_nobody(engine_);
}

Status SharedLane::makes_another(int rank) const {
  return {IST_ERR_ARGUMENT,
          engine_.parts().names[static_cast<std::size_t>(to_world(rank).value)] +
              " makes another collective call, or gives another root; all ranks must make the same calls in "
              "the same order"};
}

// Whoever has said something in a call comes past it only later; so what was said is found when it is looked for once more.
Status SharedLane::doubt(int from, std::uint64_t call) {
  if (engine_.parts().board.changes() != 0) IST_TRY(engine_.check_source(to_world(from).value, group_.get()));
  IST_TRY(compare(call));
  return is_past(from, call) ? makes_another(from) : Status{};
}

Status SharedLane::compare(std::uint64_t call, bool asks) const {
  const auto read = [&](int of) -> std::optional<Note> {
    const LaneNote& note = lane(of).notes[call % kLaneNotes];
    if (note.call.load(std::memory_order_acquire) != marked(call)) return std::nullopt;
    const Note found{note.what.load(std::memory_order_acquire), Bytes{note.bytes.load(std::memory_order_acquire)}};
    if (note.call.load(std::memory_order_relaxed) != marked(call)) return std::nullopt;
    return found;
  };
  const auto mine = read(rank());
  for (int other = 0; mine && other < size(); ++other) {
    const auto theirs = other == rank() ? std::nullopt : read(other);
    // A rank writes first which call it is, and then whether it asks.
    if (!theirs || (((theirs->what ^ mine->what) & ~kAsks) == 0 && theirs->bytes == mine->bytes)) continue;
    if (asks && (theirs->what & kAsks) != 0) continue;
    if (const std::uint64_t code = theirs->what >> kCodeFrom & kCodes; code != 0)
      return engine_.gave_up(to_world(other), static_cast<Code>(code));
    // Another call's bytes are no count of this one's.
    if (((theirs->what ^ mine->what) & kCall) != 0) return makes_another(other);
    if (theirs->bytes != mine->bytes) return engine_.uneven(to_world(other), theirs->bytes, mine->bytes);
    return makes_another(other);
  }
  return {};
}

std::uint32_t LanePool::offer() {
  const std::lock_guard lock(mutex_);
  std::uint32_t free = 0;
  for (std::size_t i = 0; i < kLanes; ++i) {
    const bool unused = !lanes_[i] || (lanes_[i].use_count() == 1 && lanes_[i]->idle());
    if (unused && (offered_ >> i & 1U) == 0) free |= 1U << i;
  }
  offered_ |= free;
  return free;
}

void LanePool::settle(std::uint32_t offered) {
  const std::lock_guard lock(mutex_);
  offered_ &= ~offered;
}

void LanePool::drop(std::shared_ptr<SharedLane> lane) {
  const std::lock_guard lock(mutex_);
  lane.reset();
}

int LanePool::first_of(std::uint32_t all) { return all == 0 ? kNone : std::countr_zero(all); }

std::shared_ptr<SharedLane> LanePool::make(const Scope& scope, int index) {
  const int size = scope.group ? scope.group->size() : engine_.size();
  if (index == kNone || size == 1) return nullptr;
  std::vector<Lane*> lanes;
  for (int rank = 0; rank < size; ++rank) {
    lanes.push_back(lane_of(engine_, scope.group ? scope.group->to_world(rank) : Rank{rank}, index));
    if (lanes.back() == nullptr) return nullptr;
  }
  const std::lock_guard lock(mutex_);
  return lanes_[static_cast<std::size_t>(index)] = std::make_shared<SharedLane>(engine_, scope, std::move(lanes));
}

}  // namespace ist
