// Tokens for the C interface: never dereferenced, so that a released, foreign or made-up one is an error and not a crash.
//
// Who calls this : the api_*.cpp files.
// Threads        : any; a world must not be destroyed while another thread is inside a call on it, as in MPI.
// Ownership      : the registry owns the worlds of this process. It holds no other state: worlds know nothing of each other.
// Errors         : IST_ERR_HANDLE with what was given and what was expected.
#pragma once

#include <isthmus/isthmus.h>

#include "face/message/world.hpp"

namespace ist {

enum class HandleType : std::uint8_t { world = 1, comm = 2 };

// A world with one of its communicators or operations.
struct InWorld {
  World* world = nullptr;
  Communicator* comm = nullptr;
  OperationId operation;
  bool persistent = false;  // the operation is a persistent request
};

Result<ist_world> add_world(std::unique_ptr<World> world);
// Takes the world out of the registry; null if the handle is none.
std::unique_ptr<World> remove_world(ist_world handle);

// Null: no communicator of this process. `world`: its world.
Communicator* find(ist_comm handle, World*& world);

Result<InWorld> look_up(ist_world handle);
Result<InWorld> look_up(ist_comm handle);
Result<InWorld> look_up(ist_request handle);
Result<InWorld> look_up(ist_message handle);

// What a request says of itself; whether there is such an operation, its engine knows.
struct OperationName {
  World* world = nullptr;  // null: of no world that is there
  OperationId id;
};
OperationName operation_named(ist_request handle);

// `of`: any handle of the same world.
ist_comm comm_handle(ist_world of, const CommName& name);
ist_comm comm_handle(ist_comm of, const CommName& name);
CommName name_in(ist_comm handle);
ist_request request_handle(ist_comm of, OperationId id);
ist_request request_handle(ist_message of, OperationId id);
ist_message message_handle(ist_comm of, OperationId id);

}  // namespace ist
