// The receiving end of a pipelined ring.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <new>
#include <utility>

#include "protocol/pipelined.hpp"
#include "protocol/ring_copies.hpp"

namespace ist {

RingReceiver::Message& RingReceiver::expect_by(LapPace<RingWay>::Next by, std::uint32_t operation, const Piece& piece) {
  Message& message = begin(operation);
  message.piece = piece;
  message.by = by;
  return message;
}

// As a new one.
RingReceiver::Message& RingReceiver::begin(std::uint32_t operation) {
  if (spare_.empty()) return messages_[operation] = Message{};
  Messages::node_type node = std::move(spare_.back());
  spare_.pop_back();
  node.key() = operation;
  const auto placed = messages_.insert(std::move(node));
  if (!placed.inserted) placed.position->second = Message{};
  return placed.position->second;
}

void RingReceiver::forget(std::uint32_t operation) {
  if (operation == last_operation_) last_ = nullptr;
  Messages::node_type node = messages_.extract(operation);
  if (node.empty() || spare_.size() == kMostSpare) return;
  node.mapped() = Message{};
  spare_.push_back(std::move(node));
}

// Not timed: what combines says nothing of how long copies take.
RingWay RingReceiver::expect_fold(std::uint32_t operation, const Piece& piece, const Fold& fold) {
  const RingWay way = pace_of(piece.size).way();
  expect_by({way, false, 0}, operation, piece).fold = fold;
  return way;
}

LapPace<RingWay>::Next RingReceiver::expect_of_host(std::uint32_t operation, const Piece& piece, bool timed) {
  LapPace<RingWay>::Next by = pace_of(piece.size).next();
  by.timed = by.timed || timed;
  expect_by(by, operation, piece);
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

bool RingReceiver::step(std::vector<Finished>& ended, int most) {
  ended.reserve(ended.size() + static_cast<std::size_t>(most));
  bool moved = false;
  for (int i = 0; i < most; ++i) {
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
  if (slot.header.bytes > kMostOfOneThread) return false;
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
    auto ticket = begin_copy(
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
    wait_for_copy(flight.ticket);
    ring_->release_oldest();
  });
  flights_.clear();
  for (const auto& [operation, message] : messages_) ended.push_back({operation, why, message.arrived});
  messages_.clear();
  last_ = nullptr;
}

}  // namespace ist
