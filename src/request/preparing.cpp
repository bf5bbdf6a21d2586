#include "request/preparing.hpp"

#include <atomic>
#include <utility>

namespace ist {
namespace {

// Tags in a communicator's internal context, between those of the choices that make communicators and those of groups. What each
// rank says first comes with the first of them, in the order of the calls; when it is ready depends on the driver, so that those
// messages are told apart.
constexpr std::int32_t kPrepareTag = (1 << 16) + 2;
constexpr std::uint32_t kAnswers = 2000;

}  // namespace

// The memory itself, or a block that messages into it go through.
Loan Preparing::loan_of(Engine& engine, const Piece& own, Rank peer) {
  PeerState& to = engine.peer(peer);
  Lending* lender = own.size == Bytes{} ? nullptr : engine.lending(*to.link, own.kind);
  if (lender == nullptr) return {};
  engine.use_devices(own);
  if (const auto loan = lender->lend(own, peer, LoanFor::preparation)) return *loan;
  const auto bounce = lender->bounce(own, peer);
  return bounce ? bounce->loan : Loan{};
}

Result<OperationId> Preparing::start(Engine& engine, const Piece& own, Rank peer, const Scope& internal) {
  IST_TRY(engine.check_peer(peer));
  if (engine.peer(peer).link->same_process()) return OperationId{};
  static std::atomic<std::uint32_t> calls{0};
  std::unique_ptr<Preparing> action{new Preparing{own, peer}};
  action->mine_ = {loan_of(engine, own, peer), static_cast<std::uint32_t>(own.kind), 1 + calls++ % kAnswers};
  auto schedule = std::make_unique<Schedule>("ist_prepare", internal, kPrepareTag);
  const auto record = [](Word& word) { return host_piece(reinterpret_cast<std::byte*>(&word), Bytes{sizeof word}); };
  const auto answer = static_cast<std::int32_t>(action->mine_.answer);
  schedule->receive(host_piece(nullptr, Bytes{}), peer, answer, {});
  schedule->send(record(action->mine_), peer, 0, {});
  const auto heard = schedule->receive(record(action->theirs_), peer, 0, {});
  schedule->act(std::move(action), {heard});
  return engine.start_schedule(std::move(schedule));
}

bool Preparing::open(Engine& engine) {
  const Loan& loan = theirs_.loan;
  PeerState& from = engine.peer(peer_);
  Lending* borrower = loan.allocation == 0 ? nullptr : engine.lending(*from.link, static_cast<KindId>(theirs_.kind));
  if (borrower == nullptr) return true;
  if (!heard_) borrower->hear(loan, peer_);
  heard_ = true;
  const Bytes room{loan.part == 0 ? loan.size - loan.offset : loan.part};
  const Piece part = own_.part(Offset{}, smaller(own_.size, room));
  if (part.size == Bytes{} || !borrower->serves(part)) return true;
  if (borrower->borrow(loan, peer_, part) == nullptr) return !borrower->opening(loan, peer_, part);
  // The next messages are worth an announcement.
  if (part.kind == KindId::host) from.fetches = true;
  if (part.kind != KindId::host && loan.part == 0 && !borrower->same_device(loan, part)) from.lends = true;
  return true;
}

Result<bool> Preparing::step(Moment& now) {
  if (now.abandoned) return true;
  if (now.status.ok() && !open(now.engine)) return false;
  // Also where this rank cannot go on: the other one waits.
  if (theirs_.answer != 0)
    now.schedule.regardless(
        now.schedule.send(host_piece(nullptr, Bytes{}), peer_, static_cast<std::int32_t>(theirs_.answer), {}));
  return true;
}

}  // namespace ist
