// C calls about words of symmetric heaps: signals, waits, atomics.
#include <limits>

#include "face/heap/conditions.hpp"
#include "face/heap/device_words.hpp"
#include "heap/word.hpp"

namespace ist {

Status check_aligned(const void* address, std::uint64_t size) {
  if (reinterpret_cast<std::uint64_t>(address) % size == 0) return {};
  return {IST_ERR_ARGUMENT, "the address of a word of " + std::to_string(size) + " bytes must be a multiple of that"};
}

Result<Offset> check_condition(const CollectiveHeap& heap, const Condition& wanted) {
  const WordType type = word_type(wanted.type);
  if (type.size == 0)
    return Status{IST_ERR_ARGUMENT,
                  "type is " + std::to_string(static_cast<int>(wanted.type)) +
                      "; words that are waited for are integers of 4 or 8 bytes, as IST_INT32 and IST_UINT64"};
  if (wanted.compare < IST_COMPARE_EQ || wanted.compare > IST_COMPARE_LE)
    return Status{IST_ERR_ARGUMENT, "compare is " + std::to_string(static_cast<int>(wanted.compare)) +
                                        "; it must be IST_COMPARE_EQ to IST_COMPARE_LE"};
  // Of an unsigned word also what has its bits.
  const std::int64_t most =
      type.is_signed ? std::numeric_limits<std::int32_t>::max() : std::numeric_limits<std::uint32_t>::max();
  if (type.size == 4 && (wanted.value < std::numeric_limits<std::int32_t>::min() || wanted.value > most))
    return Status{IST_ERR_ARGUMENT, "value is " + std::to_string(wanted.value) +
                                        ", which no word of 4 bytes has; name a type of 8 bytes, or a value that fits"};
  IST_TRY(check_aligned(wanted.address, type.size));
  return heap.memory().locate(wanted.address, Bytes{type.size});
}

namespace {

// This PE's own word. On a device it takes a copy of its own.
Result<std::uint64_t> read_own(CollectiveHeap& heap, Offset offset, std::uint64_t size) {
  const Pe pe = heap.memory().shape().pe;
  if (heap.on_host()) return read_word(heap.memory().at(pe, offset), size);
  std::uint64_t bits = 0;
  IST_TRY(copy_pieces(heap.world(), host_piece(&bits, Bytes{size}), heap.memory().piece(pe, offset, Bytes{size})));
  return bits;
}

Result<bool> holds(CollectiveHeap& heap, Offset offset, const Condition& wanted) {
  const WordType type = word_type(wanted.type);
  const auto bits = read_own(heap, offset, type.size);
  if (!bits.ok()) return bits.status();
  return compares(*bits, type, wanted.compare, wanted.value);
}

Status wait_until(CollectiveHeap& heap, const Condition& wanted) {
  const auto offset = check_condition(heap, wanted);
  if (!offset.ok()) return offset.status();
  return heap.wait([&] { return holds(heap, *offset, wanted); }, [&] { return heap.word_lost(); });
}

Result<PlaceInHeap> word_in(const CollectiveHeap& heap, const Named& named) {
  IST_TRY(check_aligned(named.address, named.size.value));
  return place_in(heap, named);
}

WordChange::What of_device(ist_atomic operation) {
  using What = WordChange::What;
  switch (operation) {
    case IST_ATOMIC_SET:
      return What::set;
    case IST_ATOMIC_ADD:
    case IST_ATOMIC_INC:
      return What::add;
    case IST_ATOMIC_SWAP:
      return What::swap;
    case IST_ATOMIC_AND:
      return What::bitwise_and;
    case IST_ATOMIC_OR:
      return What::bitwise_or;
    case IST_ATOMIC_XOR:
      return What::bitwise_xor;
    default:
      return What::fetch;
  }
}

template <class T>
int atomic(const char* call, ist_heap heap, ist_atomic operation, const Named& named, T operand, T* before) {
  return in_heap(call, heap, [&](CollectiveHeap& in) -> Status {
    if (operation < IST_ATOMIC_FETCH || operation > IST_ATOMIC_XOR)
      return {IST_ERR_ARGUMENT, "operation is " + std::to_string(static_cast<int>(operation)) +
                                    "; it must be IST_ATOMIC_FETCH to IST_ATOMIC_XOR"};
    const auto word = word_in(in, named);
    if (!word.ok()) return word.status();
    if (!in.on_host()) {
      const WordChange change{of_device(operation), operation == IST_ATOMIC_INC ? 1 : std::uint64_t{operand}, 0};
      const auto found = change_on_device(in, *word, named.size, change);
      if (found.ok() && before != nullptr) *before = static_cast<T>(*found);
      return found.status();
    }
    // Only an exchange says what a store has overwritten.
    const bool swaps = operation == IST_ATOMIC_SET && before != nullptr;
    const T found = change<T>(in.memory().at(word->pe, word->offset), swaps ? IST_ATOMIC_SWAP : operation, operand);
    if (before != nullptr) *before = found;
    return {};
  });
}

template <class T>
int compare_swap(const char* call, ist_heap heap, const Named& named, T expected, T wanted, T* before) {
  return in_heap(call, heap, [&](CollectiveHeap& in) -> Status {
    const auto word = word_in(in, named);
    if (!word.ok()) return word.status();
    T found = expected;
    if (in.on_host()) {
      std::atomic_ref(*reinterpret_cast<T*>(in.memory().at(word->pe, word->offset))).compare_exchange_strong(found, wanted);
    } else {
      const auto there = change_on_device(in, *word, named.size, {WordChange::What::compare_swap, wanted, expected});
      if (!there.ok()) return there.status();
      found = static_cast<T>(*there);
    }
    if (before != nullptr) *before = found;
    return {};
  });
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_heap_signal_fetch(ist_heap heap, const uint64_t* signal, uint64_t* value) try {
  if (value == nullptr) return ist::null_argument("ist_heap_signal_fetch", "value");
  return ist::in_heap("ist_heap_signal_fetch", heap, [&](ist::CollectiveHeap& in) -> ist::Status {
    const auto offset = ist::check_condition(in, {signal, IST_UINT64, IST_COMPARE_EQ, 0});
    if (!offset.ok()) return offset.status();
    const auto bits = ist::read_own(in, *offset, sizeof *value);
    if (bits.ok()) *value = *bits;
    return bits.status();
  });
} catch (...) {
  return ist::report_exception("ist_heap_signal_fetch");
}

int ist_heap_wait_until(ist_heap heap, const void* address, ist_type type, ist_compare compare, int64_t value) try {
  return ist::in_heap("ist_heap_wait_until", heap, [&](ist::CollectiveHeap& in) {
    return ist::wait_until(in, {address, type, compare, value});
  });
} catch (...) {
  return ist::report_exception("ist_heap_wait_until");
}

// Who tests again and again relies on it to move the world's messages on, and to hear of a death.
int ist_heap_test(ist_heap heap, const void* address, ist_type type, ist_compare compare, int64_t value, int* is) try {
  if (is == nullptr) return ist::null_argument("ist_heap_test", "is");
  *is = 0;
  return ist::in_heap("ist_heap_test", heap, [&](ist::CollectiveHeap& in) -> ist::Status {
    const ist::Condition wanted{address, type, compare, value};
    const auto offset = ist::check_condition(in, wanted);
    if (!offset.ok()) return offset.status();
    ist::Status lost = in.word_lost();
    const auto found = ist::holds(in, *offset, wanted);
    if (!found.ok()) return found.status();
    *is = *found ? 1 : 0;
    if (*found) return {};
    in.move_on();
    const std::lock_guard lock(in.engine().lock());
    in.engine().progress();
    return lost;
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
