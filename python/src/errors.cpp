#include "errors.hpp"

namespace isthmus_python {

namespace {

std::string in_its_words(const std::string& text) {
  const std::size_t end = text.find(": ");
  const bool names_a_call = text.starts_with("ist_") && end != std::string::npos &&
                            text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == end;
  return call_made != nullptr && names_a_call ? call_made + text.substr(end) : text;
}

}  // namespace

nb::object make_error(int code, const std::string& text, nb::handle status) {
  const nb::object make = nb::module_::import_("isthmus._errors").attr("make_error");
  return make(code, ist_code_name(code), in_its_words(text), status.is_valid() ? nb::borrow(status) : nb::none());
}

void raise(nb::handle error) {
  PyErr_SetObject(error.type().ptr(), error.ptr());
  nb::raise_python_error();
}

void raise(int code, const std::string& text) { raise(make_error(code, text)); }

}  // namespace isthmus_python
