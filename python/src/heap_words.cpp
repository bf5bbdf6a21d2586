// Words of symmetric heaps: compared, waited for, and changed atomically.
#include "heap.hpp"
#include "heap_parts.hpp"
#include "wait.hpp"

namespace isthmus_python {
OneWord word_in(nb::handle object, const char* name) {
  Region region = far_region(object, Access::read);
  const bool integer =
      region.type == IST_INT32 || region.type == IST_UINT32 || region.type == IST_INT64 || region.type == IST_UINT64;
  const std::string wanted = std::string{name} + " works on one integer of 4 or 8 bytes (i4, u4, i8 or u8), and this ";
  if (!integer)
    refuse(wanted + "has elements of type " + element_name(region) + "; give integers, such as heap.array(8, 'i8')");
  if (region.count != 1)
    refuse(wanted + "has " + std::to_string(region.count) + " of them; give a view of one, such as words[3:4]");
  return {region, far_address(region)};
}

bool Heap::test(nb::handle object, const std::string& compare, nb::handle number) const {
  const OneWord word = word_in(object, "test");
  const std::int64_t value = number_for(word.type(), number, Sign::own);
  const auto how = compare_named(compare);
  int is = 0;
  ist_heap heap = open();
  call(session(), [&] { return ist_heap_test(heap, word.address, word.region.type, how, value, &is); });
  return is != 0;
}

void Heap::wait_until(nb::handle object, const std::string& compare, nb::handle number) const {
  const OneWord word = word_in(object, "wait_until");
  const std::int64_t value = number_for(word.type(), number, Sign::own);
  const auto how = compare_named(compare);
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
  const std::int64_t operand = number_for(word.type(), number);
  const auto what = atomic_named(operation);
  std::uint32_t before32 = 0;
  std::uint64_t before64 = 0;
  const bool four = word.region.item_size == 4;
  ist_heap heap = open();
  call(session(), [&] {
    return four ? ist_heap_atomic32(heap, what, static_cast<std::uint32_t*>(word.address),
                                    static_cast<std::uint32_t>(operand), &before32, pe)
                : ist_heap_atomic64(heap, what, static_cast<std::uint64_t*>(word.address),
                                    static_cast<std::uint64_t>(operand), &before64, pe);
  });
  return to_number(word.type(), four ? before32 : before64);
}

nb::object Heap::compare_swap(nb::handle object, nb::handle if_this, nb::handle then_this, int pe) const {
  const OneWord word = word_in(object, "compare_swap");
  const std::int64_t expected = number_for(word.type(), if_this);
  const std::int64_t wanted = number_for(word.type(), then_this);
  std::uint32_t before32 = 0;
  std::uint64_t before64 = 0;
  const bool four = word.region.item_size == 4;
  ist_heap heap = open();
  call(session(), [&] {
    return four ? ist_heap_compare_swap32(heap, static_cast<std::uint32_t*>(word.address),
                                          static_cast<std::uint32_t>(expected), static_cast<std::uint32_t>(wanted),
                                          &before32, pe)
                : ist_heap_compare_swap64(heap, static_cast<std::uint64_t*>(word.address),
                                          static_cast<std::uint64_t>(expected), static_cast<std::uint64_t>(wanted),
                                          &before64, pe);
  });
  return to_number(word.type(), four ? before32 : before64);
}

}  // namespace isthmus_python
