// Layouts on both sides of puts and gets: random nests beside a list of their bytes, every kind of memory on either side, and what is
// refused. Run as messages_test.cpp is.
#include <isthmus/layout.h>

#include <numeric>
#include <utility>

#include "one_sided_support.hpp"

namespace {

using namespace rank_test;

using Bytes = std::vector<unsigned char>;
using Random = std::mt19937_64;

std::int64_t pick(Random& random, std::int64_t from, std::int64_t to) {
  return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
}

// A layout, and the places of its bytes in pack order, which know nothing of forms.
struct Laid {
  ist_layout layout = IST_LAYOUT_NULL;
  std::vector<std::int64_t> places;

  Laid() = default;
  Laid(Laid&& other) noexcept : layout(std::exchange(other.layout, IST_LAYOUT_NULL)), places(std::move(other.places)) {}
  Laid& operator=(Laid&& other) noexcept {
    std::swap(layout, other.layout);
    std::swap(places, other.places);
    return *this;
  }
  ~Laid() {
    const bool basic = reinterpret_cast<std::uintptr_t>(layout) <= IST_INT64_INT64 + 1;
    EXPECT_TRUE(basic || ist_layout_free(&layout) == IST_OK) << ist_error_text();
  }
  std::int64_t lower() const { return places.empty() ? 0 : *std::min_element(places.begin(), places.end()); }
  std::int64_t upper() const { return places.empty() ? 0 : *std::max_element(places.begin(), places.end()) + 1; }
  bool twice() const {
    auto sorted = places;
    if (!std::is_sorted(sorted.begin(), sorted.end())) std::sort(sorted.begin(), sorted.end());
    return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  }
  std::int64_t extent() const {
    std::int64_t extent = 0;
    EXPECT_EQ(IST_OK, ist_layout_extent(layout, nullptr, &extent));
    return extent;
  }
  void add(const Laid& old, std::int64_t at) {
    for (const std::int64_t place : old.places) places.push_back(place + at);
  }
  void commit() const { EXPECT_EQ(IST_OK, ist_layout_commit(layout)) << ist_error_text(); }
};

Laid bytes_in_a_row(std::int64_t count) {
  Laid made;
  made.layout = ist_layout_of(IST_BYTE);
  for (std::int64_t i = 0; i < count; ++i) made.places.push_back(i);
  return made;
}

Laid of_type(ist_type type, std::int64_t size) {
  Laid made = bytes_in_a_row(size);
  made.layout = ist_layout_of(type);
  return made;
}

Laid vector_of(const Laid& old, std::int64_t count, std::int64_t length, std::int64_t stride) {
  Laid made;
  EXPECT_EQ(IST_OK, ist_layout_hvector(count, length, stride, old.layout, &made.layout)) << ist_error_text();
  const std::int64_t extent = old.extent();
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t j = 0; j < length; ++j) made.add(old, i * stride + j * extent);
  return made;
}

Laid listed(Random& random, const Laid& old) {
  Laid made;
  std::vector<std::int64_t> lengths, displacements;
  for (std::int64_t i = pick(random, 1, 6), at = -20; i > 0; --i) {
    lengths.push_back(pick(random, 1, 3));
    displacements.push_back(at);
    at += (lengths.back() - 1) * old.extent() + old.upper() - old.lower() + pick(random, 0, 9);
  }
  if (pick(random, 0, 1) == 1) {
    std::reverse(lengths.begin(), lengths.end());
    std::reverse(displacements.begin(), displacements.end());
  }
  EXPECT_EQ(IST_OK, ist_layout_hindexed(static_cast<std::int64_t>(lengths.size()), lengths.data(), displacements.data(),
                                        old.layout, &made.layout));
  for (std::size_t i = 0; i < lengths.size(); ++i)
    for (std::int64_t j = 0; j < lengths[i]; ++j) made.add(old, displacements[i] + j * old.extent());
  return made;
}

Laid two_of(const Laid& one, const Laid& other, std::int64_t at) {
  Laid made;
  const std::int64_t lengths[] = {1, 2}, places[] = {0, at};
  const ist_layout olds[] = {one.layout, other.layout};
  EXPECT_EQ(IST_OK, ist_layout_struct(2, lengths, places, olds, &made.layout)) << ist_error_text();
  made.add(one, 0);
  for (std::int64_t j = 0; j < 2; ++j) made.add(other, at + j * other.extent());
  return made;
}

// NOLINTNEXTLINE(misc-no-recursion)
Laid random_layout(Random& random, int depth) {
  if (depth == 0) {
    constexpr std::pair<ist_type, std::int64_t> kTypes[] = {{IST_BYTE, 1}, {IST_INT16, 2}, {IST_INT32, 4}, {IST_DOUBLE, 8}};
    const auto& [type, size] = kTypes[static_cast<std::size_t>(pick(random, 0, 3))];
    return of_type(type, size);
  }
  Laid old = random_layout(random, depth - 1);
  if (old.places.size() > 300) return old;
  const std::int64_t span = old.upper() - old.lower();
  switch (pick(random, 0, 5)) {
    case 0:  // forwards or backwards, perhaps into itself
      return vector_of(old, pick(random, 0, 5), pick(random, 1, 2), pick(random, -2 * span - 9, 3 * span + 9));
    case 1:
      return vector_of(old, pick(random, 2, 5), 1, span + pick(random, 0, 7));
    case 2:
      return listed(random, old);
    case 3:
      return two_of(old, random_layout(random, depth - 1), old.upper() + 200 + pick(random, 0, 9));
    case 4: {
      Laid made;
      EXPECT_EQ(IST_OK, ist_layout_resized(old.layout, old.lower(), span + pick(random, 0, 8), &made.layout));
      made.places = old.places;
      return made;
    }
    default:
      return old;
  }
}

// So many layouts, one after the other.
struct Side {
  Laid one;
  std::int64_t count = 1;
  Laid all;  // its places alone
  std::int64_t lower = 0, upper = 0;
  bool twice = false;
};

Side several(Laid one, std::int64_t count) {
  Side side;
  const std::int64_t extent = one.extent();
  for (std::int64_t i = 0; i < count; ++i) side.all.add(one, i * extent);
  one.commit();
  side.one = std::move(one);
  side.count = count;
  side.lower = side.all.lower();
  side.upper = side.all.upper();
  side.twice = side.all.twice();
  return side;
}

struct Case {
  Side far;
  Side near;
};

// Two sides of as many bytes.
Case random_case(Random& random) {
  Laid one = random_layout(random, static_cast<int>(pick(random, 1, 4)));
  Laid other = random_layout(random, static_cast<int>(pick(random, 1, 4)));
  const auto a = static_cast<std::int64_t>(one.places.size()), b = static_cast<std::int64_t>(other.places.size());
  const std::int64_t all = a == 0 || b == 0 ? 0 : std::lcm(a, b);
  const auto shape = pick(random, 0, 3);
  if (shape == 0) return {several(std::move(one), 2), several(bytes_in_a_row(1), 2 * a)};
  if (shape == 1 || all == 0 || all > 6000) return {several(bytes_in_a_row(1), 3 * b), several(std::move(other), 3)};
  return {several(std::move(one), all / a), several(std::move(other), all / b)};
}

Bytes packed(const Laid& laid, const Bytes& memory, std::int64_t origin) {
  Bytes bytes;
  for (const std::int64_t place : laid.places) bytes.push_back(memory[static_cast<std::size_t>(place + origin)]);
  return bytes;
}

void unpack_into(Bytes& memory, const Laid& laid, std::int64_t origin, const Bytes& bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) memory[static_cast<std::size_t>(laid.places[i] + origin)] = bytes[i];
}

constexpr std::int64_t kAround = 40;

// One put to that PE and one get from there; all PEs do the same case at the same distance.
void put_and_get(const TestHeap& heap, unsigned char* part, const Case& now, ist_kind kind, int distance,
                 std::uint64_t seed) {
  const int to = (rank() + distance) % size(), from = (rank() + size() - distance) % size();
  const auto& [far, near] = now;
  const std::int64_t far_origin = kAround - far.lower, near_origin = -near.lower;
  const auto room = static_cast<std::size_t>(far.upper - far.lower + 2 * kAround);
  const auto near_room = static_cast<std::size_t>(near.upper - near.lower);
  const auto near_bytes = [&](int pe) { return random_bytes(near_room, seed * 100 + static_cast<std::uint64_t>(pe)); };
  const auto far_bytes = [&](int pe) { return random_bytes(room, seed * 100 + 50 + static_cast<std::uint64_t>(pe)); };
  GuardedBuffer buffer{kind, near_room};
  buffer.fill(near_bytes(rank()));
  heap.store(part, far_bytes(rank()));
  heap.barrier();

  const ist_buffer local = ist_buffer_at(buffer.get(), static_cast<std::uint64_t>(near_origin));
  const int put =
      ist_heap_put_layout(heap, part + far_origin, far.count, far.one.layout, local, near.count, near.one.layout, to);
  EXPECT_EQ(far.twice ? IST_ERR_ARGUMENT : IST_OK, put) << ist_error_text();
  heap.barrier();
  Bytes wanted = far_bytes(rank());
  if (!far.twice) unpack_into(wanted, far.all, far_origin, packed(near.all, near_bytes(from), near_origin));
  EXPECT_EQ(-1, first_difference(wanted, heap.load(part, room))) << "put";
  heap.barrier();

  heap.store(part, far_bytes(rank()));
  buffer.poison();
  heap.barrier();
  const int get =
      ist_heap_get_layout(heap, local, near.count, near.one.layout, part + far_origin, far.count, far.one.layout, to);
  EXPECT_EQ(near.twice ? IST_ERR_ARGUMENT : IST_OK, get) << ist_error_text();
  Bytes got(near_room, 0xa5);
  if (!near.twice) unpack_into(got, near.all, near_origin, packed(far.all, far_bytes(to), far_origin));
  buffer.expect(got, "get");
  heap.barrier();
}

TEST(OneSidedLayouts, RandomNestsArriveInTheirPlacesAndTouchNoOthers) {
  constexpr std::uint64_t kCases = 60;
  int twice = 0, below = 0, plain = 0;
  for (const KindName& of : heap_kinds()) {
    const TestHeap heap{of.kind};
    unsigned char* const part = heap.alloc(1 << 20);
    for (const KindName& local : usable_kinds()) {
      Random random{20261126};
      for (std::uint64_t i = 0; i < kCases; ++i) {
        const Case now = random_case(random);
        twice += now.far.twice ? 1 : 0;
        below += now.far.lower < 0 && now.near.lower < 0 ? 1 : 0;
        plain += !now.far.twice && now.far.all.places.size() > 100 ? 1 : 0;
        put_and_get(heap, part, now, local.kind, static_cast<int>(i) % size(), i);
        if (testing::Test::HasFailure())
          FAIL() << "case " << i << ", a heap of " << of.name << ", " << local.name << " on this side";
      }
    }
  }
  // What the cases are for.
  EXPECT_GT(twice, 2);
  EXPECT_GT(below, 2);
  EXPECT_GT(plain, 10);
}

// Longer than each block that bytes are packed into, with blocks of one length on both sides, of two, and in a row.
TEST(OneSidedLayouts, LongOnesGoInParts) {
  for (const auto& [far_block, near_block] :
       {std::pair<std::int64_t, std::int64_t>{16, 16}, {48, 16}, {16, 96}, {9 << 17, 48}}) {
    constexpr std::int64_t kBytes = 9 << 17;
    const auto side = [](std::int64_t block) {
      return several(vector_of(bytes_in_a_row(1), kBytes / block, block, block + 16), 1);
    };
    const Case now{side(far_block), side(near_block)};
    for (const KindName& of : mapped_heap_kinds()) {
      const TestHeap heap{of.kind, 12 << 20};
      unsigned char* const part = heap.alloc(8 << 20);
      for (const KindName& local : usable_kinds()) {
        if (local.kind != IST_KIND_HOST && far_block == near_block) continue;
        put_and_get(heap, part, now, local.kind, size() - 1, 7);
        if (testing::Test::HasFailure())
          FAIL() << far_block << " and " << near_block << ", " << of.name << ", " << local.name;
      }
      IST_OK_OR_FAIL(ist_heap_free(heap, part));
    }
  }
}

TEST(OneSidedLayouts, WhatCannotBeCopiedIsRefusedAndNothingIsWritten) {
  for (const KindName& of : mapped_heap_kinds()) {
    const TestHeap heap{of.kind, 1 << 20};
    unsigned char* const part = heap.alloc(4096);
    const Bytes poison(4096, 0xa5);
    heap.store(part, poison);
    heap.barrier();
    ist_team_view view{};
    IST_OK_OR_FAIL(ist_heap_view(heap, &view));
    unsigned char* const first = view.base + static_cast<std::uint64_t>(rank()) * view.stride;
    Bytes mine(4096, 0x5a);
    const ist_buffer local = ist_host(mine.data());
    const ist_layout byte = ist_layout_of(IST_BYTE), number = ist_layout_of(IST_DOUBLE);
    const Laid apart = vector_of(of_type(IST_DOUBLE, 8), 4, 1, 24), backwards = vector_of(of_type(IST_DOUBLE, 8), 4, 1, -24),
               twice = vector_of(of_type(IST_DOUBLE, 8), 4, 1, 4), raw = vector_of(of_type(IST_DOUBLE, 8), 4, 1, 16);
    apart.commit(), backwards.commit(), twice.commit();
    const auto put = [&](void* to, std::int64_t count, ist_layout layout, std::int64_t near_count, ist_layout near,
                         int pe = 0) { return ist_heap_put_layout(heap, to, count, layout, local, near_count, near, pe); };
    const auto get = [&](std::int64_t count, ist_layout layout, const void* from, std::int64_t far_count, ist_layout far,
                         int pe = 0) { return ist_heap_get_layout(heap, local, count, layout, from, far_count, far, pe); };
    const auto in_both = [](int code, const char* part_of_put, const char* part_of_get, int putting, const auto& getting) {
      expect_error(code, part_of_put, putting);
      expect_error(code, part_of_get, getting());
    };
    in_both(IST_ERR_ARGUMENT, "dest_count times dest_layout is 32 bytes, source_count times source_layout 24",
            "dest_count times dest_layout is 24 bytes, source_count times source_layout 32",
            put(part, 1, apart.layout, 3, number), [&] { return get(3, number, part, 1, apart.layout); });
    in_both(IST_ERR_ARGUMENT, "dest: the layout, hvector", "dest: the layout, hvector",
            put(part, 1, twice.layout, 4, number), [&] { return get(1, twice.layout, part, 4, number); });
    in_both(IST_ERR_ARGUMENT,
            "dest: the layout, hvector(count 4, block_length 1, stride 16) of IST_DOUBLE, is not committed",
            "source: the layout, hvector(count 4, block_length 1, stride 16) of IST_DOUBLE, is not committed",
            put(part, 1, raw.layout, 4, number), [&] { return get(4, number, part, 1, raw.layout); });
    in_both(IST_ERR_HANDLE, "source: the layout is null", "dest: the layout is null", put(part, 1, byte, 1, IST_LAYOUT_NULL),
            [&] { return get(1, IST_LAYOUT_NULL, part, 1, byte); });
    in_both(IST_ERR_ARGUMENT, "dest: count is -1", "source: count is -1", put(part, -1, byte, 1, byte),
            [&] { return get(1, byte, part, -1, byte); });
    in_both(IST_ERR_RANK, "pe is", "pe is -2", put(part, 0, byte, 0, byte, size()),
            [&] { return get(0, byte, part, 0, byte, -2); });
    // The byte before the part's first, and the one behind its last.
    in_both(IST_ERR_ARGUMENT, "dest: the layout has bytes from -72 up to 8 of its address; 80 bytes at",
            "source: the layout has bytes from -72 up to 8 of its address; 80 bytes at",
            put(first + 71, 1, backwards.layout, 4, number),
            [&] { return get(4, number, first + 71, 1, backwards.layout); });
    in_both(IST_ERR_ARGUMENT, "dest: the layout has bytes from 0 up to 80", "source: the layout has bytes from 0 up to 80",
            put(first + view.bytes - 79, 1, apart.layout, 4, number),
            [&] { return get(4, number, first + view.bytes - 79, 1, apart.layout); });
    in_both(IST_ERR_ARGUMENT, "were named", "were named", put(nullptr, 1, apart.layout, 4, number),
            [&] { return get(4, number, nullptr, 1, apart.layout); });
    expect_error(IST_ERR_ARGUMENT,
                 "source: ", ist_heap_put_layout(heap, part, 4, number, ist_host(nullptr), 1, apart.layout, 0));
    expect_error(IST_ERR_ARGUMENT,
                 "dest: ", ist_heap_get_layout(heap, ist_host(nullptr), 1, apart.layout, part, 4, number, 0));
    expect_error(IST_ERR_HANDLE, "ist_heap_put_layout",
                 ist_heap_put_layout(IST_HEAP_NULL, part, 1, byte, local, 1, byte, 0));
    EXPECT_EQ(-1, first_difference(poison, heap.load(part, poison.size()))) << of.name;
    EXPECT_EQ(-1, first_difference(Bytes(4096, 0x5a), mine)) << of.name;
    heap.barrier();
  }
}

TEST(OneSidedLayouts, WhatIsAtTheEndsOfAPartIsCopied) {
  const TestHeap heap{IST_KIND_HOST, 1 << 20};
  unsigned char* const part = heap.alloc(4096);
  ist_team_view view{};
  IST_OK_OR_FAIL(ist_heap_view(heap, &view));
  unsigned char* const first = view.base + static_cast<std::uint64_t>(rank()) * view.stride;
  const ist_layout number = ist_layout_of(IST_DOUBLE);
  const Laid apart = vector_of(of_type(IST_DOUBLE, 8), 4, 1, 24), backwards = vector_of(of_type(IST_DOUBLE, 8), 4, 1, -24),
             twice = vector_of(of_type(IST_DOUBLE, 8), 4, 1, 4);
  apart.commit(), backwards.commit(), twice.commit();
  unsigned char* const last = first + view.bytes - 8;
  const Bytes mark{1, 2, 3, 4, 5, 6, 7, 8};
  heap.store(last, mark);
  Bytes mine(32, 0x5a);
  const ist_buffer local = ist_host(mine.data());
  IST_OK_OR_FAIL(ist_heap_get_layout(heap, local, 4, number, last, 1, backwards.layout, rank()));
  EXPECT_EQ(mark, Bytes(mine.begin(), mine.begin() + 8));
  IST_OK_OR_FAIL(ist_heap_get_layout(heap, local, 4, number, last - 72, 1, apart.layout, rank()));
  EXPECT_EQ(mark, Bytes(mine.begin() + 24, mine.end()));
  IST_OK_OR_FAIL(ist_heap_get_layout(heap, local, 4, number, first + 72, 1, backwards.layout, right()));
  // Nothing at all, wherever it is; and out of a layout that has bytes twice.
  IST_OK_OR_FAIL(ist_heap_put_layout(heap, nullptr, 0, apart.layout, local, 0, number, right()));
  mine.assign(32, 7);
  IST_OK_OR_FAIL(ist_heap_put_layout(heap, part, 4, number, local, 1, twice.layout, rank()));
  EXPECT_EQ(-1, first_difference(mine, heap.load(part, 32)));
  heap.barrier();
}

}  // namespace
