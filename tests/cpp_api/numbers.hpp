// The numbers that ranks combine in the tests of the C++ face, and what must come of them.
//
// Who calls this : collectives_test.cpp, buffers_test.cpp.
// Threads        : any.
// Ownership      : everything by value.
// Errors         : none.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "isthmus/isthmus.hpp"

namespace numbers {

using Numbers = std::vector<std::int64_t>;

inline std::size_t number_of(int rank) { return static_cast<std::size_t>(rank); }

// Around the eager limits and the chunks of the algorithms; one more and one less than a power of two.
inline constexpr std::array<std::size_t, 6> kCounts{0, 1, 7, 4097, 16385, 70001};

// A rank's numbers; every rank knows those of all.
inline Numbers numbers_of(int rank, std::size_t count) {
  std::mt19937_64 generator(count * 64 + number_of(rank));
  Numbers made(count);
  for (auto& each : made) each = static_cast<std::int64_t>(generator() >> 8U);
  return made;
}

// Of the ranks up to `last`, and without it.
inline Numbers sum_before(int last, std::size_t count) {
  Numbers sum(count, 0);
  for (int rank = 0; rank < last; ++rank) {
    const Numbers theirs = numbers_of(rank, count);
    std::transform(sum.begin(), sum.end(), theirs.begin(), sum.begin(), std::plus<>{});
  }
  return sum;
}

inline Numbers part_of(const Numbers& all, std::size_t first, std::size_t count) {
  return {all.begin() + static_cast<std::ptrdiff_t>(first), all.begin() + static_cast<std::ptrdiff_t>(first + count)};
}

// Of the `length` numbers that every rank has, those from `first` on, one rank's behind the other's.
inline Numbers of_all(int ranks, std::size_t length, std::size_t first, std::size_t count) {
  Numbers all;
  for (int rank = 0; rank < ranks; ++rank) {
    const Numbers theirs = part_of(numbers_of(rank, length), first, count);
    all.insert(all.end(), theirs.begin(), theirs.end());
  }
  return all;
}

class OfAllRanks : public testing::Test {
 protected:
  isthmus::World world;
  const isthmus::Comm comm = world.comm();
  const std::size_t ranks = number_of(comm.size());
};

}  // namespace numbers
