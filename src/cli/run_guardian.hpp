// The parent of the ranks: starts them, lets them meet, tells how they end, and leaves nothing behind.
//
// Who calls this : run_launcher, in a process made for it.
// Threads        : one.
// Ownership      : every process that the ranks start is adopted and ended; sockets and pipes have no names.
// Errors         : printed; the exit status is returned.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <vector>

#include "base/file_descriptor.hpp"
#include "cli/run_options.hpp"

namespace ist::cli {

// `lifeline` becomes readable when `launcher` is gone; ranks start with the signal mask `signals`.
int guard(const RunOptions& options, const std::vector<std::vector<int>>& shares, const FileDescriptor& lifeline,
          pid_t launcher, const sigset_t& signals);

}  // namespace ist::cli
