// C calls about words of symmetric heaps: signals, waits, atomics.
#include "face/heap/heap_calls.hpp"
#include "face/heap/one_sided_words.hpp"

namespace ist {
namespace {

Result<PlaceInHeap> own_word(const CollectiveHeap& heap, const void* address, const Condition& wanted) {
  IST_TRY(check_condition(wanted, reinterpret_cast<std::uint64_t>(address)));
  const auto offset = heap.memory().locate(address, Bytes{word_type(wanted.type).size});
  if (!offset.ok()) return offset.status();
  return PlaceInHeap{heap.memory().shape().pe, *offset};
}

Result<PlaceInHeap> word_in(const CollectiveHeap& heap, const Named& named) {
  IST_TRY(check_aligned(reinterpret_cast<std::uint64_t>(named.address), named.size.value));
  return place_in(heap, named);
}

template <class T>
int atomic(const char* call, ist_heap heap, ist_atomic operation, const Named& named, T operand, T* before) {
  return in_heap(call, heap,
                 [&](CollectiveHeap& in) { return change_word(in, word_in(in, named), operation, operand, before); });
}

template <class T>
int compare_swap(const char* call, ist_heap heap, const Named& named, T expected, T wanted, T* before) {
  return in_heap(call, heap,
                 [&](CollectiveHeap& in) { return compare_swap_word(in, word_in(in, named), expected, wanted, before); });
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_heap_signal_fetch(ist_heap heap, const uint64_t* signal, uint64_t* value) try {
  if (value == nullptr) return ist::null_argument("ist_heap_signal_fetch", "value");
  return ist::in_heap("ist_heap_signal_fetch", heap, [&](ist::CollectiveHeap& in) -> ist::Status {
    const auto word = ist::own_word(in, signal, {IST_UINT64, IST_COMPARE_EQ, 0});
    if (!word.ok()) return word.status();
    const auto bits = ist::read_own(in, *word, sizeof *value);
    if (bits.ok()) *value = *bits;
    return bits.status();
  });
} catch (...) {
  return ist::report_exception("ist_heap_signal_fetch");
}

int ist_heap_wait_until(ist_heap heap, const void* address, ist_type type, ist_compare compare, int64_t value) try {
  return ist::in_heap("ist_heap_wait_until", heap, [&](ist::CollectiveHeap& in) -> ist::Status {
    const auto word = ist::own_word(in, address, {type, compare, value});
    return word.ok() ? ist::wait_until(in, *word, {type, compare, value}) : word.status();
  });
} catch (...) {
  return ist::report_exception("ist_heap_wait_until");
}

int ist_heap_test(ist_heap heap, const void* address, ist_type type, ist_compare compare, int64_t value, int* is) try {
  if (is == nullptr) return ist::null_argument("ist_heap_test", "is");
  *is = 0;
  return ist::in_heap("ist_heap_test", heap, [&](ist::CollectiveHeap& in) -> ist::Status {
    const ist::Condition wanted{type, compare, value};
    const auto word = ist::own_word(in, address, wanted);
    if (!word.ok()) return word.status();
    return ist::test_word(in, *word, wanted, *is);
  });
} catch (...) {
  return ist::report_exception("ist_heap_test");
}

int ist_heap_atomic32(ist_heap heap, ist_atomic operation, uint32_t* address, uint32_t operand, uint32_t* before,
                      int pe) try {
  return ist::atomic("ist_heap_atomic32", heap, operation, {address, ist::Bytes{sizeof operand}, pe}, operand, before);
} catch (...) {
  return ist::report_exception("ist_heap_atomic32");
}

int ist_heap_atomic64(ist_heap heap, ist_atomic operation, uint64_t* address, uint64_t operand, uint64_t* before,
                      int pe) try {
  return ist::atomic("ist_heap_atomic64", heap, operation, {address, ist::Bytes{sizeof operand}, pe}, operand, before);
} catch (...) {
  return ist::report_exception("ist_heap_atomic64");
}

int ist_heap_compare_swap32(ist_heap heap, uint32_t* address, uint32_t expected, uint32_t wanted, uint32_t* before,
                            int pe) try {
  return ist::compare_swap("ist_heap_compare_swap32", heap, {address, ist::Bytes{sizeof wanted}, pe}, expected, wanted,
                           before);
} catch (...) {
  return ist::report_exception("ist_heap_compare_swap32");
}

int ist_heap_compare_swap64(ist_heap heap, uint64_t* address, uint64_t expected, uint64_t wanted, uint64_t* before,
                            int pe) try {
  return ist::compare_swap("ist_heap_compare_swap64", heap, {address, ist::Bytes{sizeof wanted}, pe}, expected, wanted,
                           before);
} catch (...) {
  return ist::report_exception("ist_heap_compare_swap64");
}
}
