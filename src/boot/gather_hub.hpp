// The middle of the star: collects one blob per rank and gives everyone all of them, or everyone the reason why not.
//
// Who calls this : the launcher, for the ranks it started; environment_boot on rank 0, for the ranks that connected.
// Threads        : one at a time; no call waits.
// Ownership      : owns the members' sockets.
// Errors         : told to every rank that waits in the round, and to the others when they come to that world; the hub itself
//                  goes on and serves the next world.
#pragma once

#include <poll.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "boot/frame.hpp"

namespace ist {

class GatherHub {
 public:
  // Whether ranks come back to this hub for their next world.
  enum class Serves { every_world, one_world };
  // `place` tells readers of error texts where the ranks meet: "127.0.0.1:29500", "the launcher". Contributions must carry
  // `token`; answers do.
  GatherHub(int size, std::string place, std::uint64_t token, Serves serves = Serves::every_world)
      : members_(static_cast<std::size_t>(size)), place_(std::move(place)), token_(token), serves_(serves) {}

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
  // Reads what has come, and answers nothing: who has given up since? None: nobody, and who it was is told once.
  std::optional<std::string> read_withdrawal();

  // What a rank sent that is no frame of ours, in words that name it; of all ranks the first one, once.
  std::optional<std::string> read_misunderstanding();

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
    std::optional<Frame> waiting;          // its contribution to the round
    std::uint32_t world = 0;               // number in the hub's count of the world it waits in
    std::optional<Deadline> patience;      // until when it waits
    std::optional<Frame> answer;           // only for the rank without a socket
    Frame answered;                        // the last round that it had an answer of
    std::uint64_t program = 0;             // the last process that was heard of; 0: none that said
    std::vector<std::uint32_t> uncounted;  // worlds that it left before any other rank had come to them
    std::string lost;                      // why it will not come any more; empty while it may
    std::optional<Deadline> blamed;        // from when on that fails a round: see read_from
  };
  // A world that cannot be made any more, until every rank knows.
  struct Failed {
    std::string text;
    std::vector<bool> told;  // or began too late to be meant
    Deadline::Clock::time_point when;
  };
  Member& at(Rank rank) { return members_[static_cast<std::size_t>(rank.value)]; }
  void read_all();
  void read_from(Member& member, Rank rank);
  void take_in(Rank rank, Frame contribution);
  void take_back(Rank rank, const Frame& withdrawal);
  static std::uint32_t counted(const Member& member, std::uint32_t world);
  void answer(Member& member, FrameType type, const std::string& payload);
  void fail_world(std::uint32_t world, const std::string& text);
  void tell_of(Failed& failed, std::size_t rank);
  void meet(std::size_t rank, const Frame& frame);
  void forget_what_all_know();
  void settle();
  void finish_round();
  void fail_round(const std::string& text);
  std::optional<std::string> disagreement() const;
  std::optional<std::string> absence() const;
  std::vector<Member> members_;
  std::map<std::uint32_t, Failed> failed_;  // by their numbers in the hub's count
  std::optional<std::string> withdrawn_;
  std::optional<std::string> misunderstood_;  // empty: it was told
  std::string place_;
  std::uint64_t token_;
  Serves serves_;
};

// "rank 3", "ranks 0, 2 and 5", "ranks 1, 2, 3 and 61 more".
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace ist
