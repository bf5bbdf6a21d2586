#include "words.hpp"

#include "memory.hpp"

namespace isthmus_python {
namespace {

std::string joined(const char* const* names, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += (i == 0 ? "" : i + 1 == count ? " or " : ", ") + std::string{names[i]};
  return all;
}

template <std::size_t count>
int number_of(const std::array<const char*, count>& names, const std::string& name, const char* what) {
  for (std::size_t i = 0; i < count; ++i)
    if (name == names[i]) return static_cast<int>(i);
  refuse(std::string{what} + " is '" + name + "'; it must be " + joined(names.data(), count));
}

// In the order of ist_compare and ist_atomic.
constexpr std::array<const char*, 6> kCompares{"==", "!=", ">", ">=", "<", "<="};
constexpr std::array<const char*, 8> kAtomics{"fetch", "set", "add", "inc", "swap", "and", "or", "xor"};

bool is_signed(ist_type type) { return type == IST_INT32 || type == IST_INT64; }

}  // namespace

void refuse(const std::string& text) { throw nb::value_error(text.c_str()); }

ist_compare compare_named(const std::string& name) {
  return static_cast<ist_compare>(number_of(kCompares, name, "compare"));
}
ist_atomic atomic_named(const std::string& name) { return static_cast<ist_atomic>(number_of(kAtomics, name, "operation")); }

WordType word_named(const std::string& typestr) {
  const std::string name =
      typestr.substr(typestr.find_first_not_of("<=|") == std::string::npos ? 0 : typestr.find_first_not_of("<=|"));
  if (name == "i4") return {IST_INT32, 4};
  if (name == "u4") return {IST_UINT32, 4};
  if (name == "i8") return {IST_INT64, 8};
  if (name == "u8") return {IST_UINT64, 8};
  refuse("typestr is '" + typestr + "'; a word is an integer of 4 or 8 bytes: 'i4', 'u4', 'i8' or 'u8'");
}

std::int64_t number_for(const WordType& word, nb::handle number, Sign sign) {
  // NumPy's integers, too.
  const nb::object whole = nb::steal(PyNumber_Index(number.ptr()));
  if (!whole.is_valid()) nb::raise_python_error();
  int beyond = 0;
  long long value = PyLong_AsLongLongAndOverflow(whole.ptr(), &beyond);
  const bool four = word.size == 4;
  const bool wide = beyond > 0;  // 2^63 or more
  if (wide) {
    value = static_cast<long long>(PyLong_AsUnsignedLongLong(whole.ptr()));
    beyond = PyErr_Occurred() != nullptr ? 1 : 0;
    PyErr_Clear();
  } else if (value == -1 && PyErr_Occurred() != nullptr) {
    nb::raise_python_error();
  }
  if (beyond != 0 || (four && (wide || value < INT32_MIN || value > static_cast<long long>(UINT32_MAX))))
    refuse("the number is " + nb::cast<std::string>(nb::str(number)) + ", which no word of " + std::to_string(word.size) +
           " bytes has");
  const bool own_sign = is_signed(word.type) ? !wide && (!four || value <= INT32_MAX) : wide || value >= 0;
  if (sign == Sign::own && !own_sign)
    refuse("the number is " + nb::cast<std::string>(nb::str(number)) + ", which no " +
           (is_signed(word.type) ? "signed" : "unsigned") + " word of " + std::to_string(word.size) +
           " bytes has; give one that the word may have, or a view of the other type");
  return value;
}

nb::object to_number(const WordType& word, std::uint64_t bits) {
  if (word.size == 4)
    return is_signed(word.type) ? nb::object(nb::int_(static_cast<std::int32_t>(bits)))
                                : nb::object(nb::int_(static_cast<std::uint32_t>(bits)));
  return is_signed(word.type) ? nb::object(nb::int_(static_cast<std::int64_t>(bits))) : nb::object(nb::int_(bits));
}

}  // namespace isthmus_python
