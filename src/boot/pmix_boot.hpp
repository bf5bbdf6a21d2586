// Boot through PMIx: `mpirun`, `prterun` and `srun --mpi=pmix` start processes that find a PMIx server.
//
// Who calls this : join_job.
// Threads        : any; one exchange of the process at a time.
// Ownership      : one connection per process, made by its first world; it serves every world and closes when the process
//                  ends in order. PMIx counts its users, so that an MPI library in this process keeps its own use.
// Errors         : IST_ERR_BOOT with PMIx's own name for what went wrong. After an exchange that not all ranks came to the
//                  ranks may be out of step, and the process can create no further world.
#pragma once

#include <memory>

#include "boot/boot.hpp"

namespace ist {

// True if a PMIx server started this process or an ancestor.
bool pmix_environment();

Result<std::unique_ptr<Boot>> join_pmix(const Settings& settings);

}  // namespace ist
