// This release's number, as ist_version() tells it.
//
// Who calls this : face, and boot where another one is met.
// Threads        : a constant.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <isthmus/isthmus.h>

namespace ist {

#define IST_TEXT(x) #x
#define IST_DOTTED(a, b, c) IST_TEXT(a) "." IST_TEXT(b) "." IST_TEXT(c)
inline constexpr const char* kRelease = IST_DOTTED(IST_VERSION_MAJOR, IST_VERSION_MINOR, IST_VERSION_PATCH);
#undef IST_DOTTED
#undef IST_TEXT

}  // namespace ist
