// Boot over a server that other software started: one connection per process, however many worlds it creates.
//
// Who calls this : join_pmix and join_pmi, whose files implement JobServer.
// Threads        : any; one call to the server at a time.
// Ownership      : a server is made by the first world and never destroyed, since a later one needs it; it is left when the
//                  process ends in order.
// Errors         : IST_ERR_BOOT. A forked child is not the rank, and is told so. After an exchange that failed the ranks may
//                  be out of step, and the process can create no further world. IST_CANCELLED where the program ended the wait
//                  for the others to come: that cannot be taken back, so the next world goes on with it; and if the others
//                  come before that, a thread tells them that this rank gave up.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "boot/boot.hpp"
#include "boot/deadline.hpp"

namespace ist {

// One exchange, numbered alike on every rank: a server keeps every value until the job ends, so that no key may come twice.
struct ServedRound {
  int rank = 0;
  int size = 0;
  std::uint32_t world = 0;
  std::uint32_t number = 0;
  double seconds = 0;
};

class JobServer {
 public:
  virtual ~JobServer() = default;
  virtual std::string_view name() const = 0;  // the boot's: "pmix", "pmi"
  Result<std::unique_ptr<Boot>> join(const Settings& settings, void (*at_exit)());
  Result<std::vector<std::string>> all_gather(ServedRound& round, const std::string& mine);
  void withdraw(ServedRound& round, const std::string& reason);
  // At the end of the process.
  void end();

 protected:
  // "rank 3 of job ...": this process, for error texts.
  virtual std::string who() const = 0;
  // Once. Where it succeeds, leave() comes at the end.
  virtual Status connect(double seconds) = 0;
  // Asks for rank and size, and gives them to take_place().
  virtual Status find_place(double seconds) = 0;
  // Every rank comes there before the first exchange of a world, with nothing that depends on this one. begin_meeting() does
  // not wait; met() does, until the deadline or the program ends it: is everybody there?
  virtual Status begin_meeting() = 0;
  virtual Result<bool> met(Deadline deadline) = 0;
  virtual Result<std::vector<std::string>> exchange(const ServedRound& round, const std::string& mine) = 0;
  // `in_step`: no call before has failed.
  virtual void leave(bool in_step) = 0;

  // Refuses what cannot be; `server` begins the sentence "... tells of rank 5 in a job of 2 ranks".
  Status take_place(long rank, long size, const std::string& server);
  // `reason` is empty, or ": " and more.
  static Status offered_nothing(int rank, const ServedRound& round, const std::string& reason);

 private:
  Status check_owner() const;
  Status usable() const;
  Status unless_given_up(const Status& error) const;
  Status meet(const ServedRound& round);
  Status leave_meeting(const ServedRound& round, const std::string& reason);
  void answer_for_who_left();
  Result<std::vector<std::string>> exchange_or_break(const ServedRound& round, const std::string& blob);
  std::mutex mutex_;
  pid_t owner_ = 0;
  int rank_ = 0;
  int size_ = 0;
  std::uint32_t worlds_ = 0;
  bool meeting_ = false;             // begun, and not known to be over
  std::optional<std::string> left_;  // why this rank does not wait for it any more; a thread does
  double patience_ = 0;              // of that thread, for the exchange
  Status broken_;                    // why there can be no further exchange
};

template <typename Server>
Result<std::unique_ptr<Boot>> join_served(const Settings& settings) {
  static auto* only = new Server;
  return only->join(settings, [] { only->end(); });
}

}  // namespace ist
