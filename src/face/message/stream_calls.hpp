// What the calls that put something into streams have in common.
//
// Who calls this : api_stream.cpp, api_stream_collective.cpp.
// Threads        : any.
// Ownership      : none.
// Errors         : returned; told() reports them with the call's name.
#pragma once

#include "face/message/calls.hpp"

namespace ist {

inline std::uint64_t number_of(void* stream) { return reinterpret_cast<std::uint64_t>(stream); }
int told(const char* call, const Status& status);

// A buffer, checked as far as Channels::admit() does not; `nobody`: nothing will be done with it. OpenCL's are refused.
Result<Piece> stream_piece(World& world, const Data& data, bool nobody = false);

}  // namespace ist
