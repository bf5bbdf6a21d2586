// Boot by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT: rank 0 listens there, the others connect.
//
// Who calls this : join_job.
// Threads        : one at a time.
// Ownership      : each world's Boot owns its own connections, and rank 0's listener closes once all ranks are in, so that
//                  the port is free for others between worlds.
// Errors         : IST_ERR_BOOT: a variable that cannot be used by name; missing ranks, the address and the time waited.
#pragma once

#include <memory>

#include "boot/boot.hpp"

namespace ist {

// True if any of the four variables is set: a job that forgot one is told so, rather than falling apart into worlds of one.
bool job_environment();
// True if all four are set.
bool complete_job_environment();

Result<std::unique_ptr<Boot>> join_environment(const Settings& settings);

}  // namespace ist
