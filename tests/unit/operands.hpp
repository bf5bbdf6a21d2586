// Bytes to be combined: of every type, with the values where arithmetic goes wrong among them.
//
// Who calls this : tests of reductions, on the processor and on every kind.
// Threads        : any.
// Ownership      : values.
// Errors         : none.
#pragma once

#include <isthmus/isthmus.h>

#include <cstdint>
#include <string>
#include <vector>

#include "memory/reduction.hpp"

namespace ist::test {

using Elements = std::vector<std::uint8_t>;

// An operation and a type to which it applies.
struct Combination {
  Reduction reduction;
  ist_type type;
};
std::vector<Combination> all_combinations();
std::vector<Reduction> all_reductions();
inline constexpr int kTypes = IST_INT64_INT64 + 1;

// Fresh elements: any bits, numbers near zero, and extremes, infinities, no numbers, both zeros; of pairs few values and few
// indices, so that there are ties, and random bytes in their gaps.
Elements random_elements(ist_type type, std::int64_t count);

// Empty if the same in every byte, but for the bits inside of a NaN; otherwise where they differ.
std::string difference(ist_type type, const Elements& found, const Elements& expected);

}  // namespace ist::test
