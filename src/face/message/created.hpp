// New communicators: into the world's table, and a handle out of it.
//
// Who calls this : api_comm.cpp and api_cart.cpp.
// Threads        : any.
// Ownership      : the world owns the new communicator.
// Errors         : reported; the place for the handle is then IST_COMM_NULL.
#pragma once

#include <functional>
#include <memory>

#include "face/message/handles.hpp"

namespace ist {

// `wrong`: why this rank can have none, if it cannot; what makes it then tells the others, and returns that.
using MakesComm = std::function<Result<std::unique_ptr<Communicator>>(const InWorld& parent, Status wrong)>;
// Runs `make` on the parent; a null communicator becomes IST_COMM_NULL.
int create(const char* call, ist_comm comm, ist_comm* created, const MakesComm& make);

}  // namespace ist
