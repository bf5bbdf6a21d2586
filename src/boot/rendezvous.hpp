// How ranks on any host meet at one TCP address: who knocks is asked who it is before it is let in.
//
// Who calls this : environment_boot.
// Threads        : one at a time.
// Ownership      : what is returned belongs to the caller; listeners close on return.
// Errors         : IST_ERR_BOOT; IST_CANCELLED where the program ended the wait before any other rank had heard of this world,
//                  whose number may then come again. Strangers (port scanners), other jobs, ranks that are already in and ranks of another
//                  world size are turned away with the reason and never end the meeting.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/status.hpp"
#include "boot/frame.hpp"
#include "boot/gather_hub.hpp"

namespace ist {

struct Meeting {
  std::string address;
  int port = 0;
  int rank = 0;
  int size = 0;
  std::uint32_t world = 0;  // number of this world in its process: equal on all ranks
  std::string job;          // what a scheduler calls the job; empty where it does not say. Told apart where both say.
  double seconds = 0;       // how long to wait
  std::map<std::uint32_t, std::string> failed;  // rank 0: why worlds before this one could not be made
  std::string place() const { return address + ":" + std::to_string(port); }
};

// What the others hear of rank 0 where it gives up.
std::string given_up(std::uint32_t world, const std::string& place, const std::string& reason);

// What a rank says first.
Frame hello_of(const Meeting& meeting);

// Rank 0: lets the other ranks in, until all are there.
Result<std::unique_ptr<GatherHub>> receive_ranks(const Meeting& meeting, std::uint64_t token);

// The other ranks.
struct Admission {
  FrameSocket socket;
  std::uint64_t token = 0;
};
Result<Admission> knock(const Meeting& meeting);

}  // namespace ist
