// Waiting without the GIL, until the operations are complete or Python has a signal to handle.
//
// Who calls this : request.cpp, request_set.cpp, comm.cpp, halo.cpp, heap.cpp.
// Threads        : the caller holds the GIL, which is let go of meanwhile.
// Ownership      : none.
// Errors         : whatever a signal handler raises (KeyboardInterrupt); the operations then go on.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "session.hpp"

namespace isthmus_python {

// The worlds of those that are waited for, each once, at least one. All are to be open, and to stay so meanwhile.
using Sessions = std::span<Session* const>;

void wait_for(Session& session, std::span<const std::shared_ptr<Operation>> operations);
void wait_for(Sessions sessions, std::span<const std::shared_ptr<Operation>> operations);
// The first of them, in their order, that is complete.
std::size_t wait_for_any(Sessions sessions, std::span<const std::shared_ptr<Operation>> operations);
// The same for anything that can be asked, without the GIL.
void wait_for(Session& session, const std::function<bool()>& over);
// Before a call of the library that waits for other ranks: they may need steps of what a signal has left unfinished, and where one
// thread at a time is inside the library nobody makes them meanwhile.
void finish_left(Session& session);
// A call of the library that waits for other ranks and cannot be taken back. It is made by a thread of its own, so that a signal ends the
// caller's wait (not where threads=single promises that there is one at a time); the call goes on then, and `late` hears, without the GIL,
// how it ended; the next one waits for it. Raises what the library says. What they hold goes with the GIL held, or not at all.
// `begins`: told with the GIL when it is made, which is not before an earlier one that was left behind is over.
void call_of_all(
    const std::shared_ptr<Session>& session, std::function<int()> call, std::function<void(int)> late,
    const std::function<void()>& begins = [] {});
// One look at an operation, and at those with steps of their own.
bool look_at(Session& session, Operation& operation);
void look_at_all(Sessions sessions, std::span<const std::shared_ptr<Operation>> operations);

}  // namespace isthmus_python
