#include "layout/extent.hpp"

#include <limits>

namespace ist {

Result<Bytes> extent(std::int64_t count, ist_type type) {
  const Bytes size = size_of(type);
  if (size == Bytes{}) return Status{IST_ERR_ARGUMENT, "type " + std::to_string(static_cast<int>(type)) + " does not exist"};
  if (count < 0) return Status{IST_ERR_ARGUMENT, "count is " + std::to_string(count) + "; it must not be negative"};
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(count, static_cast<std::int64_t>(size.value), &bytes))
    return Status{IST_ERR_OVERFLOW, std::to_string(count) + " elements of " + std::to_string(size.value) +
                                        " bytes are more than " + std::to_string(std::numeric_limits<std::int64_t>::max()) +
                                        " bytes"};
  return Bytes{static_cast<std::uint64_t>(bytes)};
}

}  // namespace ist
