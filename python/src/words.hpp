// What one-sided calls of Python have in common: calls without the GIL, names of comparisons and operations, numbers that a word may have.
//
// Who calls this : heap.cpp, heap_copies.cpp, heap_words.cpp, window.cpp.
// Threads        : the caller holds the GIL, which calls let go of.
// Ownership      : none.
// Errors         : raised.
#pragma once

#include <isthmus/heap.h>

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "errors.hpp"
#include "gil.hpp"
#include "session.hpp"
#include "wait.hpp"

namespace isthmus_python {

[[noreturn]] void refuse(const std::string& text);

// A call of the library, without the GIL.
template <class Call>
void call(Session& session, const Call& what) {
  session.require_open();
  int code = IST_OK;
  {
    const LetGo without_gil{session.inside()};
    code = what();
  }
  check(code);
}

// The same of a call that all PEs make.
template <class Call>
void call_all(
    const std::shared_ptr<Session>& session, const Call& what, const std::function<void()>& begins = [] {}) {
  call_of_all(
      session, what, [](int) {}, begins);
}

ist_compare compare_named(const std::string& name);
ist_atomic atomic_named(const std::string& name);

struct WordType {
  ist_type type = IST_UINT64;
  std::int64_t size = 8;
};
// "i4", "u4", "i8", "u8"
WordType word_named(const std::string& typestr);

// What operations on bits take is a number of the word's own type or of that of the other sign; what is compared is one of its own.
enum class Sign { either, own };
std::int64_t number_for(const WordType& word, nb::handle number, Sign sign = Sign::either);
nb::object to_number(const WordType& word, std::uint64_t bits);

}  // namespace isthmus_python
