#include "memory/fold.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "memory/element.hpp"

namespace ist {
namespace {

// Of a left operand whose place the result takes; a whole number of elements of any type.
constexpr std::uint64_t kAtOnce = 4096;

}  // namespace

bool Fold::takes(std::uint64_t from, std::uint64_t bytes) const {
  const std::uint64_t each = size_of(type).value;
  return from % each == 0 && bytes % each == 0;
}

void Fold::operator()(std::uint64_t from, const std::byte* came, std::uint64_t bytes) const {
  const std::uint64_t each = size_of(type).value;
  std::byte* const result = to + from;
  const std::byte* const left = came_left ? came : here + from;
  const std::byte* const right = came_left ? here + from : came;
  if (right == result) return combine_on_host(reduction, type, result, left, static_cast<std::int64_t>(bytes / each));
  if (left != result) return combine_on_host(reduction, type, result, left, right, static_cast<std::int64_t>(bytes / each));
  alignas(64) std::array<std::byte, kAtOnce> aside;
  for (std::uint64_t done = 0; done < bytes; done += kAtOnce) {
    const std::uint64_t length = std::min(kAtOnce, bytes - done);
    std::memcpy(aside.data(), left + done, length);
    combine_on_host(reduction, type, result + done, aside.data(), right + done, static_cast<std::int64_t>(length / each));
  }
}

}  // namespace ist
