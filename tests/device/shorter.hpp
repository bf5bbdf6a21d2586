// How many rounds tests of kernels make: under a sanitizer, where each takes many times as long, ISTHMUS_TEST_SHORTER times fewer.
//
// Who calls this : this folder's tests, in_kernel.cu.
// Threads        : any.
// Ownership      : none.
// Errors         : what is no number from 1 on counts as 1.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace heap_kernels {

inline std::uint32_t shorter_by() {
  const char* const wanted = std::getenv("ISTHMUS_TEST_SHORTER");
  return wanted == nullptr ? 1U : static_cast<std::uint32_t>(std::max(1L, std::strtol(wanted, nullptr, 10)));
}
// At least one.
inline std::uint32_t shorter(std::uint32_t rounds) { return std::max(1U, rounds / shorter_by()); }

}  // namespace heap_kernels
