// A word from whoever waits for a request by asking for it again and again, as the Python package does, which has signals to look after. No part of
// the C interface.
//
// Who calls this : python/.
// Threads        : any.
// Ownership      : none.
// Errors         : none; of what is no request nothing is remembered.
#pragma once

#include <isthmus/isthmus.h>

extern "C" {

// The caller goes on only when the request is over, whatever ist_test finds; also of one that it has found over already. What is NCCL's later on
// may follow from that (collective/nccl_known.hpp).
IST_API void ist_private_awaits(ist_request request);
}
