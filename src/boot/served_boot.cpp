#include "boot/served_boot.hpp"

#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/quiet_thread.hpp"
#include "boot/interrupt.hpp"

namespace ist {
namespace {

class ServedBoot final : public Boot {
 public:
  ServedBoot(JobServer& server, const ServedRound& none_yet) : server_(server), round_(none_yet) {}
  std::string_view name() const override { return server_.name(); }
  Rank rank() const override { return Rank{round_.rank}; }
  int size() const override { return round_.size; }
  Result<std::vector<std::string>> all_gather(const std::string& mine) override {
    auto all = server_.all_gather(round_, mine);
    over_ = !all.ok();
    return all;
  }
  void withdraw(const std::string& reason) override {
    if (!std::exchange(over_, true)) server_.withdraw(round_, reason);
  }

 private:
  JobServer& server_;
  ServedRound round_;
  bool over_ = false;  // whoever is to know does
};

// The first letter of what a rank gives.
constexpr char kBlob = '+';
constexpr char kGaveUp = '-';
// The others are at the exchange already, or about to come.
constexpr double kMoment = 0.5;
// Joining, and an exchange for which all have come, take milliseconds where nobody has stopped.
constexpr double kMostly = 0.4;
constexpr std::chrono::milliseconds kLook{50};
// A process that ends tries this often, and waits this long in between, to take its leave of the server.
constexpr int kLooksAtEnd = 200;
constexpr std::chrono::milliseconds kLookAtEnd{1};

}  // namespace

Result<std::unique_ptr<Boot>> JobServer::join(const Settings& settings, void (*at_exit)()) {
  const std::lock_guard lock(mutex_);
  IST_TRY(usable());
  left_.reset();  // the new world goes on where the last one left
  if (size_ == 0) {
    interrupt::ask_not_before(Deadline::after(kMostly));
    broken_ = unless_given_up(connect(settings.boot_timeout));
    IST_TRY(broken_);
    owner_ = ::getpid();
    std::atexit(at_exit);
    broken_ = unless_given_up(find_place(settings.boot_timeout));
    IST_TRY(broken_);
  }
  return std::unique_ptr<Boot>{
      std::make_unique<ServedBoot>(*this, ServedRound{rank_, size_, ++worlds_, 0, settings.boot_timeout})};
}

Status JobServer::usable() const {
  IST_TRY(check_owner());
  return broken_;
}

Result<std::vector<std::string>> JobServer::all_gather(ServedRound& round, const std::string& mine) {
  const std::lock_guard lock(mutex_);
  IST_TRY(usable());
  if (round.number == 0) IST_TRY(meet(round));
  ++round.number;
  auto all = exchange_or_break(round, kBlob + mine);
  if (!all.ok()) return all;
  for (std::size_t rank = 0; rank < all->size(); ++rank) {
    std::string& blob = (*all)[rank];
    const char first = blob.empty() ? '\0' : blob.front();
    if (first != kBlob && first != kGaveUp)
      return Status{IST_ERR_BOOT,
                    "what rank " + std::to_string(rank) + " offered cannot be read; do all ranks use the same Isthmus?"};
    blob.erase(0, 1);
    if (first == kGaveUp)
      return Status{IST_ERR_BOOT, "rank " + std::to_string(rank) + " gave up creating its world number " +
                                      std::to_string(round.world) + ": " + blob};
  }
  return all;
}

Result<std::vector<std::string>> JobServer::exchange_or_break(const ServedRound& round, const std::string& blob) {
  interrupt::ask_not_before(Deadline::after(kMostly));
  auto all = exchange(round, blob);
  if (all.ok()) return all;
  broken_ = unless_given_up({IST_ERR_BOOT, "an earlier exchange of this process failed, and its ranks may be out of step: " +
                                               all.status().text()});
  return all;
}

// An error, or rather that the program ended the wait, in the midst of what a server cannot take back.
Status JobServer::unless_given_up(const Status& error) const {
  if (error.ok() || !interrupt::wanted()) return error;
  return {IST_ERR_BOOT, "an earlier world of this process was given up while " + std::string{name()} +
                            " was at work for it, which cannot be taken back; let the job end, and start it again"};
}

Status JobServer::meet(const ServedRound& round) {
  if (!meeting_) broken_ = begin_meeting();
  IST_TRY(broken_);
  meeting_ = true;
  const auto all_there = met(Deadline::after(round.seconds));
  if (all_there.ok() && *all_there) {
    meeting_ = false;
    return {};
  }
  if (interrupt::wanted()) return leave_meeting(round, interrupt::kReason);
  const Status why = all_there.ok() ? Status{IST_ERR_BOOT, who() + ": not all of the " + std::to_string(round.size) +
                                                               " ranks came to the exchange of addresses within " +
                                                               seconds_text(round.seconds) +
                                                               "; does every rank create this world? ISTHMUS_BOOT_TIMEOUT "
                                                               "sets how long to wait"}
                                    : all_there.status();
  broken_ = {IST_ERR_BOOT, "an earlier exchange of this process failed, and its ranks may be out of step: " + why.text()};
  return why;
}

// Nobody else has heard of this world yet: its number may come again.
Status JobServer::leave_meeting(const ServedRound& round, const std::string& reason) {
  left_ = reason;
  patience_ = round.seconds;
  if (worlds_ == round.world) --worlds_;
  auto thread = quiet_thread("answering for a rank that gave up", [this] { answer_for_who_left(); });
  if (!thread.ok()) {
    broken_ = thread.status();
    return broken_;
  }
  thread->detach();
  return {IST_CANCELLED, reason};
}

void JobServer::answer_for_who_left() {
  for (;; std::this_thread::sleep_for(kLook)) {
    const std::lock_guard lock(mutex_);
    if (!left_ || !usable().ok()) return;
    const auto all_there = met(Deadline::after(0));
    if (all_there.ok() && !*all_there) continue;
    meeting_ = false;
    const std::string reason = *std::exchange(left_, std::nullopt);
    if (all_there.ok()) {
      static_cast<void>(exchange_or_break({rank_, size_, ++worlds_, 1, patience_}, kGaveUp + reason));
    } else {
      broken_ = all_there.status();
    }
    return;
  }
}

void JobServer::withdraw(ServedRound& round, const std::string& reason) {
  const interrupt::Unheard last_words;
  const std::lock_guard lock(mutex_);
  if (!usable().ok()) return;
  if (round.number > 0) {
    static_cast<void>(exchange_or_break({round.rank, round.size, round.world, round.number + 1, kMoment}, kGaveUp + reason));
    return;
  }
  if (!meeting_) broken_ = begin_meeting();
  meeting_ = broken_.ok();
  if (meeting_) static_cast<void>(leave_meeting(round, reason));
}

// A forked child must not say that the rank ends.
void JobServer::end() {
  if (owner_ != ::getpid()) return;
  // A thread of this process may be inside: one that only looks is out in a moment, one that waits for other ranks is not waited for.
  std::unique_lock lock(mutex_, std::try_to_lock);
  for (int times = 0; !lock.owns_lock() && times < kLooksAtEnd; ++times) {
    std::this_thread::sleep_for(kLookAtEnd);
    static_cast<void>(lock.try_lock());
  }
  if (lock.owns_lock()) left_.reset();
  leave(lock.owns_lock() && broken_.ok() && !meeting_);
}

Status JobServer::take_place(long rank, long size, const std::string& server) {
  if (rank < 0 || rank >= size || size > INT_MAX)
    return {IST_ERR_BOOT,
            server + " tells of rank " + std::to_string(rank) + " in a job of " + std::to_string(size) + " ranks"};
  rank_ = static_cast<int>(rank);
  size_ = static_cast<int>(size);
  return {};
}

Status JobServer::offered_nothing(int rank, const ServedRound& round, const std::string& reason) {
  return {IST_ERR_BOOT, "rank " + std::to_string(rank) + " offered nothing for exchange " + std::to_string(round.number) +
                            " of world number " + std::to_string(round.world) + reason +
                            "; has it ended? All ranks must create the same worlds in the same order"};
}

Status JobServer::check_owner() const {
  if (owner_ == 0 || owner_ == ::getpid()) return {};
  return {IST_ERR_BOOT, "this process (pid " + std::to_string(::getpid()) + ") was forked from pid " +
                            std::to_string(owner_) + ", which is " + who() +
                            "; only the process that the job's launcher started can create worlds"};
}

}  // namespace ist
