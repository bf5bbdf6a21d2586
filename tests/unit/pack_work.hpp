// Works for kernels that pack, done by a crew of one thread, and where their units lie by plain division.
//
// Who calls this : pack_protocol_test.cpp, pack_lists_test.cpp.
// Threads        : one.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include "memory/cuda/pack_protocol.hpp"

namespace ist::test {

using packing::divisor;
using packing::kNear;
using packing::Work;

struct Crew {
  unsigned thread = 0;
  unsigned threads = 1;
  unsigned block = 0;
  unsigned blocks = 1;
};

// The compiler must not know it, or it warns of loops that would go beyond 2^62.
inline Crew crew_of(unsigned block, unsigned blocks) {
  static volatile unsigned one = 1;
  return {0, one, block, blocks * one};
}

template <class Word, bool unpacks, bool listed>
void move_all(bool near, unsigned blocks, const Work& work) {
  for (unsigned block = 0; block < blocks; ++block)
    if (near)
      packing::move<Word, unpacks, listed, false>(crew_of(block, blocks), work);
    else
      packing::move<Word, unpacks, listed, true>(crew_of(block, blocks), work);
}

// By plain division.
inline std::int64_t plain_place(const Work& work, std::uint64_t unit, std::uint64_t width) {
  std::int64_t place = work.origin + static_cast<std::int64_t>(unit % work.block * width);
  unit /= work.block;
  for (int d = 0; d < 3; ++d) {
    place += static_cast<std::int64_t>(unit % work.count[d]) * work.stride[d];
    unit /= work.count[d];
  }
  return place + static_cast<std::int64_t>(unit) * work.stride[3];
}

// Blocks and counts of any size, and strides of either sign, such that no place needs more than 63 bits.
inline Work any_work(std::mt19937_64& random) {
  const auto number = [&] { return (random() % kNear >> random() % 31) + 1; };
  Work work;
  work.origin = static_cast<std::int64_t>(random() >> 20) - (std::int64_t{1} << 43);
  work.block = std::min(number(), kNear - 1);
  work.block_by = divisor(work.block);
  work.dimensions = 4;
  for (int d = 0; d < 3; ++d) {
    work.count[d] = random() % 4 == 0 ? 1 : std::min(number(), kNear - 1);
    work.count_by[d] = divisor(work.count[d]);
  }
  for (std::int64_t& stride : work.stride) stride = static_cast<std::int64_t>(random() >> 36) - (std::int64_t{1} << 27);
  return work;
}

}  // namespace ist::test
