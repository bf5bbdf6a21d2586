// What the files of Heap share: calls without the GIL, and how one word is named.
//
// Who calls this : heap.cpp, heap_copies.cpp and heap_words.cpp.
// Threads        : the caller holds the GIL.
// Ownership      : a OneWord holds what its memory belongs to.
// Errors         : raised.
#pragma once

#include <string>

#include "errors.hpp"
#include "gil.hpp"
#include "region.hpp"
#include "session.hpp"

namespace isthmus_python {

[[noreturn]] inline void refuse(const std::string& text) { throw nb::value_error(text.c_str()); }

// A call of the library, without the GIL.
template <class Call>
void call_without_gil(Session& session, const Call& what) {
  session.require_open();
  int code = IST_OK;
  {
    const LetGo without_gil{session.inside()};
    code = what();
  }
  check(code);
}

inline void* far_address(const Region& region) { return reinterpret_cast<void*>(region.place.object + region.place.offset); }

struct OneWord {
  Region region;
  void* address;
};

// One integer of 4 or 8 bytes; `name` is that of the call.
OneWord word_in(nb::handle object, const char* name);

}  // namespace isthmus_python
