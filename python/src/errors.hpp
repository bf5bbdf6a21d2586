// Codes of the library as Python exceptions.
//
// Who calls this : every file of the extension.
// Threads        : the caller holds the GIL.
// Ownership      : none.
// Errors         : raising is all it does; the classes are in isthmus/_errors.py.
#pragma once

#include <isthmus/isthmus.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

namespace isthmus_python {

namespace nb = nanobind;

// The call of the package that this thread is in (bound.hpp); null: none that has a name.
inline thread_local const char* call_made = nullptr;

// The exception for a code, not raised; its text begins with the call of the package where it began with one of the library, which
// the user has not made. `status` may be empty.
nb::object make_error(int code, const std::string& text, nb::handle status = {});
[[noreturn]] void raise(nb::handle error);
[[noreturn]] void raise(int code, const std::string& text);

inline void check(int code) {
  if (code != IST_OK) raise(code, ist_error_text());
}

}  // namespace isthmus_python
