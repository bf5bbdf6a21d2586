// The middle of the star: collects one blob per rank and gives everyone all of them, or everyone the reason why not.
//
// Who calls this : the launcher, for the ranks it started; environment_boot on rank 0, for the ranks that connected.
// Threads        : one at a time; no call waits.
// Ownership      : owns the members' sockets.
// Errors         : told to every rank that waits in the round; the hub itself goes on and serves the next round.
#pragma once

#include <poll.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "boot/frame.hpp"

namespace ist {

class GatherHub {
 public:
  // `place` tells readers of error texts where the ranks meet: "127.0.0.1:29500", "the launcher". Contributions must carry
  // `token`; answers do.
  GatherHub(int size, std::string place, std::uint64_t token)
      : members_(static_cast<std::size_t>(size)), place_(std::move(place)), token_(token) {}

  // Also in place of a connection that broke.
  void attach(Rank rank, FrameSocket socket);
  bool attached(Rank rank) const { return members_[static_cast<std::size_t>(rank.value)].socket.has_value(); }
  // True if the rank's connection broke; reads what is there to find out.
  bool hung_up(Rank rank);
  // This rank will not come any more: `how` completes the sentence "rank 3 ...". What it sent before counts.
  void lost(Rank rank, std::string how);

  // The blob of a rank without a socket: the process the hub lives in.
  void contribute(Rank rank, Frame contribution) { take_in(rank, std::move(contribution)); }
  std::optional<Frame> take_answer(Rank rank);

  // Adds what poll() should look at.
  void watch(std::vector<pollfd>& entries) const;
  // Reads, answers and writes whatever can be now.
  void serve();
  // No answer waits to be written.
  bool flushed() const;
  // The earliest moment at which serve() has something to do without being woken.
  std::optional<Deadline> deadline() const;
  // Tells every attached rank that there will be no more rounds.
  void give_up(const std::string& text);

 private:
  struct Member {
    std::optional<FrameSocket> socket;
    std::optional<Frame> waiting;      // its contribution to the round
    std::optional<Deadline> patience;  // until when it waits
    std::optional<Frame> answer;       // only for the rank without a socket
    std::optional<Frame> missed;       // the failure of a round this rank has not come to yet
    std::string lost;                  // why it will not come any more; empty while it may
    std::optional<Deadline> blamed;    // from when on that fails a round: see read_from
  };
  Member& at(Rank rank) { return members_[static_cast<std::size_t>(rank.value)]; }
  void read_from(Member& member, Rank rank);
  void take_in(Rank rank, Frame contribution);
  void answer(Member& member, Frame frame);
  void settle();
  void finish_round();
  void fail_round(const std::string& text);
  std::optional<std::string> disagreement() const;
  std::optional<std::string> absence() const;
  std::vector<Member> members_;
  std::string place_;
  std::uint64_t token_;
};

// "rank 3", "ranks 0, 2 and 5", "ranks 1, 2, 3 and 61 more".
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace ist
