#include "face/heap/one_sided_words.hpp"

#include <limits>

namespace ist {

Status check_aligned(std::uint64_t place, std::uint64_t size) {
  if (place % size == 0) return {};
  return {IST_ERR_ARGUMENT, "the address of a word of " + std::to_string(size) + " bytes must be a multiple of that"};
}

Status check_condition(const Condition& wanted, std::uint64_t place) {
  const WordType type = word_type(wanted.type);
  if (type.size == 0)
    return {IST_ERR_ARGUMENT, "type is " + std::to_string(static_cast<int>(wanted.type)) +
                                  "; words that are waited for are integers of 4 or 8 bytes, as IST_INT32 and IST_UINT64"};
  if (wanted.compare < IST_COMPARE_EQ || wanted.compare > IST_COMPARE_LE)
    return {IST_ERR_ARGUMENT, "compare is " + std::to_string(static_cast<int>(wanted.compare)) +
                                  "; it must be IST_COMPARE_EQ to IST_COMPARE_LE"};
  // Of an unsigned word also what has its bits.
  const std::int64_t most =
      type.is_signed ? std::numeric_limits<std::int32_t>::max() : std::numeric_limits<std::uint32_t>::max();
  if (type.size == 4 && (wanted.value < std::numeric_limits<std::int32_t>::min() || wanted.value > most))
    return {IST_ERR_ARGUMENT, "value is " + std::to_string(wanted.value) +
                                  ", which no word of 4 bytes has; name a type of 8 bytes, or a value that fits"};
  return check_aligned(place, type.size);
}

Status check_atomic(ist_atomic operation) {
  if (operation >= IST_ATOMIC_FETCH && operation <= IST_ATOMIC_XOR) return {};
  return {IST_ERR_ARGUMENT,
          "operation is " + std::to_string(static_cast<int>(operation)) + "; it must be IST_ATOMIC_FETCH to IST_ATOMIC_XOR"};
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

}  // namespace ist
