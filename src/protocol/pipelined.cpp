#include "protocol/pipelined.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "protocol/eager.hpp"

namespace ist {
namespace {

// Slots moved by one call: a rank that only tests, its other threads and its other peers do not wait for a whole message.
constexpr int kMostPerStep = 8;

// Longer slots may be copied by several threads.
constexpr std::uint32_t kMostAtOnce = 128 << 10;

// Copies already running touch the user's buffer: they end before the operation does. They are short, and depend on no peer.
void wait_for(Ticket& ticket) {
  for (;;) {
    const auto finished = is_finished(ticket);
    if (!finished.ok() || *finished) return;
    std::this_thread::yield();
  }
}

// As many bytes as the slot has, of those from `first` on: by copies of rows, or a kernel.
Result<Ticket> between_slot(const Kinds& kinds, const PackWork& work, std::uint64_t first, const Piece& slot) {
  Packing* const packing = kinds.find(work.memory.kind)->packing();
  return packing->pack_bytes(work.part(static_cast<std::int64_t>(first), slot.size).in(slot), Ticket{});
}

// Of a slot that is taken: where memory runs out the copy has failed, which is told in the slot's turn.
template <class Copy>
Result<Ticket> begun(const Copy& copy, const Status& no_memory) {
  try {
    return copy();
  } catch (const std::bad_alloc&) {
    return no_memory;
  }
}

}  // namespace

// Whose copies fill() makes, and times; and of which a window of the fewest messages has room in the ring's part. Longer ones gain nothing, since that
// is a small part of a window of theirs: of 1 MiB 56 GB/s in place of 59, of 2 and 4 MiB the same (AMD EPYC, Zen 5, a line in 0.06 us, 2026-11-29).
bool RingSender::runs_ahead(const Message& message) {
  return message.hosts && message.laid == nullptr && message.slot_bytes.value <= kMostAtOnce &&
         message.piece.size.value <= kMostPairRoom / kWindow;
}

void RingSender::add(Message message) {
  const bool other = !runs_ahead(message);
  messages_.push_back(std::move(message));
  others_ += other ? 1 : 0;
  if (of_window_ == 0 && messages_.size() >= kWindow) begin_window();
  ahead_ = ahead_ && others_ == 0;
}

void RingSender::begin_window() {
  of_window_ = kLongestWindow;
  ahead_ = others_ == 0 && running_ahead_.begin(messages_.front().way);
}

void RingSender::drop_front() {
  others_ -= runs_ahead(messages_.front()) ? 0 : 1;
  messages_.pop_front();
  next_ = Offset{};
  of_window_ = messages_.empty() ? 0 : of_window_ - std::min<std::size_t>(of_window_, 1);
  ahead_ = ahead_ && !messages_.empty();
  if (of_window_ == 0 && messages_.size() >= kWindow) begin_window();
}

Filling RingSender::filling_of(const Message& message) const {
  if (ahead_) return Filling::ahead;
  return message.way == RingWay::strings ? Filling::in_place : Filling::by_turns;
}

bool RingSender::step(std::vector<Finished>& ended) {
  ended.reserve(ended.size() + static_cast<std::size_t>(kMostPerStep));  // before anything is over, which is said once
  // Publishing frees a place in flight, so both are tried until neither moves; a host copy is published as soon as it is
  // made.
  bool moved = false;
  for (int i = 0; i < kMostPerStep; ++i) {
    const bool started = start_copies();
    const bool published = publish(ended);
    if (!started && !published) break;
    moved = true;
  }
  return moved;
}

bool RingSender::start_copies() {
  if (messages_.empty() || flights_.full()) return false;
  Message& message = messages_.front();
  const auto slot = ring_->start_next(message.slot_bytes, filling_of(message));
  if (!slot) return false;
  const Bytes length = smaller(smaller(message.slot_bytes, slot->capacity), message.piece.size - (next_ - Offset{}));
  const Piece source = message.piece.part(next_, length);
  Flight flight{Ticket{},
                {message.receiver_op, static_cast<std::uint32_t>(length.value), next_.value, slot->place, 0},
                message.sender_op,
                false,
                {}};
  auto ticket = Result<Ticket>{Ticket{}};
  if (message.laid == nullptr && message.hosts && length.value <= kMostAtOnce)
    flight.header.nanoseconds = fill(message, slot->data, source);
  else
    ticket = begun(
        [&] {
          if (message.laid != nullptr)
            return between_slot(*kinds_, *message.laid, next_.value, host_piece(slot->data, length));
          return kinds_->copier(KindId::host, source.kind)->copy(host_piece(slot->data, length), source, Ticket{});
        },
        no_memory_);
  next_ += length;
  if (ticket.ok()) {
    flight.ticket = std::move(*ticket);
  } else {
    flight.failed = ticket.status();
  }
  flight.last = !ticket.ok() || next_ == Offset{} + message.piece.size;
  if (flight.last) drop_front();
  flights_.push_back(std::move(flight));
  return true;
}

// How long it took, where that is wanted; never 0 then.
std::uint64_t RingSender::fill(const Message& message, std::byte* to, const Piece& from) {
  const bool timed = running_ahead_.is_timed() || message.timed;
  const auto begun = timed ? Clock::now() : Clock::time_point{};
  if (message.way == RingWay::strings)
    copy_by_string(to, from.address(), from.size.value);
  else
    handing_.copy(to, from.address(), from.size.value);
  if (!timed) return 0;
  const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun).count();
  if (runs_ahead(message) && from.size == message.slot_bytes)
    learn(message.way, static_cast<double>(took) / static_cast<double>(from.size.value));
  return message.timed ? static_cast<std::uint64_t>(std::max<std::int64_t>(took, 1)) : 0;
}

// What is left of a window that is slow has slots that are near.
void RingSender::learn(RingWay way, double pace) {
  if (!ahead_)
    running_ahead_.filled_near(way, pace);
  else
    ahead_ = running_ahead_.filled_ahead(way, pace);
}

bool RingSender::publish(std::vector<Finished>& ended) {
  if (flights_.empty()) return false;
  Flight& flight = flights_.front();
  if (flight.failed.ok()) {
    const auto finished = is_finished(flight.ticket);
    if (finished.ok() && !*finished) return false;
    if (!finished.ok()) flight.failed = finished.status();
  }
  if (!flight.failed.ok()) flight.header = {flight.header.receiver_op, 0, kSlotFailed};
  ring_->publish_oldest(flight.header);
  const Flight done = std::move(flight);
  flights_.pop_front();
  if (!done.failed.ok()) give_up(done.sender_op);
  if (done.last || !done.failed.ok()) ended.push_back({done.sender_op, done.failed, Bytes{}});
  return true;
}

// The front message failed: what is not started never will be, and what is running ends before its buffer is given back.
// Their slots still come, and say that nothing is in them: the reader has been told and forgets the message, whose number another one
// may have by the time it sees them.
void RingSender::give_up(std::uint32_t sender_op) {
  flights_.each([&](Flight& flight) {
    if (flight.sender_op != sender_op) return;
    wait_for(flight.ticket);
    flight = Flight{Ticket{}, {flight.header.receiver_op, 0, kSlotVoid}, sender_op, false, {}};  // told once is enough
  });
  if (!messages_.empty() && messages_.front().sender_op == sender_op) drop_front();
}

void RingSender::abandon(const Status& why, std::vector<Finished>& ended) {
  ended.reserve(ended.size() + flights_.size() + messages_.size());
  flights_.each([&](Flight& flight) {
    wait_for(flight.ticket);
    if (flight.last) ended.push_back({flight.sender_op, why, Bytes{}});
  });
  for (const Message& message : messages_) ended.push_back({message.sender_op, why, Bytes{}});
  flights_.clear();
  messages_.clear();
  others_ = of_window_ = 0;
  ahead_ = false;
  next_ = Offset{};
}

void RingReceiver::expect_by(LapPace<RingWay>::Next by, std::uint32_t operation, const Piece& piece,
                             std::shared_ptr<const PackWork> laid) {
  messages_[operation] = {piece, Bytes{}, {}, by, Bytes{}, {}, {}, std::move(laid), {}, {}};
  last_ = nullptr;
}

// Not timed: what combines says nothing of how long copies take.
RingWay RingReceiver::expect_fold(std::uint32_t operation, const Piece& piece, const Fold& fold) {
  const RingWay way = pace_of(piece.size).way();
  expect_by({way, false, 0}, operation, piece, nullptr);
  messages_[operation].fold = fold;
  return way;
}

LapPace<RingWay>::Next RingReceiver::expect_of_host(std::uint32_t operation, const Piece& piece, bool timed) {
  LapPace<RingWay>::Next by = pace_of(piece.size).next();
  by.timed = by.timed || timed;
  expect_by(by, operation, piece, nullptr);
  return by;
}

LapPace<RingWay>& RingReceiver::pace_of(Bytes size) {
  const auto octave = static_cast<std::size_t>(std::bit_width(size.value >> 17U));
  return paces_[std::min(octave, kPaces - 1)];
}

std::vector<std::uint32_t> RingReceiver::expected() const {
  std::vector<std::uint32_t> all;
  for (const auto& [operation, message] : messages_) all.push_back(operation);
  return all;
}

bool RingReceiver::step(std::vector<Finished>& ended) {
  ended.reserve(ended.size() + static_cast<std::size_t>(kMostPerStep));
  bool moved = false;
  for (int i = 0; i < kMostPerStep; ++i) {
    bool again = false;
    if (!flights_.full()) {
      if (const auto slot = ring_->take_next()) {
        again = true;
        if (flights_.empty() && take_at_once(*slot, ended)) {
          moved = true;
          continue;
        }
        start(*slot);
      }
    }
    if (!flights_.empty()) {
      Flight& flight = flights_.front();
      const auto finished = is_finished(flight.ticket);
      if (!finished.ok() || *finished) {
        ring_->release_oldest();
        Message* const message = flight.begun == Clock::time_point{} ? nullptr : message_of(flight.header.receiver_op);
        if (message != nullptr) note_copy(*message, flight.header, flight.begun);
        account(flight.header, finished.status(), ended);
        flights_.pop_front();
        again = true;
      }
    }
    if (!again) break;
    moved = true;
  }
  return moved;
}

// Most slots are for the message that the one before was for. What is in a map stays where it is.
RingReceiver::Message* RingReceiver::message_of(std::uint32_t operation) {
  if (last_ != nullptr && last_operation_ == operation) return last_;
  const auto found = messages_.find(operation);
  last_operation_ = operation;
  last_ = found == messages_.end() ? nullptr : &found->second;
  return last_;
}

// The copies alone: neither a late sender nor other messages between them count. Both sides copy at the same time, so the slower one's copies
// count; that the other one's first or last slot is waited for is so of a message by itself, and not of one behind another. Where the sender did
// not tell, its copies count as much as these.
void RingReceiver::tell_times(const Message& message, Finished& end) {
  if (message.first.value == 0) return;
  const double emptying = std::chrono::duration<double>(message.copying).count();
  const double told = std::chrono::duration<double>(message.filling).count();
  const double filling = told > 0 ? told : emptying;
  end.seconds = std::max(emptying, filling);
  end.both = emptying + filling;
}

void RingReceiver::note_copy(Message& message, const SlotHeader& slot, Clock::time_point begun) {
  if (message.first.value == 0) message.first = Bytes{slot.bytes};
  message.copying += Clock::now() - begun;
  message.filling += std::chrono::nanoseconds(slot.nanoseconds);
}

// Into host memory, by this thread: what a slot costs beside its bytes, some 100 ns the long way, a 64 KiB one feels.
bool RingReceiver::take_at_once(const FullSlot& slot, std::vector<Finished>& ended) {
  Message* const message = message_of(slot.header.receiver_op);
  if (message == nullptr || message->piece.kind != KindId::host) return false;
  if (slot.header.offset >= kSlotVoid || !message->failed.ok()) return false;
  if (message->fold && fold_slot(*message, slot)) {
    ring_->release_oldest();
    account(slot.header, {}, ended);
    return true;
  }
  if (slot.header.bytes > kMostAtOnce) return false;
  const auto begun = message->by.timed ? Clock::now() : Clock::time_point{};
  std::byte* const to = message->piece.address() + slot.header.offset;
  if (message->by.way == RingWay::strings)
    copy_by_string(to, slot.data, slot.header.bytes);
  else
    copy_across(to, slot.data, slot.header.bytes);
  if (message->by.timed) note_copy(*message, slot.header, begun);
  const Status noted = message->fold ? put_aside(*message, slot.header) : Status{};
  ring_->release_oldest();
  account(slot.header, noted, ended);
  return true;
}

// False: it does not end between elements.
bool RingReceiver::fold_slot(const Message& message, const FullSlot& slot) {
  if (!message.fold->takes(slot.header.offset, slot.header.bytes)) return false;
  (*message.fold)(slot.header.offset, slot.data, slot.header.bytes);
  return true;
}

// Slots come in the order of their bytes, so that those beside each other, which share an element, become one.
Status RingReceiver::put_aside(Message& message, const SlotHeader& slot) try {
  const std::uint64_t end = slot.offset + slot.bytes;
  if (!message.aside.empty() && message.aside.back().second == slot.offset)
    message.aside.back().second = end;
  else
    message.aside.emplace_back(slot.offset, end);
  return {};
} catch (const std::bad_alloc&) {
  return no_memory_;
}

void RingReceiver::fold_aside(const Message& message) {
  for (const auto& [from, to] : message.aside) (*message.fold)(from, message.piece.address() + from, to - from);
}

void RingReceiver::start(const FullSlot& slot) {
  Flight flight{Ticket{}, slot.header, {}};
  Message* const found = slot.header.offset == kSlotVoid ? nullptr : message_of(slot.header.receiver_op);
  const bool wanted = found != nullptr && found->failed.ok();
  if (wanted && slot.header.offset == kSlotFailed) {
    // Known from here on, and not only in its turn: the slots behind it are dropped, or a copy would outlive the operation.
    found->failed = {IST_ERR_DEVICE, sender_ + " could not read its buffer; its own error says why"};
  } else if (wanted) {
    const Bytes length{slot.header.bytes};
    if (found->by.timed) flight.begun = Clock::now();
    const Piece to = found->piece.part(Offset{slot.header.offset}, length);
    const auto empty = [&](const Piece& from) {
      if (found->laid == nullptr) return kinds_->copier(to.kind, KindId::host)->copy(to, from, Ticket{});
      return between_slot(*kinds_, *found->laid, slot.header.offset, from);
    };
    auto ticket = begun(
        [&]() -> Result<Ticket> {
          if (found->fold) IST_TRY(put_aside(*found, slot.header));
          return empty(host_piece(slot.data, length));
        },
        no_memory_);
    if (ticket.ok()) {
      flight.ticket = std::move(*ticket);
    } else {
      found->failed = ticket.status();
    }
  }
  flights_.push_back(std::move(flight));
}

void RingReceiver::account(const SlotHeader& header, const Status& copied, std::vector<Finished>& ended) {
  Message* const found = header.offset == kSlotVoid ? nullptr : message_of(header.receiver_op);
  if (found == nullptr) return;
  Message& message = *found;
  if (!copied.ok() && message.failed.ok()) message.failed = copied;
  message.arrived = header.offset == kSlotFailed ? message.piece.size : message.arrived + Bytes{header.bytes};
  if (message.arrived < message.piece.size) return;
  if (message.fold && message.failed.ok()) fold_aside(message);
  Finished end{header.receiver_op, message.failed, message.arrived, 0, 0, message.laid != nullptr || message.fold};
  tell_times(message, end);
  if (end.seconds > 0 && message.failed.ok())
    pace_of(message.piece.size).took(message.by, end.seconds / static_cast<double>(message.arrived.value));
  ended.push_back(std::move(end));
  forget(header.receiver_op);
}

void RingReceiver::abandon(const Status& why, std::vector<Finished>& ended) {
  ended.reserve(ended.size() + messages_.size());
  flights_.each([&](Flight& flight) {
    wait_for(flight.ticket);
    ring_->release_oldest();
  });
  flights_.clear();
  for (const auto& [operation, message] : messages_) ended.push_back({operation, why, message.arrived});
  messages_.clear();
  last_ = nullptr;
}

}  // namespace ist
