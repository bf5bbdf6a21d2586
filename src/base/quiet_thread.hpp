// A thread of the library's own, for which the application's signals are not meant.
//
// Who calls this : whoever needs a thread: the watcher, the progress thread, calls of PMIx.
// Threads        : any; the caller's own mask is as before afterwards.
// Ownership      : the caller owns the thread.
// Errors         : IST_ERR_SYSTEM with `purpose`, which completes "no thread for ...".
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "base/status.hpp"

namespace ist {

// Born with all signals blocked but those of its own faults, and so are the threads that are made in it.
Result<std::thread> quiet_thread(const std::string& purpose, std::function<void()> body);

}  // namespace ist
