// In which ways the ranks of a job can be started on this machine.
//
// Who calls this : cli/info.
// Threads        : any.
// Ownership      : values.
// Errors         : a way that cannot be used here is one of them, with the reason.
#pragma once

#include <string>
#include <vector>

namespace ist {

struct WayToStart {
  std::string name;    // "PMIx"
  std::string by;      // the commands that start ranks so
  std::string detail;  // what was found, if there is more to say
  std::string off;     // why it cannot be used here; empty if it can
};

// In the order in which join_job() looks for them.
std::vector<WayToStart> ways_to_start();

}  // namespace ist
