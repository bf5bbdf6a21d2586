// The receiving half of mailboxes: by the worker where it is at hand and may write the buffer, and else by the driver, through host memory.
#include <algorithm>
#include <utility>

#include "memory/workers.hpp"
#include "request/mail.hpp"

namespace ist {
namespace {

// In Envelope::receiver_op: the place.
constexpr std::uint32_t kPlaceMask = 0xff;

// What is on its way comes within microseconds. What does not, because the sender was held up, is asked for less and less often: a
// worker that waits serves nobody else.
constexpr std::chrono::microseconds kFirstPause{5};
constexpr std::chrono::microseconds kLongestPause{1000};
// A rank that is gone had given the order for every message that was heard of: so long it may take to be carried out.
constexpr std::chrono::milliseconds kLastMoment{100};

}  // namespace

void Mail::receive(Operation& operation, std::uint32_t index, const Envelope& envelope) {
  state::TakingMail taking;
  taking.letter = {envelope.receiver_op & kPlaceMask, envelope.sender_op};
  taking.bytes = Bytes{envelope.bytes};
  taking.pause = kFirstPause;
  // Of a truncated message all packets are waited for before the place is free.
  taking.by_driver = operation.outcome.bytes != taking.bytes || operation.piece.kind != KindId::cuda;
  const bool unfit = operation.piece.kind != KindId::cuda;
  operation.state = std::move(taking);
  engine_.copying(operation);
  if (unfit) note_fit(operation.peer, true);
  engine_.set_off(operation, index);
}

bool Mail::cleans(const In& from, std::uint32_t place) const { return from.messages / Mailing::kEpoch != from.clean[place]; }

// The packets will not come: the sender says so, or is gone. Not while somebody looks for them: they may be found, and the buffer is not
// the program's before that is over.
bool Mail::lost(Operation& operation, std::uint32_t index) {
  auto& taking = std::get<state::TakingMail>(operation.state);
  if (!taking.copy.empty()) return false;
  const Rank source = operation.peer;
  const auto& name = engine_.parts_.names[static_cast<std::size_t>(source.value)];
  if (in(source).failed.erase(taking.letter.number) != 0) {
    settle(taking);
    engine_.finish(operation, index, {IST_ERR_DEVICE, name + " could not read its buffer; its own error says why"});
    return true;
  }
  if (engine_.parts_.board.fate(source) == AbortBoard::Fate::present) return false;
  const auto now = Clock::now();
  if (!taking.last_moment) taking.last_moment = now + kLastMoment;
  if (now < *taking.last_moment) return false;
  settle(taking);
  engine_.finish(operation, index, engine_.gone(source));
  return true;
}

bool Mail::step_taking(Operation& operation, std::uint32_t index) {
  auto& taking = std::get<state::TakingMail>(operation.state);
  const bool moved = taking.by_driver ? take_by_driver(operation, index) : take_by_worker(operation, index);
  if (moved || !operation.in<state::TakingMail>()) return true;
  return lost(operation, index);
}

bool Mail::take_by_worker(Operation& operation, std::uint32_t index) {
  auto& taking = std::get<state::TakingMail>(operation.state);
  In& from = in(operation.peer);
  if (taking.copy.empty()) {
    if (taking.again && Clock::now() < *taking.again) return false;
    // Neither worker nor place waits for a stream.
    const auto ready = is_finished(operation.ready);
    const Piece to = operation.piece.part(Offset{}, taking.bytes);
    taking.cleans = cleans(from, taking.letter.place);
    auto order = ready.ok() && *ready ? mailing_.take(to, *from.box, taking.letter, taking.cleans) : std::nullopt;
    if (!order) {
      note_fit(operation.peer, !mailing_.fits(to));
      taking.by_driver = true;
      return take_by_driver(operation, index);
    }
    taking.copy = std::move(*order);
  }
  const auto taken = mailing_.taken(taking.copy);
  if (taken.ok() && !taken->has_value()) return false;
  if (!taken.ok()) {  // the worker has failed
    taking.by_driver = true;
    return take_by_driver(operation, index);
  }
  if (!**taken) {
    taking.again = Clock::now() + taking.pause;
    taking.pause = std::min<std::chrono::nanoseconds>(2 * taking.pause, kLongestPause);
    return false;
  }
  note_fit(operation.peer, false);
  free_again(operation.peer, taking.letter.place, taking.cleans);
  engine_.copied(operation, "the worker's take out of the mailbox", operation.outcome.bytes);
  engine_.finish(operation, index, {});
  return true;
}

// The packets as they are, until all are there; from host memory the bytes go on as those of any message that was kept.
bool Mail::take_by_driver(Operation& operation, std::uint32_t index) {
  auto& taking = std::get<state::TakingMail>(operation.state);
  In& from = in(operation.peer);
  if (taking.copy.empty()) {
    if (taking.again && Clock::now() < *taking.again) return false;
    const Piece place = mailing_.packets(*from.box, taking.letter.place, taking.bytes);
    taking.packets.resize(place.size.value);
    auto copy = engine_.parts_.kinds.copier(KindId::host, place.kind)
                    ->copy(host_piece(taking.packets.data(), place.size), place, Ticket{});
    if (!copy.ok()) {
      engine_.finish(operation, index, copy.status());
      return true;
    }
    taking.copy = std::move(*copy);
  }
  const auto here = is_finished(taking.copy);
  if (here.ok() && !*here) return false;
  if (!here.ok()) {
    taking.copy = Ticket{};
    if (!std::exchange(taking.failed, true)) return false;
    engine_.finish(operation, index, here.status());
    return true;
  }
  KeptBytes bytes(taking.bytes.value);
  if (!mailing_.unpack(taking.packets, taking.letter.number, bytes)) {
    taking.again = Clock::now() + taking.pause;
    taking.pause = std::min<std::chrono::nanoseconds>(2 * taking.pause, kLongestPause);
    return false;
  }
  // A place that cannot be cleaned is not used any more.
  const bool wanted = cleans(from, taking.letter.place);
  if (!wanted || clean(from, taking.letter.place).ok()) free_again(operation.peer, taking.letter.place, wanted);
  bytes.resize(operation.outcome.bytes.value);
  engine_.deliver_kept(operation, index, std::move(bytes));
  return true;
}

// Once in a billion messages, so that it may wait.
Status Mail::clean(const In& from, std::uint32_t place) const {
  const Piece there = mailing_.packets(*from.box, place, kWorkerLimit);
  const std::vector<std::byte> zeros(there.size.value);
  auto copy =
      engine_.parts_.kinds.copier(there.kind, KindId::host)->copy(there, host_piece(zeros.data(), there.size), Ticket{});
  if (!copy.ok()) return copy.status();
  for (;;)
    if (const auto over = is_finished(*copy); !over.ok() || *over) return over.status();
}

// An order that is dropped is over within the time that a worker waits for packets; a copy must be waited for.
void Mail::settle(state::TakingMail& taking) {
  while (taking.by_driver && !taking.copy.empty())
    if (const auto over = is_finished(taking.copy); !over.ok()) taking.copy = Ticket{};
  taking.copy = Ticket{};
}

}  // namespace ist
