// Contexts: every operation is done, or waited for, by all of them alike; what a context adds is its team's numbers of PEs.
//
// Who calls this : copies, atomics, teams.
// Threads        : any.
// Ownership      : as of teams.
// Errors         : by fail().
#pragma once

#include "face/shmem/hot.hpp"

namespace ist::shmem {

// Turns a PE of the context's team into one of the world. False: fail() was called.
bool to_world(const char* call, shmem_ctx_t context, int& pe);
// The same of calls that name no PE. False also of SHMEM_CTX_INVALID, of which nobody is told: such calls do nothing then.
bool is_there(const char* call, shmem_ctx_t context);
void destroy_context(shmem_ctx_t context);

}  // namespace ist::shmem
