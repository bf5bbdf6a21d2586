// Worlds whose ranks find each other by a function of Python's: mpi4py's allgather, or any other exchange.
//
// Who calls this : world.cpp.
// Threads        : the caller holds the GIL; the function runs in its thread, before the call returns.
// Ownership      : the function is needed during the call only.
// Errors         : what the function raises; on the other ranks a BootError.
#pragma once

#include "session.hpp"

namespace isthmus_python {

// `all_gather(bytes)` gives the bytes of all ranks, in their order.
std::shared_ptr<Session> session_with(int rank, int size, nb::handle all_gather, const std::string& settings);

}  // namespace isthmus_python
