// Random layouts, and a second interpreter of the same calls, which writes down every byte and knows nothing of forms.
//
// Who calls this : layout_test.cpp, packing_test.cpp.
// Threads        : one for each Random.
// Ownership      : values.
// Errors         : a constructor that refuses fails the test.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "layout/constructors.hpp"

namespace ist::test {

// The type map as the MPI standard has it, byte by byte.
struct Map {
  std::vector<std::int64_t> bytes;
  std::vector<int> types;
  std::int64_t alignment = 1;
  bool marked = false;
  std::int64_t mark_lower = 0, mark_upper = 0;

  std::int64_t lower() const {
    if (marked) return mark_lower;
    return bytes.empty() ? 0 : *std::min_element(bytes.begin(), bytes.end());
  }
  std::int64_t upper() const {
    if (marked) return mark_upper;
    if (bytes.empty()) return 0;
    std::int64_t end = *std::max_element(bytes.begin(), bytes.end()) + 1;
    while ((end - lower()) % alignment != 0) ++end;
    return end;
  }
  std::int64_t extent() const { return upper() - lower(); }
  void add(const Map& other, std::int64_t at) {
    for (const std::int64_t byte : other.bytes) bytes.push_back(byte + at);
    types.insert(types.end(), other.types.begin(), other.types.end());
    if (!other.bytes.empty() || other.marked) alignment = std::max(alignment, other.alignment);
    if (!other.marked) return;
    mark_lower = marked ? std::min(mark_lower, other.mark_lower + at) : other.mark_lower + at;
    mark_upper = marked ? std::max(mark_upper, other.mark_upper + at) : other.mark_upper + at;
    marked = true;
  }
};

struct Pair {
  SharedLayout layout;
  Map map;
};

using Random = std::mt19937_64;
inline std::int64_t pick(Random& random, std::int64_t from, std::int64_t to) {
  return std::uniform_int_distribution<std::int64_t>{from, to}(random);
}

inline SharedLayout good(Result<SharedLayout> made) {
  EXPECT_TRUE(made.ok()) << made.status().text();
  return made.ok() ? *made : nullptr;
}

inline Pair basic(ist_type type) {
  Pair pair{good(Layout::basic(type)), {}};
  for (std::int64_t i = 0; i < pair.layout->size(); ++i) pair.map.bytes.push_back(i);
  pair.map.types = {type};
  pair.map.alignment = type == IST_COMPLEX_FLOAT ? 4 : type == IST_COMPLEX_DOUBLE ? 8 : pair.layout->size();
  return pair;
}

inline Pair random_basic(Random& random) {
  constexpr std::array types{IST_INT8, IST_INT16, IST_INT32, IST_DOUBLE, IST_FLOAT, IST_COMPLEX_FLOAT, IST_COMPLEX_DOUBLE};
  return basic(types[static_cast<std::size_t>(pick(random, 0, types.size() - 1))]);
}

inline Pair random_vector(Random& random, const Pair& old) {
  const auto count = pick(random, 0, 4), length = pick(random, 0, 3), stride = pick(random, -5, 6);
  const Unit unit = pick(random, 0, 1) == 0 ? Unit::extents : Unit::bytes;
  Pair made{good(vector_layout(count, length, stride, unit, old.layout)), {}};
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t j = 0; j < length; ++j)
      made.map.add(old.map, i * stride * (unit == Unit::extents ? old.map.extent() : 1) + j * old.map.extent());
  return made;
}

inline Pair random_indexed(Random& random, const Pair& old, bool one_length) {
  std::vector<std::int64_t> lengths, displacements;
  const auto count = pick(random, 0, 4), length = pick(random, 0, 3);
  for (std::int64_t i = 0; i < count; ++i) {
    lengths.push_back(one_length ? length : pick(random, 0, 3));
    displacements.push_back(pick(random, -8, 8));
  }
  const Unit unit = pick(random, 0, 1) == 0 ? Unit::extents : Unit::bytes;
  Pair made{good(one_length ? indexed_block_layout(length, displacements, unit, old.layout)
                            : indexed_layout(lengths, displacements, unit, old.layout)),
            {}};
  for (std::size_t i = 0; i < lengths.size(); ++i)
    for (std::int64_t j = 0; j < lengths[i]; ++j)
      made.map.add(old.map, displacements[i] * (unit == Unit::extents ? old.map.extent() : 1) + j * old.map.extent());
  return made;
}

inline Pair random_subarray(Random& random, const Pair& old) {
  std::vector<std::int64_t> sizes, parts, starts;
  const auto dimensions = static_cast<std::size_t>(pick(random, 1, 3));
  for (std::size_t d = 0; d < dimensions; ++d) {
    sizes.push_back(pick(random, 1, 4));
    parts.push_back(pick(random, 1, sizes[d]));
    starts.push_back(pick(random, 0, sizes[d] - parts[d]));
  }
  const bool fortran = pick(random, 0, 1) == 1;
  Pair made{good(subarray_layout(sizes, parts, starts, fortran ? Order::fortran : Order::c, old.layout)), {}};
  if (fortran)  // the same array in C has its dimensions turned round
    for (auto* list : {&sizes, &parts, &starts}) std::reverse(list->begin(), list->end());
  std::int64_t all = 1;
  for (const auto size : sizes) all *= size;
  for (std::int64_t i = 0; i < all; ++i) {
    std::int64_t rest = i;
    bool inside = true;
    for (std::size_t d = dimensions; d-- > 0; rest /= sizes[d]) {
      const std::int64_t index = rest % sizes[d] - starts[d];
      inside = inside && index >= 0 && index < parts[d];
    }
    if (inside) made.map.add(old.map, i * old.map.extent());
  }
  made.map.marked = true;
  made.map.mark_lower = 0;
  made.map.mark_upper = all * old.map.extent();
  return made;
}

// A list at few irregular places that comes again at equal distances, far enough apart not to melt together or not: as a vector, a struct or a
// list of it.
inline Pair random_repetition(Random& random, const Pair& old) {
  const std::int64_t blocks = pick(random, 2, 5), count = pick(random, 2, 3);
  std::vector<std::int64_t> places{0};
  while (static_cast<std::int64_t>(places.size()) < blocks) places.push_back(places.back() + pick(random, 1, 4));
  const Pair list{good(indexed_block_layout(1, places, Unit::extents, old.layout)), [&] {
                    Map map;
                    for (const std::int64_t place : places) map.add(old.map, place * old.map.extent());
                    return map;
                  }()};
  const std::int64_t stride = pick(random, 0, 1) == 0 ? list.map.extent() : pick(random, -400, 400);
  std::vector<std::int64_t> lengths, displacements;
  Map map;
  for (std::int64_t i = 0; i < count; ++i) {
    lengths.push_back(1);
    displacements.push_back(i * stride);
    map.add(list.map, displacements.back());
  }
  const std::vector<SharedLayout> olds(displacements.size(), list.layout);
  switch (pick(random, 0, 3)) {
    case 0:
      return {good(vector_layout(count, 1, stride, Unit::bytes, list.layout)), map};
    case 1:
      return {good(struct_layout(lengths, displacements, olds)), map};
    case 2:
      return {good(indexed_layout(lengths, displacements, Unit::bytes, list.layout)), map};
    default:
      return {good(indexed_block_layout(1, displacements, Unit::bytes, list.layout)), map};
  }
}

// The same once more. Layouts here have no handles: whoever can gives them some, for ist_layout_dup.
inline SharedLayout (*duplicate)(const SharedLayout& old) = [](const SharedLayout& old) { return old; };

// NOLINTNEXTLINE(misc-no-recursion)
inline Pair random_layout(Random& random, int depth) {
  if (depth == 0) return random_basic(random);
  const Pair old = random_layout(random, depth - 1);
  if (old.map.bytes.size() > 1500) return old;
  switch (pick(random, 0, 8)) {
    case 0: {
      const auto count = pick(random, 0, 4);
      Pair made{good(contiguous_layout(count, old.layout)), {}};
      for (std::int64_t i = 0; i < count; ++i) made.map.add(old.map, i * old.map.extent());
      return made;
    }
    case 1:
    case 2:
      return random_vector(random, old);
    case 3:
      return random_indexed(random, old, pick(random, 0, 1) == 0);
    case 4: {
      const Pair other = random_layout(random, static_cast<int>(pick(random, 0, depth - 1)));
      const std::vector<std::int64_t> lengths{pick(random, 0, 2), pick(random, 0, 3)};
      const std::vector<std::int64_t> places{pick(random, -20, 20), pick(random, -20, 60)};
      const std::vector<SharedLayout> olds{old.layout, other.layout};
      Pair made{good(struct_layout(lengths, places, olds)), {}};
      for (std::int64_t j = 0; j < lengths[0]; ++j) made.map.add(old.map, places[0] + j * old.map.extent());
      for (std::int64_t j = 0; j < lengths[1]; ++j) made.map.add(other.map, places[1] + j * other.map.extent());
      return made;
    }
    case 5:
      return random_subarray(random, old);
    case 6:
      return random_repetition(random, old);
    case 7:
      return {duplicate(old.layout), old.map};
    default: {
      const auto lower = pick(random, -8, 8), extent = pick(random, -8, 40);
      Pair made{good(resized_layout(old.layout, lower, extent)), old.map};
      made.map.marked = true;
      made.map.mark_lower = lower;
      made.map.mark_upper = lower + extent;
      return made;
    }
  }
}

}  // namespace ist::test
