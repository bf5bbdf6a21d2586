// Errors of calls that cannot return one: the handler that a program may replace.
//
// Who calls this : all of face/shmem.
// Threads        : any.
// Ownership      : none.
// Errors         : this is where they end: the handler that nobody replaced prints, and ends the job with status 1.
#pragma once

#include <string>
#include <type_traits>

namespace ist::shmem {

// Which call cannot go on, and why. Returns only where the program's own handler does, and not where another thread is ending the process.
[[gnu::cold]] void fail(const char* call, const std::string& cause);
// Why the calling thread's last call failed: kept without calling the handler, for calls that can say so.
void remember(const std::string& cause);
// What ist_ call `code` came from said, if it is an error: then true.
[[gnu::cold]] bool failed(const char* call, int code);
// In the handler of what left that call as an exception, such as memory that has run out: then it cannot go on, either. What the program's
// own handler throws goes on to the program.
[[gnu::cold]] void caught(const char* call);

// Every C call that may throw is made of one of these, or ends in caught() by itself: no exception comes to a program of C. Of those that
// return something `otherwise` is that, where they cannot go on.
template <class What>
[[gnu::always_inline]] inline void guarded(const char* call, const What& what) {
  try {
    what();
  } catch (...) {
    caught(call);
  }
}
template <class Otherwise, class What>
[[gnu::always_inline]] inline std::invoke_result_t<What> guarded(const char* call, Otherwise otherwise, const What& what) {
  try {
    return what();
  } catch (...) {
    caught(call);
    return otherwise;
  }
}

}  // namespace ist::shmem
