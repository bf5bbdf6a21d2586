#include "memory/transfer.hpp"

#include <array>
#include <chrono>
#include <optional>

namespace ist {
namespace {

constexpr int kStages = 2;
constexpr Bytes kChunk = mebibytes(1);
// Other transfers give their blocks back within this time, or wait for something themselves. Then pageable memory has to do.
constexpr std::chrono::milliseconds kPatienceWithOthers{1};
constexpr Bytes kPageableChunk = kibibytes(64);

// True if the ticket has finished, or was empty from the start.
Result<bool> over(Ticket& ticket) {
  if (ticket.empty()) return true;
  return ticket.kind()->finished(ticket);
}

// CUDA's null stream, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD: handles of another stream in each context.
constexpr std::uint64_t kLastDefaultQueue = 2;

// One queue holds the work of both sides: its marker is enough.
bool share_queue(const Kinds& kinds, const Piece& one, const Piece& other) {
  if (one.ready || one.kind != other.kind || one.queue != other.queue || one.device != other.device) return false;
  if (one.queue > kLastDefaultQueue) return true;
  MemoryKind* const kind = one.kind == KindId::host ? nullptr : kinds.find(one.kind);
  return kind == nullptr || kind->together(one, other);
}

}  // namespace

// Two blocks, so that while one is being emptied into the destination the other is being filled from the source.
struct Transfer::Staging {
  struct Stage {
    enum class State : std::uint8_t {
      idle,     // the block is free, or not taken from the pool yet
      filling,  // bytes on the way from the source
      draining  // bytes on the way to the destination
    } state = State::idle;
    PinnedPool::Block block;
    Ticket ticket;
    Offset at;
    Bytes length;
  };
  PinnedPool* pool;
  std::array<Stage, kStages> stages;
  Bytes chunk;
  Offset next;                                                       // first byte not yet asked of the source
  Bytes delivered;                                                   // bytes that have arrived
  std::optional<std::chrono::steady_clock::time_point> waits_since;  // for the pool

  ~Staging() {
    for (Stage& stage : stages) pool->retire(std::move(stage.block), std::move(stage.ticket));
  }
};

void Transfer::StagingDeleter::operator()(Staging* staging) const { delete staging; }

Transfer::Transfer(const Kinds& kinds, PinnedPool& pool, const Piece& to, const Piece& from)
    : kinds_(&kinds), pool_(&pool), to_(to), from_(from) {
  kinds.mark_used(to.kind);
  kinds.mark_used(from.kind);
}

Transfer::Transfer(const Kinds& kinds, PinnedPool& pool, const Piece& to, const Piece& from, Ticket to_ready,
                   Ticket from_ready)
    : Transfer(kinds, pool, to, from) {
  to_ready_ = std::move(to_ready);
  from_ready_ = std::move(from_ready);
  readiness_known_ = true;
}

Result<bool> Transfer::step() {
  Result<bool> result = false;
  if (state_ == State::fresh)
    if (Status started = start(); !started.ok()) result = std::move(started);
  if (state_ == State::direct) result = step_direct();
  if (state_ == State::staged) result = step_staged();
  if (!result.ok()) {
    failure_ = result.status();
    state_ = State::ending;
  }
  if (state_ == State::ending) {
    if (!over_everywhere()) return false;
    state_ = State::failed;
    staging_.reset();
  }
  if (state_ == State::failed) return failure_;
  return state_ == State::done;
}

// After an error: the owner of the pieces may free them when he hears of it, so the other stages are waited for first. What
// they say of errors adds nothing to the first one.
bool Transfer::over_everywhere() {
  bool all = true;
  // Of one copy, behind which the word could not be changed.
  if (const auto copied = over(ticket_); copied.ok() && !*copied) all = false;
  if (!staging_) return all;
  for (Staging::Stage& stage : staging_->stages) {
    const auto done = over(stage.ticket);
    if (done.ok() && !*done) all = false;
    if (!done.ok()) stage.ticket = Ticket{};
  }
  return all;
}

Status Transfer::start() {
  if (to_.size != from_.size)
    return {IST_ERR_INTERNAL, "a copy of " + std::to_string(from_.size.value) + " bytes into " +
                                  std::to_string(to_.size.value) + " bytes was asked for; both must be equal"};
  if (to_.size.value == 0) {
    state_ = State::done;
    return {};
  }
  if (!readiness_known_) IST_TRY(ask_readiness());
  copier_ = kinds_->copier(to_, from_);
  if (copier_) {
    state_ = State::direct;
    return {};
  }
  if (!kinds_->find(to_.kind) || !kinds_->find(from_.kind))
    return {IST_ERR_KIND, "a copy from kind " + std::to_string(static_cast<int>(from_.kind)) + " to kind " +
                              std::to_string(static_cast<int>(to_.kind)) + " was asked for, and one of them is not loaded"};
  staging_.reset(new Staging{pool_, {}, smaller(smaller(kChunk, to_.size), pool_->limit()), Offset{}, Bytes{}, {}});
  state_ = State::staged;
  return {};
}

// A word that is changed behind the bytes is not put into a user's queue, and would have to wait for it.
bool Transfer::goes_into_queue() const {
  const bool one_queue = from_.ready || to_.ready || share_queue(*kinds_, from_, to_);
  return may_go_into_queue_ && one_queue && !word_ && from_.kind == to_.kind && from_.kind != KindId::host &&
         kinds_->copier(to_, from_) != nullptr;
}

Status Transfer::ask_readiness() {
  const bool later = goes_into_queue();
  auto from_ready = later ? kinds_->in_order(from_) : kinds_->ready(from_);
  if (!from_ready.ok()) return from_ready.status();
  from_ready_ = std::move(from_ready).value();
  if (share_queue(*kinds_, from_, to_)) return {};
  auto to_ready = later ? kinds_->in_order(to_) : kinds_->ready(to_);
  if (!to_ready.ok()) return to_ready.status();
  to_ready_ = std::move(to_ready).value();
  return {};
}

// A copy takes one ticket to come after, and between devices that is the source's: the device itself waits, and nobody has
// to ask. The rest is waited for by asking: the destination's where both have pending work; work of another kind than the
// copier; and all of it where one side is host memory, since a driver may hold the thread that starts a copy of pageable
// memory until everything before that copy is over.
Result<bool> Transfer::step_direct() {
  if (!copying_) {
    const bool with_host = to_.kind == KindId::host || from_.kind == KindId::host;
    for (Ticket* ready : {&to_ready_, &from_ready_}) {
      const bool only = ready == &from_ready_ || from_ready_.empty();
      if (only && !with_host && ready->kind() == copier_) continue;
      auto done = over(*ready);
      if (!done.ok() || !*done) return done;
    }
    const Ticket& after = from_ready_.empty() ? to_ready_ : from_ready_;
    auto ticket = copier_->copy(to_, from_, after);
    if (!ticket.ok()) return ticket.status();
    ticket_ = std::move(ticket).value();
    copying_ = true;
    IST_TRY(start_change());
  }
  // What is behind first: where that is over the copy is, and no driver has to be asked.
  for (Ticket* each : {&change_ticket_, &ticket_}) {
    auto done = over(*each);
    if (!done.ok() || !*done) return done;
  }
  state_ = State::done;
  return true;
}

Status Transfer::start_change() {
  if (!word_ || word_->word.kind != copier_->id() || copier_->word_changes() == nullptr) return {};
  auto behind = copier_->word_changes()->change_behind(word_->change, word_->word, ticket_);
  if (!behind.ok()) return behind.status();
  change_ticket_ = std::move(behind).value();
  has_changed_ = !change_ticket_.empty();
  return {};
}

Result<bool> Transfer::step_staged() {
  // Asking also frees the tickets early; a chunk whose copy starts before is ordered behind them on the device.
  for (Ticket* ready : {&from_ready_, &to_ready_})
    if (auto done = over(*ready); !done.ok()) return done;
  for (bool moved = true; moved;) {
    moved = false;
    for (int i = 0; i < kStages; ++i) {
      auto advanced = advance(i);
      if (!advanced.ok()) return advanced;
      moved = moved || *advanced;
    }
  }
  if (staging_->delivered == to_.size) {
    state_ = State::done;
    staging_.reset();
  }
  return state_ == State::done;
}

// Gives the stage a block, if one can be had now. The pool being full is no error as long as its limit allows a block at all: other
// transfers give theirs back. But whoever holds them may wait for another rank, which may wait for this copy.
Result<bool> Transfer::take_block(int index) {
  Staging& staging = *staging_;
  auto block = pool_->take(staging.chunk);
  if (!block.ok() && PinnedPool::rounded(staging.chunk) > pool_->limit()) return block.status();
  if (!block.ok()) {
    for (const Staging::Stage& each : staging.stages)
      if (!each.block.empty()) return false;
    const auto now = std::chrono::steady_clock::now();
    if (!staging.waits_since) staging.waits_since = now;
    if (now - *staging.waits_since < kPatienceWithOthers) return false;
    block = pool_->take_pageable(smaller(staging.chunk, kPageableChunk));
    if (!block.ok()) return block.status();
  }
  staging.waits_since.reset();
  staging.stages[static_cast<std::size_t>(index)].block = std::move(block).value();
  return true;
}

// Starts to fill an idle stage; false if nothing is left, or no block can be had now.
Result<bool> Transfer::fill(int index) {
  Staging& staging = *staging_;
  Staging::Stage& stage = staging.stages[static_cast<std::size_t>(index)];
  const Bytes left = from_.size - Bytes{staging.next.value};
  if (left.value == 0) return false;
  // One chunk comes in at a time: two at once would share the way in, arrive together, and leave the way out idle meanwhile.
  for (const Staging::Stage& each : staging.stages)
    if (each.state == Staging::Stage::State::filling) return false;
  if (stage.block.empty()) {
    auto taken = take_block(index);
    if (!taken.ok() || !*taken) return taken;
  }
  stage.at = staging.next;
  stage.length = smaller(left, smaller(staging.chunk, stage.block.size()));
  const Piece block = host_piece(stage.block.data(), stage.length);
  auto ticket = kinds_->find(from_.kind)->copy(block, from_.part(stage.at, stage.length), from_ready_);
  if (!ticket.ok()) return ticket.status();
  stage.ticket = std::move(ticket).value();
  stage.state = Staging::Stage::State::filling;
  staging.next += stage.length;
  return true;
}

// Moves one stage on by one state if it can be; true if it moved.
Result<bool> Transfer::advance(int index) {
  using StageState = Staging::Stage::State;
  Staging::Stage& stage = staging_->stages[static_cast<std::size_t>(index)];
  if (stage.state == StageState::idle) return fill(index);
  auto done = over(stage.ticket);
  if (!done.ok() || !*done) return done;
  if (stage.state == StageState::draining) {
    staging_->delivered += stage.length;
    stage.state = StageState::idle;
    return true;
  }
  const Piece block = host_piece(stage.block.data(), stage.length);
  auto ticket = kinds_->find(to_.kind)->copy(to_.part(stage.at, stage.length), block, to_ready_);
  if (!ticket.ok()) return ticket.status();
  stage.ticket = std::move(ticket).value();
  stage.state = StageState::draining;
  return true;
}

}  // namespace ist
