// The process the user sees: it passes signals on and waits for the guardian, which does the work.
//
// Who calls this : run.
// Threads        : the process must have one.
// Ownership      : should the guardian be killed, everything it had started is ended here.
// Errors         : printed; returned as the exit status.
#pragma once

#include "cli/run_options.hpp"

namespace ist::cli {

int launch(const RunOptions& options);

}  // namespace ist::cli
