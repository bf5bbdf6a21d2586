// Collective calls in streams as the benchmark times them: put into the buffer's stream, which is then waited for; one at a time, many,
// and many that were captured.
//
// Who calls this : bench_calls and bench_collective, on every rank.
// Threads        : one.
// Ownership      : keeps this rank's context until the process ends.
// Errors         : the code of the library's call; a Failure where the driver fails, or the CUDA parts were left out.
#pragma once

#include <array>

#include "cli/bench_session.hpp"

namespace ist::cli {

int barrier_on(const CallArguments& with);
int bcast_on(const CallArguments& with);
int reduce_on(const CallArguments& with);
int allreduce_on(const CallArguments& with);
// The same, and nobody waits.
int put_barrier_on(const CallArguments& with);
int put_bcast_on(const CallArguments& with);
int put_reduce_on(const CallArguments& with);
int put_allreduce_on(const CallArguments& with);

// Microseconds of one of many calls, median of batches, averaged over ranks: put there ahead; captured in a graph, which is launched.
// Of what cannot be captured the second is not a number.
std::array<double, 2> measure_forms(Session& session, const CallArguments& with);

}  // namespace ist::cli
