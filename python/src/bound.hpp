// Classes and functions of the package, which know by what name they are called: errors begin with it, as the library's do with theirs.
//
// Who calls this : every file that binds something.
// Threads        : the caller holds the GIL; each thread has a call of its own.
// Ownership      : names are kept by whoever gives them, until the process ends.
// Errors         : none of its own; make_error() (errors.hpp) asks for the call.
#pragma once

#include <string_view>
#include <utility>

#include "errors.hpp"

namespace isthmus_python {

// This thread is in a call; in that of a reduction's function it may be in another one.
class InCall {
 public:
  explicit InCall(const char* name) : before_(std::exchange(call_made, name)) {}
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;
  ~InCall() { call_made = before_; }

 private:
  const char* before_;
};

// What nanobind is given in place of a function, a lambda or a member of `Self`: the same, with its name.
template <class Self, class Result, class... Arguments>
auto named(const char* name, Result (*function)(Arguments...)) {
  return [name, function](Arguments... arguments) -> Result {
    const InCall call{name};
    return function(std::forward<Arguments>(arguments)...);
  };
}

template <class Self, class Result, class Owner, class... Arguments>
auto named(const char* name, Result (Owner::*member)(Arguments...)) {
  return [name, member](Self& self, Arguments... arguments) -> Result {
    const InCall call{name};
    return (self.*member)(std::forward<Arguments>(arguments)...);
  };
}

template <class Self, class Result, class Owner, class... Arguments>
auto named(const char* name, Result (Owner::*member)(Arguments...) const) {
  return [name, member](const Self& self, Arguments... arguments) -> Result {
    const InCall call{name};
    return (self.*member)(std::forward<Arguments>(arguments)...);
  };
}

template <class Function, class Result, class... Arguments>
auto named_lambda(const char* name, Function function, Result (Function::*)(Arguments...) const) {
  return [name, function](Arguments... arguments) -> Result {
    const InCall call{name};
    return function(std::forward<Arguments>(arguments)...);
  };
}

template <class Self, class Function, auto = &Function::operator()>
auto named(const char* name, Function function) {
  return named_lambda(name, function, &Function::operator());
}

template <class T, class... Bases>
class Bound : public nb::class_<T, Bases...> {
  using Class = nb::class_<T, Bases...>;

 public:
  template <class... Extra>
  Bound(nb::handle scope, const char* name, const Extra&... extra) : Class(scope, name, extra...), name_(name) {}
  template <class Function, class... Extra>
  Bound& def(const char* name, Function&& function, const Extra&... extra) {
    Class::def(name, named<T>(shown(name), std::forward<Function>(function)), extra...);
    return *this;
  }
  template <class... Arguments, class... Extra>
  Bound& def(nb::init<Arguments...>&& init, const Extra&... extra) {
    Class::def(std::move(init), extra...);
    return *this;
  }
  template <class Function, class... Extra>
  Bound& def_static(const char* name, Function&& function, const Extra&... extra) {
    Class::def_static(name, named<T>(name, std::forward<Function>(function)), extra...);
    return *this;
  }
  template <class Getter, class... Extra>
  Bound& def_prop_ro(const char* name, Getter&& getter, const Extra&... extra) {
    Class::def_prop_ro(name, std::forward<Getter>(getter), extra...);
    return *this;
  }

 private:
  // Nobody writes the others that Python has names for.
  const char* shown(std::string_view name) const {
    if (name == "__init__") return name_;
    return name.starts_with("__") ? nullptr : name.data();
  }
  const char* name_;
};

// A function of the module.
template <class Function, class... Extra>
void define(nb::module_& module, const char* name, Function&& function, const Extra&... extra) {
  module.def(name, named<void>(name, std::forward<Function>(function)), extra...);
}

}  // namespace isthmus_python
