// One rank's side of an exchange through a hub: send the blob, wait for all of them.
//
// Who calls this : launcher_boot, environment_boot.
// Threads        : one at a time per socket.
// Ownership      : none.
// Errors         : IST_ERR_BOOT with the hub's own text, or saying how the hub was lost; IST_CANCELLED.
#pragma once

#include <string>
#include <vector>

#include "base/status.hpp"
#include "boot/frame.hpp"

namespace ist {

struct Exchange {
  std::uint32_t world = 0;
  std::uint32_t round = 0;
  std::uint64_t token = 0;
  double seconds = 0;
  int size = 0;
  std::string hub;  // "the launcher", "rank 0 at 127.0.0.1:29500"
};

Frame contribution_of(const Exchange& exchange, const std::string& blob);
// The blobs in the hub's answer.
Result<std::vector<std::string>> open_answer(const Exchange& exchange, const Frame& answer);
// Where the program ends the wait, the hub is told that the blob does not count. Was it too late for that, there are the blobs.
Result<std::vector<std::string>> gather_through(FrameSocket& socket, const Exchange& exchange, const std::string& blob);
// Tells the hub that this rank comes to no further round of that world. Does not wait for the answer.
void withdraw_through(FrameSocket& socket, Exchange exchange, const std::string& reason);

}  // namespace ist
