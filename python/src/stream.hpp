// What Python's calls that put something into CUDA streams have in common.
//
// Who calls this : stream.cpp, stream_collective.cpp.
// Threads        : the caller holds the GIL, and call_on() lets go of it meanwhile.
// Ownership      : nothing keeps buffers for the stream: the program does.
// Errors         : TypeError for what is no stream; the library's are raised.
#pragma once

#include "comm.hpp"
#include "errors.hpp"
#include "gil.hpp"

namespace isthmus_python {

// A number, or what CuPy, PyTorch and cuda.core call a stream; None is the legacy default one.
void* to_stream(nb::handle stream);

// `body`: of the library, on a communicator.
template <class Body>
void call_on(const Channels& on, const Body& body) {
  int code = IST_OK;
  {
    const LetGo without_gil{on.session->inside()};
    code = body(on.user);
  }
  check(code);
}

}  // namespace isthmus_python
