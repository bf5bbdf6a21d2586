// Collective calls in streams as the benchmark times them: put into the buffer's stream, which is then waited for.
//
// Who calls this : bench_calls, on every rank.
// Threads        : one.
// Ownership      : keeps this rank's context until the process ends.
// Errors         : the code of the library's call; a Failure where the driver fails, or the CUDA parts were left out.
#pragma once

#include "cli/bench_calls.hpp"

namespace ist::cli {

int barrier_on(const CallArguments& with);
int bcast_on(const CallArguments& with);
int reduce_on(const CallArguments& with);
int allreduce_on(const CallArguments& with);

}  // namespace ist::cli
