// The command `isthmus run`: starts the ranks of a job on this machine.
//
// Who calls this : main.
// Threads        : the calling process must have one thread when the command runs: it forks.
// Ownership      : the command owns every process it starts, and those that they start; none outlives it.
// Errors         : printed; the exit status is that of the first rank that failed (128 + signal where a signal ended it), 2
//                  for a wrong use, 126 and 127 for a program that cannot be started, as shells have it.
#pragma once

#include <CLI/CLI.hpp>

namespace ist::cli {

void add_run_command(CLI::App& app, int& exit_status);

}  // namespace ist::cli
