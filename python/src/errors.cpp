#include "errors.hpp"

namespace isthmus_python {

nb::object make_error(int code, const std::string& text, nb::handle status) {
  const nb::object make = nb::module_::import_("isthmus._errors").attr("make_error");
  return make(code, ist_code_name(code), text, status.is_valid() ? nb::borrow(status) : nb::none());
}

void raise(nb::handle error) {
  PyErr_SetObject(error.type().ptr(), error.ptr());
  nb::raise_python_error();
}

void raise(int code, const std::string& text) { raise(make_error(code, text)); }

}  // namespace isthmus_python
