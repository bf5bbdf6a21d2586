// The C border: one code, and one text per thread.
//
// Who calls this : the api_*.cpp files.
// Threads        : the text is the calling thread's own.
// Ownership      : the text lives until the thread's next failing call.
// Errors         : this is where they end.
#pragma once

#include "base/status.hpp"

namespace ist {

// Remembers the text and returns the code; success leaves the last text alone.
int report(const Status& status);
int report(ist_code code, std::string text);
// In a catch block at the C border: no exception leaves the library, memory exhaustion included.
int report_exception(const char* call);

}  // namespace ist
