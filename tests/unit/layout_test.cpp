// Layouts beside a second interpreter of the same calls, which writes down every byte and knows nothing of forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <random>

#include "layout/constructors.hpp"

namespace ist::test {
namespace {

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
std::int64_t pick(Random& random, std::int64_t from, std::int64_t to) {
  return std::uniform_int_distribution<std::int64_t>{from, to}(random);
}

SharedLayout good(Result<SharedLayout> made) {
  EXPECT_TRUE(made.ok()) << made.status().text();
  return made.ok() ? *made : nullptr;
}

Pair basic(ist_type type) {
  Pair pair{good(Layout::basic(type)), {}};
  for (std::int64_t i = 0; i < pair.layout->size(); ++i) pair.map.bytes.push_back(i);
  pair.map.types = {type};
  pair.map.alignment = type == IST_COMPLEX_FLOAT ? 4 : type == IST_COMPLEX_DOUBLE ? 8 : pair.layout->size();
  return pair;
}

Pair random_basic(Random& random) {
  constexpr std::array types{IST_INT8, IST_INT16, IST_INT32, IST_DOUBLE, IST_FLOAT, IST_COMPLEX_FLOAT, IST_COMPLEX_DOUBLE};
  return basic(types[static_cast<std::size_t>(pick(random, 0, types.size() - 1))]);
}

Pair random_vector(Random& random, const Pair& old) {
  const auto count = pick(random, 0, 4), length = pick(random, 0, 3), stride = pick(random, -5, 6);
  const Unit unit = pick(random, 0, 1) == 0 ? Unit::extents : Unit::bytes;
  Pair made{good(vector_layout(count, length, stride, unit, old.layout)), {}};
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t j = 0; j < length; ++j)
      made.map.add(old.map, i * stride * (unit == Unit::extents ? old.map.extent() : 1) + j * old.map.extent());
  return made;
}

Pair random_indexed(Random& random, const Pair& old, bool one_length) {
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

Pair random_subarray(Random& random, const Pair& old) {
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

// NOLINTNEXTLINE(misc-no-recursion)
Pair random_layout(Random& random, int depth) {
  if (depth == 0) return random_basic(random);
  const Pair old = random_layout(random, depth - 1);
  if (old.map.bytes.size() > 1500) return old;
  switch (pick(random, 0, 6)) {
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

void check_numbers(const Pair& pair) {
  const Map& map = pair.map;
  ASSERT_EQ(pair.layout->size(), static_cast<std::int64_t>(map.bytes.size()));
  ASSERT_EQ(pair.layout->bounds().lower, map.lower());
  ASSERT_EQ(pair.layout->bounds().upper, map.upper());
  Map bare = map;
  bare.marked = false;
  bare.alignment = 1;
  ASSERT_EQ(pair.layout->true_bounds().lower, bare.lower());
  ASSERT_EQ(pair.layout->true_bounds().upper, bare.upper());
  Signature signature;
  for (const int type : map.types)
    signature = one_after_other(signature, (*Layout::basic(static_cast<ist_type>(type)))->signature());
  ASSERT_EQ(pair.layout->signature(), signature);
}

void check_bytes(const Pair& pair, Random& random) {
  const Map& map = pair.map;
  const auto form = pair.layout->form();
  ASSERT_TRUE(form.ok());
  // A form that was put together is the one that is found by looking at each run.
  std::vector<Run> runs;
  for (const std::int64_t byte : map.bytes) append(runs, {byte, 1});
  ASSERT_EQ(*form, form_of(runs));
  const Bounds bounds = pair.layout->true_bounds();
  // Exactly so large, so that a sanitizer sees a step outside.
  std::vector<std::byte> memory(static_cast<std::size_t>(bounds.extent()));
  for (auto& byte : memory) byte = static_cast<std::byte>(random());
  std::byte* base = memory.data() - bounds.lower;
  std::vector<std::byte> expected;
  for (const std::int64_t byte : map.bytes) expected.push_back(base[byte]);
  const auto size = static_cast<std::int64_t>(expected.size());
  std::vector<std::byte> packed(expected.size());
  pack(*form, base, 0, size, packed.data());
  ASSERT_EQ(packed, expected);
  std::vector<std::byte> in_pieces(expected.size()), back(memory.size(), std::byte{0xa5}), wanted = back;
  for (std::size_t i = 0; i < map.bytes.size(); ++i)
    wanted[static_cast<std::size_t>(map.bytes[i] - bounds.lower)] = expected[i];
  for (std::int64_t from = 0; from < size;) {
    const std::int64_t to = std::min(size, from + pick(random, 1, std::max<std::int64_t>(size / 3, 1)));
    pack(*form, base, from, to, in_pieces.data() + from);
    unpack(*form, back.data() - bounds.lower, from, to, packed.data() + from);
    from = to;
  }
  ASSERT_EQ(in_pieces, expected);
  ASSERT_EQ(back, wanted);
  auto sorted = map.bytes;
  std::sort(sorted.begin(), sorted.end());
  const bool twice = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  ASSERT_EQ(overlap_of(*form), twice ? Overlap::some : Overlap::none);
}

TEST(Layout, random_nests_are_what_a_second_interpreter_says) {
  const char* wanted = std::getenv("ISTHMUS_TEST_LAYOUTS");
  const int cases = wanted != nullptr ? std::atoi(wanted) : 100000;
  constexpr std::uint64_t kSeed = 20261125;
  std::cout << cases << " layouts, seed " << kSeed << '\n';
  Random random{kSeed};
  for (int i = 0; i < cases; ++i) {
    const Pair pair = random_layout(random, static_cast<int>(pick(random, 1, 5)));
    check_numbers(pair);
    check_bytes(pair, random);
    if (HasFatalFailure()) FAIL() << "case " << i << ": " << described(*pair.layout->form());
  }
}

TEST(Layout, nests_of_the_same_bytes_have_one_form) {
  const auto number = *Layout::basic(IST_DOUBLE);
  const std::vector<std::int64_t> sizes{8, 10}, parts{8, 1}, starts{0, 3}, places{3, 13, 23, 33, 43, 53, 63, 73};
  const auto column = *good(subarray_layout(sizes, parts, starts, Order::c, number)).get();
  const auto listed = *good(indexed_block_layout(1, places, Unit::extents, number)).get();
  EXPECT_EQ(*column.form(), *listed.form());
  EXPECT_EQ(described(*column.form()), "8 blocks of 8 bytes from 24: 8 every 80");
}

// MPI 4.1, example 5.1 and its like: {(double, 0), (char, 8)} has an extent of 16, since it is rounded up.
TEST(Layout, a_struct_is_rounded_up_to_its_alignment) {
  const std::vector<SharedLayout> olds{*Layout::basic(IST_DOUBLE), *Layout::basic(IST_CHAR)};
  const std::vector<std::int64_t> lengths{1, 1}, places{0, 8};
  const auto made = good(struct_layout(lengths, places, olds));
  EXPECT_EQ(made->size(), 9);
  EXPECT_EQ(made->bounds().extent(), 16);
  EXPECT_EQ(made->true_bounds().extent(), 9);
  // The standard's struct: lengths (2, 1, 3), displacements (0, 16, 26), types (float, {(double, 0), (char, 8)}, char).
  const std::vector<SharedLayout> nested{*Layout::basic(IST_FLOAT), made, *Layout::basic(IST_CHAR)};
  const std::vector<std::int64_t> counts{2, 1, 3}, offsets{0, 16, 26};
  const auto whole = good(struct_layout(counts, offsets, nested));
  std::vector<ist::Run> runs{{0, 8}, {16, 9}, {26, 3}};
  EXPECT_EQ(*whole->form(), form_of(runs));
}

TEST(Layout, what_is_too_large_is_an_error) {
  const auto number = *Layout::basic(IST_DOUBLE);
  constexpr std::int64_t kHuge = std::int64_t{1} << 59;
  EXPECT_EQ(contiguous_layout(kHuge, number).status().code(), IST_ERR_OVERFLOW);
  EXPECT_EQ(vector_layout(2, 1, std::numeric_limits<std::int64_t>::max(), Unit::extents, number).status().code(),
            IST_ERR_OVERFLOW);
  EXPECT_EQ(resized_layout(number, std::numeric_limits<std::int64_t>::max(), 1).status().code(), IST_ERR_OVERFLOW);
  const auto wide = good(vector_layout(1 << 30, 1, 1 << 20, Unit::extents, number));
  ASSERT_TRUE(wide->form().ok());
  EXPECT_EQ(overlap_of(*wide->form()), Overlap::none);
}

}  // namespace
}  // namespace ist::test
