// One rank's process.
//
// Who calls this : run_guardian.
// Threads        : the process must have one: the child sets its environment between fork and exec.
// Ownership      : the caller reaps the process.
// Errors         : a program that cannot be started is told by the system's error number.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <vector>

#include "base/file_descriptor.hpp"
#include "cli/run_options.hpp"

namespace ist::cli {

struct RankStart {
  int rank = 0;
  int boot = -1;                // its end of the boot socket
  int output = -1;              // where its standard output goes; -1: where the command's goes
  int errors = -1;              // where its standard error goes
  std::vector<int> processors;  // empty: not bound
  sigset_t signals{};           // the mask it starts with
  int lifeline = -1;            // becomes readable when the launcher is gone: stop waiting for the child
};

struct StartedRank {
  pid_t process = -1;
  int error = 0;  // errno of the exec that failed; the process is to be reaped all the same
};

Result<StartedRank> start_rank(const RunOptions& options, const RankStart& start);

}  // namespace ist::cli
