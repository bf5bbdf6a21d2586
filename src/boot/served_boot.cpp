#include "boot/served_boot.hpp"

#include <unistd.h>

#include <climits>
#include <cstdlib>

#include "boot/interrupt.hpp"

namespace ist {
namespace {

class ServedBoot final : public Boot {
 public:
  ServedBoot(JobServer& server, const ServedRound& none_yet) : server_(server), round_(none_yet) {}
  std::string_view name() const override { return server_.name(); }
  Rank rank() const override { return Rank{round_.rank}; }
  int size() const override { return round_.size; }
  Result<std::vector<std::string>> all_gather(const std::string& mine) override { return server_.all_gather(round_, mine); }

 private:
  JobServer& server_;
  ServedRound round_;
};

}  // namespace

Result<std::unique_ptr<Boot>> JobServer::join(const Settings& settings, void (*at_exit)()) {
  const std::lock_guard lock(mutex_);
  IST_TRY(check_owner());
  IST_TRY(broken_);
  if (size_ == 0) {
    broken_ = connect(settings.boot_timeout);
    IST_TRY(broken_);
    owner_ = ::getpid();
    std::atexit(at_exit);
    broken_ = find_place(settings.boot_timeout);
    IST_TRY(broken_);
  }
  return std::unique_ptr<Boot>{
      std::make_unique<ServedBoot>(*this, ServedRound{rank_, size_, ++worlds_, 0, settings.boot_timeout})};
}

Result<std::vector<std::string>> JobServer::all_gather(ServedRound& round, const std::string& mine) {
  const std::lock_guard lock(mutex_);
  IST_TRY(check_owner());
  IST_TRY(broken_);
  ++round.number;
  auto all = exchange(round, mine);
  if (!all.ok() && interrupt::wanted())
    broken_ = {IST_ERR_BOOT,
               "an earlier creation of a world was ended while it waited for the other ranks, and " + std::string{name()} +
                   " cannot take back what this rank offered; let the job end, and start it again"};
  else if (!all.ok())
    broken_ = {IST_ERR_BOOT,
               "an earlier exchange of this process failed, and its ranks may be out of step: " + all.status().text()};
  return all;
}

// A forked child must not say that the rank ends.
void JobServer::end() {
  if (owner_ == ::getpid()) leave(broken_.ok());
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
