// Layouts beside a second interpreter of the same calls, which writes down every byte and knows nothing of forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <numeric>
#include <random>

#include "layout/signature.hpp"
#include "layout_handles.hpp"
#include "random_layouts.hpp"

namespace ist::test {
namespace {

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

// The canonical form as packing.hpp has it, by trying every number of runs.
Form plain_form(std::vector<Run> runs) {
  Form form;
  for (const Run& run : runs) form.size += run.bytes;
  const auto repeats = [&runs](std::size_t period) {
    for (std::size_t i = period; i < runs.size(); ++i)
      if (runs[i].offset != runs[i - period].offset + runs[period].offset - runs[0].offset ||
          runs[i].bytes != runs[i - period].bytes)
        return false;
    return true;
  };
  std::vector<Dimension> outermost_first;
  while (outermost_first.size() < kMostDimensions && !runs.empty()) {
    std::size_t period = 1;
    while (period < runs.size() && (runs.size() % period != 0 || !repeats(period))) ++period;
    if (period == runs.size()) break;
    outermost_first.push_back({static_cast<std::int64_t>(runs.size() / period), runs[period].offset - runs.front().offset});
    runs.resize(period);
  }
  form.dimensions = outermost_first.size();
  std::copy(outermost_first.rbegin(), outermost_first.rend(), form.dimension.begin());
  if (runs.size() == 1) {
    form.offset = runs.front().offset;
    form.block = runs.front().bytes;
    return form;
  }
  std::int64_t begin = 0;
  for (const Run& run : runs) {
    form.begins.push_back(begin);
    begin += run.bytes;
  }
  form.runs = runs;
  return form;
}

// How many of each there were: blocks in dimensions, lists, and lists that come again in so many dimensions.
struct Seen {
  int strided = 0, lists = 0;
  std::array<int, kMostDimensions + 1> again{};
  void add(const Form& form) {
    strided += form.strided() ? 1 : 0;
    lists += form.strided() || form.dimensions > 0 ? 0 : 1;
    if (!form.strided()) ++again[form.dimensions];
  }
};

void check_form(const Form& form, const std::vector<std::int64_t>& bytes) {
  std::vector<Run> runs, found;
  for (const std::int64_t byte : bytes) append(runs, {byte, 1});
  // A form that was put together is the one that is found by looking at each run.
  ASSERT_EQ(form, form_of(runs));
  ASSERT_EQ(form, plain_form(runs));
  each_run(form, [&](const Run& run) { found.push_back(run); });
  ASSERT_EQ(found, runs);
  ASSERT_EQ(runs_of(form), static_cast<std::int64_t>(runs.size()));
}

void check_bytes(const Pair& pair, Random& random, Seen& seen) {
  const Map& map = pair.map;
  const auto form = pair.layout->form();
  ASSERT_TRUE(form.ok());
  check_form(*form, map.bytes);
  seen.add(*form);
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
  duplicate = by_handle;
  Random random{kSeed};
  Seen seen;
  for (int i = 0; i < cases; ++i) {
    const Pair pair = random_layout(random, static_cast<int>(pick(random, 1, 5)));
    check_numbers(pair);
    check_bytes(pair, random, seen);
    if (HasFatalFailure()) FAIL() << "case " << i << ": " << described(*pair.layout->form());
  }
  std::cout << seen.strided << " of blocks, " << seen.lists << " of lists that come once, in 1 to 4 dimensions "
            << seen.again[1] << ' ' << seen.again[2] << ' ' << seen.again[3] << ' ' << seen.again[4] << '\n';
  EXPECT_GT(seen.strided, cases / 20);
  EXPECT_GT(seen.lists, cases / 20);
  EXPECT_GT(seen.again[1], cases / 50);
  EXPECT_GT(seen.again[2], cases / 1000);
}

// From one to the other without a row of bytes in between: as packing into one and unpacking it, whatever the two forms are.
void check_move(const Pair& to, const Pair& from, Random& random) {
  const auto contiguous = [](const Pair& pair, std::int64_t count) {
    Pair made{good(contiguous_layout(count, pair.layout)), {}};
    for (std::int64_t i = 0; i < count; ++i) made.map.add(pair.map, i * pair.map.extent());
    return made;
  };
  const std::int64_t size = std::lcm(to.layout->size(), from.layout->size());
  const Pair there = contiguous(to, size / to.layout->size()), here = contiguous(from, size / from.layout->size());
  const auto bounds = there.layout->true_bounds(), source_bounds = here.layout->true_bounds();
  std::vector<std::byte> source(static_cast<std::size_t>(source_bounds.extent()));
  for (auto& byte : source) byte = static_cast<std::byte>(random());
  std::vector<std::byte> found(static_cast<std::size_t>(bounds.extent()), std::byte{0xa5}), wanted = found;
  for (std::size_t i = 0; i < there.map.bytes.size(); ++i)
    wanted[static_cast<std::size_t>(there.map.bytes[i] - bounds.lower)] =
        source[static_cast<std::size_t>(here.map.bytes[i] - source_bounds.lower)];
  move(*there.layout->form(), found.data() - bounds.lower, *here.layout->form(), source.data() - source_bounds.lower);
  ASSERT_EQ(found, wanted) << described(*there.layout->form()) << " from " << described(*here.layout->form());
}

TEST(Layout, bytes_move_from_any_form_to_any_other) {
  Random random{20261126};
  int moved = 0, of_same_blocks = 0;
  while (moved < 5000) {
    const Pair to = random_layout(random, static_cast<int>(pick(random, 0, 4)));
    const Pair from = random_layout(random, static_cast<int>(pick(random, 0, 4)));
    if (to.layout->size() == 0 || from.layout->size() == 0) continue;
    if (std::lcm(to.layout->size(), from.layout->size()) > 4000) continue;
    check_move(to, from, random);
    if (HasFatalFailure()) FAIL() << "case " << moved;
    ++moved;
    const auto one = to.layout->form(), other = from.layout->form();
    of_same_blocks += one->strided() && other->strided() && one->block == other->block ? 1 : 0;
  }
  EXPECT_GT(of_same_blocks, 50);
  move(Form{}, nullptr, Form{}, nullptr);
}

// What is told of the types, against the list of all of them.
void check_types(const Pair& sent, const Pair& received) {
  const auto alike = [](int one, int other) {
    return signature_of(static_cast<ist_type>(one)) == signature_of(static_cast<ist_type>(other));
  };
  const std::vector<int>&one = sent.map.types, &other = received.map.types;
  const std::size_t both = std::min(one.size(), other.size());
  std::size_t first = 0;
  while (first < both && alike(one[first], other[first])) ++first;
  Signature so_far;
  for (std::size_t i = 0; i < other.size(); ++i) {
    ASSERT_EQ(received.layout->first(static_cast<std::int64_t>(i)), so_far);
    ASSERT_EQ(received.layout->type_at(static_cast<std::int64_t>(i)), other[i]);
    so_far = one_after_other(so_far, signature_of(static_cast<ist_type>(other[i])));
  }
  const TypeNote note = note_of(*sent.layout);
  std::int64_t told = 0;
  for (std::uint32_t i = 0; i < note.runs; ++i) told += note.counts[i];
  ASSERT_EQ(note.types, static_cast<std::int64_t>(one.size()));
  ASSERT_TRUE(note.whole == 0 || (told == 0 ? note.types == 0 : note.types % told == 0));
  const auto found = difference(note, *received.layout);
  if (first == both) {
    ASSERT_FALSE(found.has_value()) << found->element;
  } else if (note.whole != 0 || static_cast<std::int64_t>(first) < told) {
    ASSERT_TRUE(found.has_value());
    ASSERT_EQ(found->element, static_cast<std::int64_t>(first));
    ASSERT_EQ(found->sent, static_cast<ist_type>(one[first]));
    ASSERT_EQ(found->received, static_cast<ist_type>(other[first]));
  } else if (one.size() <= other.size()) {
    ASSERT_TRUE(found.has_value());
    ASSERT_EQ(found->element, told);
    ASSERT_FALSE(found->sent.has_value());
  }
}

TEST(Layout, types_that_differ_are_found_where_they_do) {
  Random random{20261127};
  int alike = 0, later = 0, not_told = 0;
  for (int i = 0; i < 4000; ++i) {
    const Pair one = random_layout(random, static_cast<int>(pick(random, 1, 4)));
    const Pair other = random_layout(random, static_cast<int>(pick(random, 1, 4)));
    check_types(one, other);
    check_types(one, one);
    // The same up to somewhere, and then something else.
    Pair longer{good(struct_layout(std::vector<std::int64_t>{1, 1}, std::vector<std::int64_t>{0, 5000},
                                   std::vector<SharedLayout>{one.layout, other.layout})),
                one.map};
    longer.map.types.insert(longer.map.types.end(), other.map.types.begin(), other.map.types.end());
    const Pair most{good(contiguous_layout(2, one.layout)), {}};
    Pair twice = most;
    for (int j = 0; j < 2; ++j) twice.map.add(one.map, 0);
    check_types(longer, twice);
    check_types(twice, longer);
    if (HasFatalFailure()) FAIL() << "case " << i;
    const auto found = difference(note_of(*twice.layout), *longer.layout);
    alike += found ? 0 : 1;
    later += found && found->element > 1 ? 1 : 0;
    not_told += note_of(*longer.layout).whole == 0 ? 1 : 0;
  }
  EXPECT_GT(alike, 100);
  EXPECT_GT(later, 100);
  EXPECT_GT(not_told, 20);
}

TEST(Layout, bytes_alone_are_untyped) {
  const auto of = [](std::int64_t count, ist_type type) {
    return good(contiguous_layout(count, good(Layout::basic(type))));
  };
  EXPECT_FALSE(difference(note_of(*of(80, IST_BYTE)), *of(10, IST_DOUBLE)).has_value());
  EXPECT_FALSE(difference(note_of(*of(10, IST_DOUBLE)), *of(80, IST_BYTE)).has_value());
  EXPECT_FALSE(difference(note_of(*of(0, IST_DOUBLE)), *of(80, IST_INT8)).has_value());
  EXPECT_FALSE(difference(note_of(*of(3, IST_INT)), *of(4, IST_INT32)).has_value());
  EXPECT_TRUE(difference(note_of(*of(10, IST_UINT8)), *of(10, IST_INT8)).has_value());
  // Among other types a byte is one.
  const std::vector<SharedLayout> olds{good(Layout::basic(IST_BYTE)), good(Layout::basic(IST_INT32))};
  const auto mixed = good(struct_layout(std::vector<std::int64_t>{4, 1}, std::vector<std::int64_t>{0, 4}, olds));
  const auto found = difference(note_of(*mixed), *of(2, IST_INT32));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(described(*found, "one", "other"), "element 0 is IST_BYTE in one and IST_INT32 in other");
  const TypeNote here = note_of(*good(contiguous_layout(3, mixed))), there = note_of(*of(2, IST_INT32));
  EXPECT_EQ(
      described(*found, {"one", here}, {"other", there}),
      "element 0 is IST_BYTE in one and IST_INT32 in other (one: 3 times (4 IST_BYTE, IST_INT32); other: 2 IST_INT32)");
}

TEST(Layout, types_are_told_in_few_words) {
  const auto words = [](const SharedLayout& layout) { return words_for(note_of(*layout)); };
  const auto number = good(Layout::basic(IST_DOUBLE));
  EXPECT_EQ(words(number), "IST_DOUBLE");
  EXPECT_EQ(words(good(contiguous_layout(0, number))), "no elements");
  EXPECT_EQ(words(good(vector_layout(5, 2, 3, Unit::extents, number))), "10 IST_DOUBLE");
  std::vector<std::int64_t> lengths, places;
  std::vector<SharedLayout> olds;
  for (std::int64_t i = 0; i < 8; ++i) {
    lengths.push_back(1);
    places.push_back(i * 8);
    olds.push_back(i % 2 == 0 ? number : good(Layout::basic(IST_FLOAT)));
  }
  EXPECT_EQ(words(good(struct_layout(lengths, places, olds))),
            "IST_DOUBLE, IST_FLOAT, IST_DOUBLE, IST_FLOAT, IST_DOUBLE, IST_FLOAT and so on, 8 elements");
}

TEST(Layout, nests_of_the_same_bytes_have_one_form) {
  const auto number = *Layout::basic(IST_DOUBLE);
  const std::vector<std::int64_t> sizes{8, 10}, parts{8, 1}, starts{0, 3}, places{3, 13, 23, 33, 43, 53, 63, 73};
  const auto column = *good(subarray_layout(sizes, parts, starts, Order::c, number)).get();
  const auto listed = *good(indexed_block_layout(1, places, Unit::extents, number)).get();
  EXPECT_EQ(*column.form(), *listed.form());
  EXPECT_EQ(described(*column.form()), "8 blocks of 8 bytes from 24: 8 every 80");
}

// Seven arrays of which the same places are meant, however that is said.
TEST(Layout, a_list_that_comes_again_is_held_once) {
  const auto number = *Layout::basic(IST_DOUBLE);
  constexpr std::int64_t kArrays = 7, kApart = 80000;
  const std::vector<std::int64_t> places{3, 5, 6, 17, 40, 41, 99};
  const auto list = good(indexed_block_layout(1, places, Unit::extents, number));
  const auto once = *list->form();
  ASSERT_EQ(once.runs.size(), 5U);
  const auto all = *good(vector_layout(kArrays, 1, kApart, Unit::bytes, list))->form();
  EXPECT_EQ(all.runs, once.runs);
  EXPECT_EQ(all.begins, once.begins);
  EXPECT_EQ(all.size, kArrays * once.size);
  EXPECT_EQ(described(all), "392 bytes in 35 runs, a list of 5: 7 every 80000");
  const std::vector<std::int64_t> ones(kArrays, 1);
  std::vector<std::int64_t> arrays, one_by_one;
  for (std::int64_t i = 0; i < kArrays; ++i) {
    arrays.push_back(i * kApart);
    for (const std::int64_t place : places) one_by_one.push_back(i * kApart + place * 8);
  }
  const std::vector<SharedLayout> lists(kArrays, list);
  EXPECT_EQ(*good(struct_layout(ones, arrays, lists))->form(), all);
  EXPECT_EQ(*good(indexed_layout(ones, arrays, Unit::bytes, list))->form(), all);
  EXPECT_EQ(*good(indexed_block_layout(1, arrays, Unit::bytes, list))->form(), all);
  EXPECT_EQ(*good(indexed_block_layout(1, one_by_one, Unit::bytes, number))->form(), all);
  EXPECT_EQ(*good(contiguous_layout(kArrays, good(resized_layout(list, 0, kApart))))->form(), all);
  EXPECT_EQ(overlap_of(all), Overlap::none);
  // Twice as many in a second dimension, and in one that goes on with the first.
  const auto two = *good(vector_layout(2, 1, 1000000, Unit::bytes, good(struct_layout(ones, arrays, lists))))->form();
  EXPECT_EQ(described(two), "784 bytes in 70 runs, a list of 5: 7 every 80000, 2 every 1000000");
  const auto on =
      *good(vector_layout(2, 1, kArrays * kApart, Unit::bytes, good(struct_layout(ones, arrays, lists))))->form();
  EXPECT_EQ(described(on), "784 bytes in 70 runs, a list of 5: 14 every 80000");
}

// A struct with a gap, many times: no more of a list than its two members.
TEST(Layout, many_structs_are_a_short_list) {
  const std::vector<SharedLayout> olds{*Layout::basic(IST_DOUBLE), *Layout::basic(IST_INT32)};
  const std::vector<std::int64_t> lengths{1, 1}, places{0, 16};
  const auto one = good(struct_layout(lengths, places, olds));
  const auto many = good(contiguous_layout(std::int64_t{1} << 40, one))->form();
  ASSERT_TRUE(many.ok()) << many.status().text();
  EXPECT_EQ(many->runs, (std::vector<ist::Run>{{0, 8}, {16, 4}}));
  EXPECT_EQ(described(*many), "13194139533312 bytes in 2199023255552 runs, a list of 2: 1099511627776 every 24");
  EXPECT_EQ(overlap_of(*many), Overlap::none);
  // Among the runs of a list, which only a look at all of them shows.
  const auto of_each = [&](std::int64_t count, std::int64_t stride, const SharedLayout& old) {
    return good(vector_layout(count, 1, stride, Unit::bytes, old));
  };
  const std::vector<std::int64_t> far{0, 100, 300};
  const auto spread = good(indexed_block_layout(1, far, Unit::extents, one));
  EXPECT_EQ(overlap_of(*of_each(std::int64_t{1} << 24, 40, spread)->form()), Overlap::unknown);
  EXPECT_EQ(overlap_of(*of_each(100, 24, spread)->form()), Overlap::none);
  EXPECT_EQ(overlap_of(*of_each(101, 24, spread)->form()), Overlap::some);
  // Between two runs of a list there is room for a whole dimension, and another one steps over all.
  const std::vector<std::int64_t> wide{0, 125, 375};
  const auto between =
      of_each(std::int64_t{1} << 30, 8000, of_each(100, 8, good(indexed_block_layout(1, wide, Unit::extents, olds[0]))));
  EXPECT_EQ(overlap_of(*between->form()), Overlap::none);
}

TEST(Layout, a_fifth_dimension_is_written_out_in_a_list) {
  auto layout = *Layout::basic(IST_INT32);
  for (const std::int64_t stride : {8, 100, 1000, 10000}) layout = good(vector_layout(3, 1, stride, Unit::bytes, layout));
  EXPECT_EQ(described(*layout->form()), "81 blocks of 4 bytes from 0: 3 every 8, 3 every 100, 3 every 1000, 3 every 10000");
  layout = good(vector_layout(2, 1, 100000, Unit::bytes, layout));
  EXPECT_EQ(described(*layout->form()),
            "648 bytes in 162 runs, a list of 3: 3 every 100, 3 every 1000, 3 every 10000, 2 every 100000");
  layout = good(vector_layout(2, 1, 1000000, Unit::bytes, layout));
  EXPECT_EQ(described(*layout->form()),
            "1296 bytes in 324 runs, a list of 9: 3 every 1000, 3 every 10000, 2 every 100000, 2 every 1000000");
  std::vector<ist::Run> runs;
  each_run(*layout->form(), [&](const ist::Run& run) { runs.push_back(run); });
  EXPECT_EQ(*layout->form(), form_of(runs));
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
