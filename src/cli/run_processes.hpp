// Processes and those they started.
//
// Who calls this : run_launcher, run_guardian.
// Threads        : one.
// Ownership      : none; end_descendants reaps.
// Errors         : printed by say().
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

#include "base/status.hpp"

namespace ist::cli {

// Children, their children and so on; not `except` and not what descends from those. A process whose parent ended counts as
// a child of whoever adopted it.
std::vector<pid_t> descendants(pid_t root, const std::set<pid_t>& except);

enum class Among { all, other_groups };  // than this process's own
void signal_descendants(int signal, Among which = Among::all);

// Kills and reaps everything this process started or adopted, but not `except`. False if some would not go in time.
bool end_descendants(const std::set<pid_t>& except, double seconds);

// "exited with status 3", "was ended by signal SIGSEGV (11)".
std::string how_it_ended(int wait_status);
// As shells count: 128 + signal.
int exit_status_of(int wait_status);

// "isthmus run: text" on standard error, in one piece.
void say(const std::string& text);
int say_and_fail(const Status& status);

}  // namespace ist::cli
