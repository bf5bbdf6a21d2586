#include "layout/extent.hpp"

#include <array>
#include <limits>

namespace ist {

Bytes size_of(ist_type type) {
  // By ist_type; frozen with the enum (tests/unit/frozen_abi.cpp).
  static constexpr std::array<std::size_t, 18> sizes{1,
                                                     1,
                                                     1,
                                                     1,
                                                     2,
                                                     2,
                                                     4,
                                                     4,
                                                     8,
                                                     8,
                                                     sizeof(float),
                                                     sizeof(double),
                                                     sizeof(int),
                                                     sizeof(long),
                                                     sizeof(short),
                                                     sizeof(int),
                                                     sizeof(long),
                                                     sizeof(long long)};
  const auto index = static_cast<std::size_t>(type);
  return index < sizes.size() ? Bytes{sizes[index]} : Bytes{};
}

Result<Bytes> extent(std::int64_t count, ist_type type) {
  const Bytes size = size_of(type);
  if (size == Bytes{}) return Status{IST_ERR_ARGUMENT, "type " + std::to_string(static_cast<int>(type)) + " does not exist"};
  if (count < 0) return Status{IST_ERR_ARGUMENT, "count is " + std::to_string(count) + "; it must not be negative"};
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (static_cast<std::uint64_t>(count) > most / size.value)
    return Status{IST_ERR_OVERFLOW, std::to_string(count) + " elements of " + std::to_string(size.value) +
                                        " bytes are more than " + std::to_string(most) + " bytes"};
  return Bytes{static_cast<std::uint64_t>(count) * size.value};
}

}  // namespace ist
