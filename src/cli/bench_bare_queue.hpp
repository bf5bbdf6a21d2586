// Bare commands of OpenCL: clEnqueueCopyBuffer, clEnqueueReadBuffer and clEnqueueWriteBuffer in queues of their own, and clFinish.
//
// Who calls this : bench_bare_link.
// Threads        : one.
// Ownership      : buffers and queues, which go with the object.
// Errors         : a Failure that names OpenCL's call.
#pragma once

#include "cli/bench_bare_link.hpp"

namespace ist::cli {

// At least one end is memory of OpenCL, the other one that or memory of the host.
std::unique_ptr<BareLink> open_queue_link(const BareEnds& ends, const Kinds& kinds);

}  // namespace ist::cli
