// Layouts with the places of their bytes, for tests that compare every byte.
//
// Who calls this : layouts_test.cpp, layouts_persistent_test.cpp, layout_collectives_test.cpp, streams_layouts_test.cpp, queues_layouts_test.cpp,
//                  queues_types_test.cpp.
// Threads        : one.
// Ownership      : Laid frees its layout.
// Errors         : failures of the test.
#pragma once

#include <isthmus/layout.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "rank_test.hpp"

namespace rank_test {

using Bytes = std::vector<unsigned char>;

// A committed layout with the places of its bytes in pack order.
struct Laid {
  ist_layout layout = IST_LAYOUT_NULL;
  std::vector<std::size_t> places;
  std::size_t reach = 0;
  ~Laid() { EXPECT_EQ(IST_OK, ist_layout_free(&layout)); }
  void add(std::size_t from, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) places.push_back(from + i);
    reach = std::max(reach, from + bytes);
  }
};

// `count` ints in blocks of four, every second block.
inline std::unique_ptr<Laid> strided(std::int64_t count) {
  auto made = std::make_unique<Laid>();
  EXPECT_EQ(IST_OK, ist_layout_vector(count / 4, 4, 8, ist_layout_of(IST_INT32), &made->layout)) << ist_error_text();
  EXPECT_EQ(IST_OK, ist_layout_commit(made->layout)) << ist_error_text();
  for (std::int64_t i = 0; i < count / 4; ++i) made->add(static_cast<std::size_t>(i) * 32, 16);
  return made;
}

// As many in blocks of one and three in turn, the last ones first.
inline std::unique_ptr<Laid> listed(std::int64_t count) {
  auto made = std::make_unique<Laid>();
  std::vector<std::int64_t> lengths, displacements;
  for (std::int64_t i = count / 2 - 1; i >= 0; --i) {
    lengths.push_back(i % 2 == 0 ? 1 : 3);
    displacements.push_back(i * 5 + i % 3);
    made->add(static_cast<std::size_t>(displacements.back()) * 4, static_cast<std::size_t>(lengths.back()) * 4);
  }
  EXPECT_EQ(IST_OK,
            ist_layout_indexed(count / 2, lengths.data(), displacements.data(), ist_layout_of(IST_INT32), &made->layout));
  EXPECT_EQ(IST_OK, ist_layout_commit(made->layout)) << ist_error_text();
  return made;
}

inline std::unique_ptr<Laid> in_a_row(std::int64_t count) {
  auto made = std::make_unique<Laid>();
  EXPECT_EQ(IST_OK, ist_layout_contiguous(count, ist_layout_of(IST_INT32), &made->layout));
  EXPECT_EQ(IST_OK, ist_layout_commit(made->layout));
  made->add(0, static_cast<std::size_t>(count) * 4);
  return made;
}

inline Bytes packed(const Laid& laid, const Bytes& memory) {
  Bytes bytes;
  for (const std::size_t place : laid.places) bytes.push_back(memory[place]);
  return bytes;
}

// Poison, but for the first bytes of the layout.
inline Bytes unpacked(const Laid& laid, const Bytes& bytes) {
  Bytes memory(laid.reach, 0xa5);
  for (std::size_t i = 0; i < bytes.size(); ++i) memory[laid.places[i]] = bytes[i];
  return memory;
}

}  // namespace rank_test
