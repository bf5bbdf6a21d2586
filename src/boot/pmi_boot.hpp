// Boot through PMI_FD: `srun --mpi=pmi2`, and mpiexec of MPICH and its relatives.
//
// Who calls this : join_job.
// Threads        : any; one exchange of the process at a time.
// Ownership      : the socket belongs to the process: one per process, it serves every world, and it closes when the process
//                  ends in order.
// Errors         : IST_ERR_BOOT. A process with an MPI library is refused, because PMI serves one user per process, and is
//                  told to hand its communicator over. After an exchange that failed there can be no further one.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "boot/boot.hpp"

namespace ist {

// True if a PMI server started this process or an ancestor.
bool pmi_environment();

Result<std::unique_ptr<Boot>> join_pmi(const Settings& settings);

// Bytes in the 64 letters A-Z a-z 0-9 - _, which need no quotes anywhere, and back; none if it is no such text.
std::string in_letters(std::string_view bytes);
std::optional<std::string> out_of_letters(std::string_view letters);

}  // namespace ist
