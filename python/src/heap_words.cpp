// Words of symmetric heaps: compared, waited for, and changed atomically.
#include <array>

#include "heap.hpp"
#include "heap_parts.hpp"
#include "wait.hpp"

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

// What operations on bits take is a number of the word's own type or of that of the other sign; what is compared is one of its own.
enum class Sign { either, own };
std::int64_t number_for(const OneWord& word, nb::handle number, Sign sign = Sign::either) {
  // NumPy's integers, too.
  const nb::object whole = nb::steal(PyNumber_Index(number.ptr()));
  if (!whole.is_valid()) nb::raise_python_error();
  int beyond = 0;
  long long value = PyLong_AsLongLongAndOverflow(whole.ptr(), &beyond);
  const bool four = word.region.item_size == 4;
  const bool wide = beyond > 0;  // 2^63 or more
  if (wide) {
    value = static_cast<long long>(PyLong_AsUnsignedLongLong(whole.ptr()));
    beyond = PyErr_Occurred() != nullptr ? 1 : 0;
    PyErr_Clear();
  } else if (value == -1 && PyErr_Occurred() != nullptr) {
    nb::raise_python_error();
  }
  if (beyond != 0 || (four && (wide || value < INT32_MIN || value > static_cast<long long>(UINT32_MAX))))
    refuse("the number is " + nb::cast<std::string>(nb::str(number)) + ", which no word of " +
           std::to_string(word.region.item_size) + " bytes has");
  const bool own_sign = is_signed(word.region.type) ? !wide && (!four || value <= INT32_MAX) : wide || value >= 0;
  if (sign == Sign::own && !own_sign)
    refuse("the number is " + nb::cast<std::string>(nb::str(number)) + ", which no " +
           (is_signed(word.region.type) ? "signed" : "unsigned") + " word of " + std::to_string(word.region.item_size) +
           " bytes has; give one that the word may have, or a view of the other type");
  return value;
}

nb::object to_number(const OneWord& word, std::uint64_t bits) {
  if (word.region.item_size == 4)
    return is_signed(word.region.type) ? nb::object(nb::int_(static_cast<std::int32_t>(bits)))
                                       : nb::object(nb::int_(static_cast<std::uint32_t>(bits)));
  return is_signed(word.region.type) ? nb::object(nb::int_(static_cast<std::int64_t>(bits))) : nb::object(nb::int_(bits));
}

}  // namespace

OneWord word_in(nb::handle object, const char* name) {
  Region region = to_region(object, Access::read);
  const bool integer =
      region.type == IST_INT32 || region.type == IST_UINT32 || region.type == IST_INT64 || region.type == IST_UINT64;
  if (region.count != 1 || !integer)
    refuse(std::string{name} + " works on one integer of 4 or 8 bytes, and this has " + std::to_string(region.count) +
           " elements of " + std::to_string(region.item_size) + " bytes; give a view of one, such as words[3:4]");
  return {region, far_address(region)};
}

bool Heap::test(nb::handle object, const std::string& compare, nb::handle number) const {
  const OneWord word = word_in(object, "test");
  const std::int64_t value = number_for(word, number, Sign::own);
  const auto how = static_cast<ist_compare>(number_of(kCompares, compare, "compare"));
  int is = 0;
  ist_heap heap = open();
  call_without_gil(session(), [&] { return ist_heap_test(heap, word.address, word.region.type, how, value, &is); });
  return is != 0;
}

void Heap::wait_until(nb::handle object, const std::string& compare, nb::handle number) const {
  const OneWord word = word_in(object, "wait_until");
  const std::int64_t value = number_for(word, number, Sign::own);
  const auto how = static_cast<ist_compare>(number_of(kCompares, compare, "compare"));
  ist_heap heap = open();
  int code = IST_OK;
  std::string text;
  wait_for(session(), [&] {
    int is = 0;
    code = ist_heap_test(heap, word.address, word.region.type, how, value, &is);
    if (code != IST_OK) text = ist_error_text();
    return code != IST_OK || is != 0;
  });
  if (code != IST_OK) raise(code, text);
}

nb::object Heap::atomic(const std::string& operation, nb::handle object, nb::handle number, int pe) const {
  const OneWord word = word_in(object, "atomic");
  const std::int64_t operand = number_for(word, number);
  const auto what = static_cast<ist_atomic>(number_of(kAtomics, operation, "operation"));
  std::uint32_t before32 = 0;
  std::uint64_t before64 = 0;
  const bool four = word.region.item_size == 4;
  ist_heap heap = open();
  call_without_gil(session(), [&] {
    return four ? ist_heap_atomic32(heap, what, static_cast<std::uint32_t*>(word.address),
                                    static_cast<std::uint32_t>(operand), &before32, pe)
                : ist_heap_atomic64(heap, what, static_cast<std::uint64_t*>(word.address),
                                    static_cast<std::uint64_t>(operand), &before64, pe);
  });
  return to_number(word, four ? before32 : before64);
}

nb::object Heap::compare_swap(nb::handle object, nb::handle if_this, nb::handle then_this, int pe) const {
  const OneWord word = word_in(object, "compare_swap");
  const std::int64_t expected = number_for(word, if_this);
  const std::int64_t wanted = number_for(word, then_this);
  std::uint32_t before32 = 0;
  std::uint64_t before64 = 0;
  const bool four = word.region.item_size == 4;
  ist_heap heap = open();
  call_without_gil(session(), [&] {
    return four ? ist_heap_compare_swap32(heap, static_cast<std::uint32_t*>(word.address),
                                          static_cast<std::uint32_t>(expected), static_cast<std::uint32_t>(wanted),
                                          &before32, pe)
                : ist_heap_compare_swap64(heap, static_cast<std::uint64_t*>(word.address),
                                          static_cast<std::uint64_t>(expected), static_cast<std::uint64_t>(wanted),
                                          &before64, pe);
  });
  return to_number(word, four ? before32 : before64);
}

}  // namespace isthmus_python
