// Errors of calls that cannot return one: the handler that a program may replace.
//
// Who calls this : all of face/shmem.
// Threads        : any.
// Ownership      : none.
// Errors         : this is where they end: the handler that nobody replaced prints, and ends the job with status 1.
#pragma once

#include <string>

namespace ist::shmem {

// Which call cannot go on, and why. Returns only where the program's own handler does, and not where another thread is ending the process.
[[gnu::cold]] void fail(const char* call, const std::string& cause);
// Why the calling thread's last call failed: kept without calling the handler, for calls that can say so.
void remember(const std::string& cause);
// What ist_ call `code` came from said, if it is an error: then true.
[[gnu::cold]] bool failed(const char* call, int code);

}  // namespace ist::shmem
