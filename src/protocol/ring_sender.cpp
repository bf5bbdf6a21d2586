// The sending end of a pipelined ring.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "protocol/pipelined.hpp"
#include "protocol/ring_copies.hpp"

namespace ist {

// Whose copies fill() makes, and judges; but bytes with which the ring, where it goes round all of its memory, would have to share the caches: below
// kLong those that were not sent lately. Windows of 64, just written, of 256 and 512 KiB 20.5 and 41 us a message, near 11 and 35, of 1 MiB 81 and 84; out of
// one place or two far is quicker, out of four as quick. Above it those of several places: of 2 and 4 MiB out of one place 28.5 and 55 us far, near
// 33.5 and 68, but out of four and two places 51 and 98, near 42 and 85; of 1 MiB out of two, four and eight as quick (AMD EPYC, Zen 5, a line in 0.06 us, medians of three
// to five runs, 2026-11-30).
bool RingSender::runs_ahead(const Message& message) {
  if (!message.hosts || message.laid != nullptr || message.slot_bytes.value > kMostOfOneThread) return false;
  if (message.piece.size < kLong) return message.again;
  return message.like_last || message.piece.size == kLong;
}

bool RingSender::has_bytes_of(const Message& other, const Message& message) {
  return other.hosts && other.laid == nullptr && other.piece.address() == message.piece.address() &&
         other.piece.size == message.piece.size;
}

void RingSender::add(Message message) {
  if (message.hosts && message.laid == nullptr) message.again = sources_.use(message.piece.address(), message.piece.size);
  message.like_last = messages_.empty() || has_bytes_of(messages_.back(), message);
  if (messages_.empty() && several_) several_ = !ring_->is_empty();
  messages_.push_back(std::move(message));
  count(messages_.back(), true);
  several_ = several_ || messages_.size() > 1;
  if (of_window_ == 0 && messages_.size() >= kWindow) begin_window();
  ahead_ = ahead_ && others_ == 0;
}

// It joins the messages, or leaves them.
void RingSender::count(const Message& message, bool joins) {
  const auto change = [&](std::size_t& number, bool is_one) {
    if (is_one) number = joins ? number + 1 : number - 1;
  };
  change(others_, !runs_ahead(message));
  change(short_ones_, !takes_four(message));
  change(own_, has_own_bytes(message));
}

// Between hosts, of the sizes that run ahead only out of places that were sent from lately, and not out of such a one?
bool RingSender::has_own_bytes(const Message& message) {
  return message.hosts && message.laid == nullptr && !message.again && message.piece.size < kLong;
}

// Are there two slots and more in it, of four times as many bytes as are usual?
bool RingSender::takes_four(const Message& message) {
  const std::uint64_t four = 4 * message.slot_bytes.value;
  return message.hosts && message.laid == nullptr && four <= kMostOfOneThread && four < message.piece.size.value;
}

void RingSender::begin_window() {
  of_window_ = kLongestWindow;
  ahead_ = others_ == 0 && running_ahead_.begin(messages_.front().way);
}

// Where no turn is under way those are told off that will take turns until all of them have been started: what is added later begins behind them, so that each
// part of the bytes has all its turns together. Of 64 messages of 2 and 4 MiB out of one buffer 60 GB/s, one after the other 53; out of buffers of their own
// there would be nothing to be read again, and the first ones would be there last (AMD EPYC, Zen 5, a line in 0.06 us, 2026-11-29). In windows that run ahead of 512 KiB
// 6.97 us a message in place of 7.4, into two to eight places 7.6 to 8.5 in place of 9.4 to 9.0, into 32 9.2 and 9.4; of 256 KiB 3.67 and 3.60 (2026-11-30).
RingSender::Message* RingSender::next_in_turn() {
  if (messages_.empty()) return nullptr;
  if (in_turns_ == 0) {
    const Message& front = messages_.front();
    const auto is_alike = [&](const Message& other) { return has_bytes_of(other, front); };
    const auto other = front.piece.size < kLeastInTurns ? messages_.begin()
                                                        : std::find_if_not(messages_.begin(), messages_.end(), is_alike);
    in_turns_ = std::clamp<std::size_t>(static_cast<std::size_t>(other - messages_.begin()), 1, kLongestWindow);
    turn_ = 0;
  }
  return &messages_[turn_];
}

void RingSender::drop(std::size_t number) {
  count(messages_[number], false);
  messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(number));
  if (number < in_turns_) --in_turns_;
  if (number < turn_) --turn_;
  if (turn_ >= in_turns_) turn_ = 0;
  of_window_ = messages_.empty() ? 0 : of_window_ - std::min<std::size_t>(of_window_, 1);
  ahead_ = ahead_ && !messages_.empty();
  if (number == 0 && !messages_.empty()) lead(messages_.front());
  if (of_window_ == 0 && messages_.size() >= kWindow) begin_window();
}

// There is none before it any more. Where it had other bytes than that a window of its own may begin.
void RingSender::lead(Message& front) {
  if (front.like_last) return;
  const std::size_t others = others_;
  count(front, false);
  front.like_last = true;
  count(front, true);
  if (others_ == 0 && others > 0) of_window_ = 0;
}

Filling RingSender::filling_of(const Message& message) const {
  if (ahead_) return Filling::ahead;
  if (message.way != RingWay::strings) return Filling::by_turns;
  // Windows of 256 and 512 KiB of bytes just written 13.5 and 33 us a message in four slots, 14.6 to 15.5 and 40 in eight: beside what they are copied from and to fewer
  // lines stay in the second caches. A message of 256 KiB by itself 5.6 and 5.2, since its sender has to wait (AMD EPYC, Zen 5, a line in 0.06 us, medians of six to
  // twelve runs in turn, in a phase in which others used the shared cache, 2026-11-30).
  return several_ && own_ == messages_.size() ? Filling::few : Filling::in_place;
}

// Windows of 256 and 512 KiB 66 and 65 GB/s by 64 KiB, 68 and 69 by 128 (means of four runs), of 1, 2 and 4 MiB 56, 52 and 51, and 58, 54 and 54; one of 1 MiB
// by itself takes 21.3 and 21.4 us. But one of 256 KiB takes 5.4 and 5.7, since nobody empties a slot before it is full (AMD EPYC, Zen 5, a line in 0.06 us,
// 2026-11-29). In pieces of 256 KiB windows of 512 KiB take 7.2 us and of 1, 2 and 4 MiB 16.3, 33.4 and 66.5, where pieces of 128 KiB take 7.5 and 16.6, 34.8 and
// 70.3 (medians of four and of seven runs, 2026-11-30): half as often what either end does for a piece, some 0.07 us at the reader. Not where shorter messages are
// among those of a window, since a piece of another size waits until those before it are released; and of a message by itself from 2 MiB on. Neither beyond what
// the ring goes round otherwise, which is a job's memory.
Bytes RingSender::most_in_slot(const Message& message) const {
  const bool is_long = ahead_ || message.piece.size >= kLong;
  if (!is_long || !message.hosts || message.laid != nullptr) return message.slot_bytes;
  const Bytes four{4 * message.slot_bytes.value};
  const bool wants_four = ahead_ ? short_ones_ == 0 : message.piece.size.value >= kFewestAlone * four.value;
  if (wants_four && takes_four(message) && ring_->within_lap(four)) return four;
  const Bytes two{2 * message.slot_bytes.value};
  return two.value <= kMostOfOneThread && ring_->within_lap(two) ? two : message.slot_bytes;
}

bool RingSender::step(std::vector<Finished>& ended, int most) {
  ended.reserve(ended.size() + flights_.size() +
                static_cast<std::size_t>(most));  // before anything is over, which is said once
  // Publishing frees a place in flight, so both are tried until neither moves; a host copy is published as soon as it is
  // made, unless the reader is held off.
  bool moved = false;
  for (int i = 0; i < most; ++i) {
    const bool started = start_copies();
    bool published = false;
    if (!started || !holds_off())
      while (publish(ended)) published = true;
    if (!started && !published) break;
    moved = true;
  }
  return moved;
}

bool RingSender::start_copies() {
  if (ahead_ ? flights_.full() : flights_.size() >= most_in_flight_) return false;
  Message* const in_turn = next_in_turn();
  if (in_turn == nullptr) return false;
  Message& message = *in_turn;
  const Bytes most = most_in_slot(message);
  const auto slot = ring_->start_next(most, filling_of(message), most_ahead(most));
  if (!slot) return false;
  const Bytes length = smaller(smaller(most, slot->capacity), message.piece.size - (message.next - Offset{}));
  const Piece source = message.piece.part(message.next, length);
  note_filling(message.way, most);
  Flight flight{
      Ticket{},
      {message.receiver_op, static_cast<std::uint32_t>(length.value), message.next.value, slot->place, slot->next, 0},
      message.sender_op,
      false,
      {}};
  auto ticket = Result<Ticket>{Ticket{}};
  if (message.laid == nullptr && message.hosts && length.value <= kMostOfOneThread)
    flight.header.nanoseconds = fill(message, slot->data, source);
  else
    ticket = begin_copy(
        [&] {
          if (message.laid != nullptr)
            return between_slot(*kinds_, *message.laid, message.next.value, host_piece(slot->data, length));
          return kinds_->copier(KindId::host, source.kind)->copy(host_piece(slot->data, length), source, Ticket{});
        },
        no_memory_);
  message.next += length;
  if (ticket.ok()) {
    flight.ticket = std::move(*ticket);
  } else {
    flight.failed = ticket.status();
  }
  flight.last = !ticket.ok() || message.next == Offset{} + message.piece.size;
  if (flight.last)
    drop(turn_);
  else if (++turn_ == in_turns_)
    turn_ = 0;
  flights_.push_back(std::move(flight));
  return true;
}

// How long it took, where that is wanted; never 0 then.
std::uint64_t RingSender::fill(const Message& message, std::byte* to, const Piece& from) {
  // Not a long one by itself, whose bytes come from wherever they are.
  const bool teaches = runs_ahead(message) && (message.piece.size <= kLong || messages_.size() > 1);
  const bool judged = teaches && running_ahead_.is_timed(message.way, ahead_);
  const bool timed = message.timed || judged;
  const auto begun = timed ? Clock::now() : Clock::time_point{};
  if (message.way == RingWay::strings)
    copy_by_string(to, from.address(), from.size.value);
  else
    handing_.copy(to, from.address(), from.size.value);
  if (!timed) return 0;
  const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun).count();
  if (teaches && from.size >= message.slot_bytes)
    learn(message.way, static_cast<double>(took) / static_cast<double>(from.size.value));
  return message.timed ? static_cast<std::uint64_t>(std::max<std::int64_t>(took, 1)) : 0;
}

// What is left of a window that is slow, and in which the reader was held off in vain, has slots that are near.
void RingSender::learn(RingWay way, double pace) {
  if (!ahead_) return running_ahead_.filled_near(way, pace);
  if (holding_off_.is_going_on()) return;
  const auto verdict = running_ahead_.filled_ahead(way, pace);
  ahead_ = verdict != RunningAhead<RingWay>::Verdict::leave;
  if (verdict == RunningAhead<RingWay>::Verdict::hold) holding_off_.want();
}

// A slot of so many bytes is filled that way now.
void RingSender::note_filling(RingWay way, Bytes piece) {
  holding_off_.filled(ahead_, way);
  if (!holding_off_.is_wanted()) return;
  const std::uint64_t round = std::min(ring_->round_of(piece), SlotRingLayout::kHeaders);
  const std::uint64_t burst = std::min(round * 3 / 8, most_ahead(piece));
  if (has_left(Bytes{2 * burst * piece.value})) holding_off_.begin(round, burst);
}

// Of all messages, at least so many bytes to be filled?
bool RingSender::has_left(Bytes bytes) const {
  Bytes left;
  for (const Message& message : messages_) {
    left = left + (message.piece.size - (message.next - Offset{}));
    if (left >= bytes) return true;
  }
  return false;
}

// Not for longer than there is something to be filled.
bool RingSender::holds_off() const { return holding_off_.holds(flights_.size()) && !messages_.empty(); }

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

// That message failed: what is not started never will be, and what is running ends before its buffer is given back.
// Their slots still come, and say that nothing is in them: the reader has been told and forgets the message, whose number another one
// may have by the time it sees them.
void RingSender::give_up(std::uint32_t sender_op) {
  flights_.each([&](Flight& flight) {
    if (flight.sender_op != sender_op) return;
    wait_for_copy(flight.ticket);
    flight = Flight{Ticket{}, {flight.header.receiver_op, 0, kSlotVoid}, sender_op, false, {}};  // told once is enough
  });
  const auto failed = std::find_if(messages_.begin(), messages_.end(),
                                   [&](const Message& message) { return message.sender_op == sender_op; });
  if (failed != messages_.end()) drop(static_cast<std::size_t>(failed - messages_.begin()));
}

void RingSender::abandon(const Status& why, std::vector<Finished>& ended) {
  ended.reserve(ended.size() + flights_.size() + messages_.size());
  flights_.each([&](Flight& flight) {
    wait_for_copy(flight.ticket);
    if (flight.last) ended.push_back({flight.sender_op, why, Bytes{}});
  });
  for (const Message& message : messages_) ended.push_back({message.sender_op, why, Bytes{}});
  flights_.clear();
  messages_.clear();
  others_ = short_ones_ = own_ = of_window_ = 0;
  ahead_ = several_ = false;
  in_turns_ = turn_ = 0;
  holding_off_.end();
}

}  // namespace ist
