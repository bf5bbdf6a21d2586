// Words of a heap in host memory: comparisons that waits ask for, and what is done to them atomically, by a processor.
//
// Who calls this : face/heap; tests.
// Threads        : any, and any process that maps the word.
// Ownership      : looks at the word.
// Errors         : none; arguments are checked before.
#pragma once

#include <isthmus/heap.h>

#include <atomic>
#include <cstdint>

namespace ist {

template <class T>
bool compares(T found, ist_compare compare, T value) {
  switch (compare) {
    case IST_COMPARE_EQ:
      return found == value;
    case IST_COMPARE_NE:
      return found != value;
    case IST_COMPARE_GT:
      return found > value;
    case IST_COMPARE_GE:
      return found >= value;
    case IST_COMPARE_LT:
      return found < value;
    case IST_COMPARE_LE:
      return found <= value;
  }
  return false;
}

// What integer such a type is; size 0: none that a wait may be for.
struct WordType {
  std::uint64_t size = 0;
  bool is_signed = false;
};
constexpr WordType word_type(ist_type type) {
  switch (type) {
    case IST_INT32:
    case IST_INT:
      return {sizeof(std::int32_t), true};
    case IST_UINT32:
    case IST_UNSIGNED:
      return {sizeof(std::uint32_t), false};
    case IST_INT64:
    case IST_LONG:
    case IST_LONG_LONG:
      return {sizeof(std::int64_t), true};
    case IST_UINT64:
    case IST_UNSIGNED_LONG:
    case IST_UNSIGNED_LONG_LONG:
      return {sizeof(std::uint64_t), false};
    default:
      return {};
  }
}

// `bits`: what was read, in the lower bytes.
inline bool compares(std::uint64_t bits, const WordType& type, ist_compare compare, std::int64_t value) {
  if (type.size == sizeof(std::uint32_t)) {
    if (type.is_signed) return compares(static_cast<std::int32_t>(bits), compare, static_cast<std::int32_t>(value));
    return compares(static_cast<std::uint32_t>(bits), compare, static_cast<std::uint32_t>(value));
  }
  if (type.is_signed) return compares(static_cast<std::int64_t>(bits), compare, value);
  return compares(bits, compare, static_cast<std::uint64_t>(value));
}

// Acquires: what was written before the word is there, too.
inline std::uint64_t read_word(std::byte* address, std::uint64_t size) {
  if (size == sizeof(std::uint32_t))
    return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(address)).load(std::memory_order_acquire);
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(address)).load(std::memory_order_acquire);
}

// Gives what was there before; 0 for SET, which reads nothing.
template <class T>
T change(std::byte* address, ist_atomic operation, T operand) {
  const std::atomic_ref word(*reinterpret_cast<T*>(address));
  switch (operation) {
    case IST_ATOMIC_FETCH:
      return word.load();
    case IST_ATOMIC_SET:
      word.store(operand);
      return T{};
    case IST_ATOMIC_ADD:
      return word.fetch_add(operand);
    case IST_ATOMIC_INC:
      return word.fetch_add(T{1});
    case IST_ATOMIC_SWAP:
      return word.exchange(operand);
    case IST_ATOMIC_AND:
      return word.fetch_and(operand);
    case IST_ATOMIC_OR:
      return word.fetch_or(operand);
    case IST_ATOMIC_XOR:
      return word.fetch_xor(operand);
  }
  return T{};
}

}  // namespace ist
