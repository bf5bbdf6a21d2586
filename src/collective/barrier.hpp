// Nobody leaves before everybody has come.
//
// Who calls this : face/.
// Threads        : one barrier at a time per communicator, as in MPI.
// Ownership      : none.
// Errors         : of the first message that failed; a dead rank is named.
//
// Dissemination (Hensgen, Finkel, Manber 1988): ceil(log2 n) rounds; in round k rank r tells r + 2^k and hears from r - 2^k.
#pragma once

#include "collective/communicator.hpp"

namespace ist {

Status barrier(const Communicator& comm);

}  // namespace ist
